//! Errors of the identity store.

use std::path::PathBuf;

use thiserror::Error;

/// Why the identity store could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot create {path}")]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot open {path}")]
    Database {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("{path} was written by a newer version of ChoirOS (schema {found}, this one knows {known})")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("cannot delete expired entries")]
    DeleteExpired(#[source] IdentityError),
}

/// Why an identity operation failed. Nothing was changed.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A link, invitation, code or passkey that is unknown, used or expired. The caller must not learn which.
    #[error("this sign-in is not valid: it is unknown, was used before, or has expired")]
    SignInRefused,
    #[error("there is no such {0}")]
    Missing(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("there are already {limit} {what}; remove one first")]
    LimitReached { what: &'static str, limit: u32 },
    #[error("this passkey already belongs to an account")]
    PasskeyExists,
    #[error("the system provides no random numbers")]
    Randomness(#[source] getrandom::Error),
    #[error("cannot read or write the identity store")]
    Store(#[from] rusqlite::Error),
    #[error("the identity store contains invalid data: {0}")]
    Corrupt(String),
}
