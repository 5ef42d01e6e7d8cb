//! What can be undone, redone or restored, and the question that asks for it.

use shared_types::wire::{ChangeResult, ConflictView};
use shared_types::{OpId, RunId, Seq};

use crate::words;

/// Which way an operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Undo,
    Redo,
    /// A run goes on from before one of its steps.
    Retry,
}

impl Way {
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

/// What can go either way: an operation, or all that a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Op(OpId),
    Run(RunId),
    Step(RunId, Seq),
}

/// A change that the person asked for, before it is confirmed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plan {
    Revert { way: Way, target: Target, label: String },
    Restore { seq: Seq, label: String },
}

/// The question that the dialog shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ask {
    pub plan: Plan,
    /// Absent while it is fetched.
    pub preview: Option<ChangeResult>,
    pub conflicts: Vec<ConflictView>,
}
