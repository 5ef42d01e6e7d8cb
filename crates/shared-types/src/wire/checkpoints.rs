//! Checkpoints, and the differences between two points of the log.

use serde::{Deserialize, Serialize};

use super::operations::Change;
use crate::{Seq, Timestamp};

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    pub commit: String,
    pub seq: Seq,
    pub ts: Timestamp,
    pub message: String,
}

/// A body of `POST /checkpoints`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCheckpoint {
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub message: String,
}

/// The differences between two points of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    pub changes: Vec<Change>,
    pub total: u64,
}
