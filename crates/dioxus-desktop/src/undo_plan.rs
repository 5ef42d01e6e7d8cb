//! Plans to undo, redo, retry or restore, and the dialog that shows one.

use shared_types::wire::{ChangeResult, ConflictView};
use shared_types::{OpId, RunId, Seq};

use crate::words;

/// Undo, redo or retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevertKind {
    Undo,
    Redo,
    /// Continue a run from before one of its steps.
    Retry,
}

impl RevertKind {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Undo => words::UNDO,
            Self::Redo => words::REDO,
            Self::Retry => words::undo::RETRY,
        }
    }

    pub(crate) fn past(self) -> &'static str {
        match self {
            Self::Undo => words::undo::UNDID,
            Self::Redo => words::undo::REDID,
            Self::Retry => words::undo::RETRIED,
        }
    }

    pub(crate) fn route(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Retry => "retry",
        }
    }
}

/// What is reverted: an operation, a run, or a run from one of its steps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevertTarget {
    Op(OpId),
    Run(RunId),
    Step(RunId, Seq),
}

/// What the person asked for; the dialog confirms it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RevertPlan {
    Revert { kind: RevertKind, target: RevertTarget, label: String },
    Restore { seq: Seq, label: String },
}

/// The contents of the dialog.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RevertDialog {
    pub plan: RevertPlan,
    /// Absent while it is being fetched.
    pub preview: Option<ChangeResult>,
    pub conflicts: Vec<ConflictView>,
}
