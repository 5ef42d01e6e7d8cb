//! `system.*`: what was done to the computer as a whole.

use serde::{Deserialize, Serialize};

use crate::{ChainHash, ContentHash, EffectId, Seq, UserId};

/// Bytes are to be dropped for good; their hashes stay, so the chain still verifies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemPurge {
    pub effect: EffectId,
    pub hashes: Vec<ContentHash>,
    pub reason: Box<str>,
}

/// The bytes of a purge are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemPurged {
    pub effect: EffectId,
    /// How many of the named contents were still there.
    pub dropped: u64,
}

/// Files of another computer arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemImport {
    pub user: UserId,
    pub seq: Seq,
    pub hash: ChainHash,
    pub files: u64,
}

events! {
    /// The computer as a whole.
    SystemEvent {
        /// Bytes are to be dropped for good, as after a pasted secret; owed until the next answers it.
        "system.purge" v 1 Final => Purge(SystemPurge),
        /// The bytes of a purge are gone.
        "system.purged" v 1 Final => Purged(SystemPurged),
        /// Files of another computer arrived; the operation's file events say which.
        "system.import" v 1 Final => Import(SystemImport),
    }
}
