//! Why the vault refuses. Every message says what to do; none has a secret in it.

use std::path::PathBuf;

use thiserror::Error;

use crate::identity::IdentityError;

/// Why something was not done with a provider's key. Whatever it is, nothing was lost.
#[derive(Debug, Error)]
pub enum VaultError {
    #[error("{0}")]
    Invalid(String),
    #[error("only the owner of this machine may do this")]
    NotOwner,
    #[error("there is no such key")]
    Missing,
    #[error("there are already {limit} keys; clear one first")]
    Full { limit: u32 },
    #[error("the vault is locked: {0}")]
    Locked(#[from] Locked),
    #[error(
        "the key for {provider} does not verify: its row was changed outside of ChoirOS, or belongs to somebody \
         else; set it again"
    )]
    Damaged { provider: String },
    #[error("the vault's store cannot be read or written")]
    Store(#[from] rusqlite::Error),
    #[error("the vault's store cannot be read or written")]
    Identity(#[from] IdentityError),
}

/// What is wrong with the master key.
#[derive(Debug, Error)]
pub enum Locked {
    #[error(
        "its keys were sealed with a master key that is no longer there. Put {0} back (a backup has it), or set \
         CHOIR_MASTER_KEY to it. If it is lost for good, so are the keys: `choir keys clear --unreadable`, and set \
         them again"
    )]
    NoMaster(PathBuf),
    #[error(
        "{0} is not the master key that its keys were sealed with. Put the right one back. If it is lost for good, \
         so are the keys: `choir keys clear --unreadable`, and set them again"
    )]
    WrongMaster(String),
    #[error(
        "{0} is not a master key: 32 bytes are needed, in hex or base64, as `openssl rand -hex 32` makes them"
    )]
    NotAKey(String),
    #[error(
        "others on this machine may read or change {path} (its mode is {mode:o}); if it is yours: chmod 600 {path}"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{path} belongs to another user of this machine (number {uid}); it is not trusted")]
    Foreign { path: PathBuf, uid: u32 },
    #[error("{path} cannot be read or written")]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the master key comes from CHOIR_MASTER_KEY, which only you can change: put the new one into \
         CHOIR_NEXT_MASTER_KEY, rotate, and then start everything with CHOIR_MASTER_KEY set to it"
    )]
    NoNext,
    #[error("the new master key is the old one; give another")]
    Same,
    #[error("the system gives no random bits")]
    Randomness(#[source] getrandom::Error),
    #[error("a secret could not be sealed")]
    Seal,
}
