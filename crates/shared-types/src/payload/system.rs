//! `system.*`: events about the computer as a whole.

use serde::{Deserialize, Serialize};

use crate::{ChainHash, ContentHash, EffectId, Seq, UserId};

/// A request to delete bytes for good; their hashes stay, so the chain still verifies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemPurge {
    pub effect: EffectId,
    pub hashes: Vec<ContentHash>,
    pub reason: Box<str>,
}

/// The bytes of a purge were deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemPurged {
    pub effect: EffectId,
    /// How many of the named contents still existed.
    pub dropped: u64,
}

/// Files of another computer were imported.
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
        /// Bytes are to be deleted for good, for example a pasted secret; pending until the next event.
        "system.purge" v 1 Final => Purge(SystemPurge),
        /// The bytes of a purge were deleted.
        "system.purged" v 1 Final => Purged(SystemPurged),
        /// Files of another computer were imported; the operation's file events list them.
        "system.import" v 1 Final => Import(SystemImport),
    }
}
