//! `checkpoint.*`: git commits of the whole workspace. A request is pending until it is created or has failed.

use serde::{Deserialize, Serialize};

use crate::{EffectId, Seq};

/// Why a checkpoint was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointReason {
    /// The person asked.
    Manual,
    /// There were enough operations, or enough time has passed.
    Automatic,
    /// Before a restore.
    Restore,
}

/// A checkpoint was requested.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckpointRequest {
    pub effect: EffectId,
    pub reason: CheckpointReason,
    pub message: Box<str>,
}

/// A checkpoint was made: this commit holds the workspace at that seq.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckpointCreate {
    pub effect: EffectId,
    pub commit: Box<str>,
    pub seq: Seq,
    pub message: Box<str>,
}

/// A checkpoint could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFail {
    pub effect: EffectId,
    pub reason: Box<str>,
}

events! {
    /// Git checkpoints of the workspace.
    CheckpointEvent {
        /// A checkpoint was requested; it is pending until one of the next two events.
        "checkpoint.request" v 1 Final => Request(CheckpointRequest),
        /// A checkpoint was made.
        "checkpoint.create" v 1 Final => Create(CheckpointCreate),
        /// A checkpoint could not be made, and why.
        "checkpoint.fail" v 1 Final => Fail(CheckpointFail),
    }
}
