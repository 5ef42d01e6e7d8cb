//! `user.*`: who owns this computer. Identity proper (passkeys, sessions) lives outside the log.

use serde::{Deserialize, Serialize};

/// The computer was set up for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCreate {
    pub name: Box<str>,
}

/// The person changed how they are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRename {
    pub name: Box<str>,
    pub prev: Box<str>,
}

events! {
    /// The person this computer belongs to.
    UserEvent {
        /// The computer was set up for a person.
        "user.create" v 1 Final => Create(UserCreate),
        /// The person changed how they are called.
        "user.rename" v 1 Final => Rename(UserRename),
    }
}
