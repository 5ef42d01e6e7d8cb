//! Why the store refuses.

use std::path::PathBuf;

use thiserror::Error;

/// Why the store could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{path} cannot be made")]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} cannot be opened")]
    Database {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("{path} was written by a newer version of ChoirOS (schema {found}, this one knows {known})")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("what has run out could not be removed")]
    Sweep(#[source] IdentityError),
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A link, invitation, code or credential that is unknown, used or expired. Which of these is nobody's business.
    #[error("this sign-in is not valid: it is unknown, was used before, or has expired")]
    Refused,
    #[error("there is no such {0}")]
    Missing(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("there are already {limit} {what}; remove one first")]
    Full { what: &'static str, limit: u32 },
    #[error("this passkey belongs to an account already")]
    Known,
    #[error("the system gives no random bits")]
    Randomness(#[source] getrandom::Error),
    #[error("the identity store cannot be read or written")]
    Store(#[from] rusqlite::Error),
    #[error("the identity store holds something that cannot be understood: {0}")]
    Damaged(String),
}
