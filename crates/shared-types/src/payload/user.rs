//! `user.*`: the owner of this computer. Passkeys and sessions are kept outside the log.

use serde::{Deserialize, Serialize};

/// The computer was set up for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCreate {
    pub name: Box<str>,
}

/// The owner's name changed. Only older logs hold this; nothing records it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRename {
    pub name: Box<str>,
    pub prev: Box<str>,
}

events! {
    /// The owner of this computer.
    UserEvent {
        /// The computer was set up for a person.
        "user.create" v 1 Final => Create(UserCreate),
        /// The owner's name changed. Only older logs hold this; nothing records it any more.
        "user.rename" v 1 Final => Rename(UserRename),
    }
}
