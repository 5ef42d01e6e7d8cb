//! `undo`, `redo`, `restore`: marks on operations. Their changes are recorded as ordinary events of the same operation,
//! so that replay never merges anything.

use serde::{Deserialize, Serialize};

use crate::{FilePath, OpId, Seq};

/// An operation was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The operation whose inverse was applied.
    pub target: OpId,
    /// The ordinary operation at the bottom of a chain of undo and redo.
    pub root: OpId,
    /// If that is a run: its operations that were undone with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OpId>,
    /// Pairs of paths between which a file was moved back and also changed, so that there is no `file.move` event for
    /// it. An undo of this undo treats both ends of a pair together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(FilePath, FilePath)>,
}

/// An undo was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redo {
    /// The undo operation whose inverse was applied.
    pub target: OpId,
    /// The ordinary operation that is in effect again.
    pub root: OpId,
    /// If that is a run: its operations that are in effect again with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OpId>,
    /// As in an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(FilePath, FilePath)>,
}

/// The computer returned to its state at a seq.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    pub seq: Seq,
}

events! {
    /// Undo, redo and restore.
    RevertEvent {
        /// An operation was undone.
        "undo" v 1 Reversible => Undo(Undo),
        /// An undo was undone.
        "redo" v 1 Reversible => Redo(Redo),
        /// Files, windows, settings and notes returned to their state at a seq.
        "restore" v 1 Reversible => Restore(Restore),
    }
}
