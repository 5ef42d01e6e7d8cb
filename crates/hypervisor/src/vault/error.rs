//! Errors of the vault. Messages say what to do, and contain no secrets.

use std::path::PathBuf;

use thiserror::Error;

use crate::identity::IdentityError;

/// Why a vault operation failed. Nothing was changed or lost.
#[derive(Debug, Error)]
pub enum VaultError {
    #[error("{0}")]
    Invalid(String),
    #[error("only the owner of this machine may do this")]
    NotOwner,
    #[error("there is no such key")]
    Missing,
    #[error("there are already {limit} keys; clear one first")]
    LimitReached { limit: u32 },
    #[error("the vault is locked: {0}")]
    Locked(#[from] MasterKeyError),
    #[error(
        "the key for {provider} does not verify: its row was changed outside of ChoirOS, or belongs to another user; \
         set it again"
    )]
    Corrupt { provider: String },
    #[error("cannot read or write the vault's database")]
    Store(#[from] rusqlite::Error),
    #[error("cannot read or write the vault's database")]
    Identity(#[from] IdentityError),
}

/// Why the master key cannot be used.
#[derive(Debug, Error)]
pub enum MasterKeyError {
    #[error(
        "the master key that sealed its keys is missing. Restore {0} from a backup, or set CHOIR_MASTER_KEY to its \
         content. If it is lost, the keys are lost too: run `choir keys clear --unreadable` and set them again"
    )]
    Missing(PathBuf),
    #[error(
        "{0} is not the master key that sealed its keys. Restore the right one. If it is lost, the keys are lost too: \
         run `choir keys clear --unreadable` and set them again"
    )]
    Wrong(String),
    #[error(
        "{0} is not a master key: it needs 32 bytes in hex or base64, such as the output of `openssl rand -hex 32`"
    )]
    Malformed(String),
    #[error(
        "other users of this machine can read or change {path} (mode {mode:o}); if the file is yours: chmod 600 {path}"
    )]
    InsecurePermissions { path: PathBuf, mode: u32 },
    #[error("{path} belongs to another user of this machine (uid {uid}) and is not trusted")]
    WrongOwner { path: PathBuf, uid: u32 },
    #[error("cannot read or write {path}")]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the master key comes from CHOIR_MASTER_KEY, which only you can change: set CHOIR_NEXT_MASTER_KEY to the new \
         key, rotate, and then restart everything with CHOIR_MASTER_KEY set to the new key"
    )]
    NoNextKey,
    #[error("the new master key is the same as the old one")]
    Unchanged,
    #[error("the system provides no random numbers")]
    Randomness(#[source] getrandom::Error),
    #[error("cannot seal a secret")]
    Seal,
}
