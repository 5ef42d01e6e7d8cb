//! `undo`, `redo`, `restore`: marks on operations. What they change stands beside them as ordinary events of the
//! same operation, so that replay never merges anything.

use serde::{Deserialize, Serialize};

use crate::{FilePath, OpId, Seq};

/// An operation was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The operation whose inverse was applied.
    pub target: OpId,
    /// The ordinary operation at the bottom of a chain of undo and redo.
    pub root: OpId,
    /// If that is a run: its operations that were taken back with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OpId>,
    /// Pairs of paths between which a file went back and is another one now, so that no `file.move` tells of it. Both
    /// ends of such a pair go, or neither does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(FilePath, FilePath)>,
}

/// An undo was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redo {
    /// The undo operation whose inverse was applied.
    pub target: OpId,
    /// The ordinary operation that is in effect again.
    pub root: OpId,
    /// If that is a run: its operations that are in effect again with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OpId>,
    /// As those of an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(FilePath, FilePath)>,
}

/// The computer returned to a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    pub seq: Seq,
}

events! {
    /// Going back.
    RevertEvent {
        /// An operation was taken back.
        "undo" v 1 Reversible => Undo(Undo),
        /// An undo was taken back.
        "redo" v 1 Reversible => Redo(Redo),
        /// Files, windows, settings and notes returned to how they were at a seq.
        "restore" v 1 Reversible => Restore(Restore),
    }
}
