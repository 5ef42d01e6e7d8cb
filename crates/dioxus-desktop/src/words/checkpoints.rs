//! Checkpoints: git commits of the workspace, and comparisons.

// The form.
pub(crate) const MESSAGE: &str = "Message of the checkpoint";
pub(crate) const MESSAGE_EXAMPLE: &str = "What is this checkpoint about?";
pub(crate) const MAKE: &str = "Make a checkpoint";
pub(crate) const SAVING: &str = "Saving…";
pub(crate) const MADE: &str = "Checkpoint made";
/// The message of a checkpoint that was given none.
pub(crate) const NO_MESSAGE: &str = "Checkpoint";

// The list.
pub(crate) const ALL_SAVED: &str = "Everything is in a checkpoint.";
pub(crate) const NONE_YET: &str = "No checkpoints yet";
pub(crate) const NONE_YET_MORE: &str = "A checkpoint is a git commit of the whole workspace. One is made by itself from time to time; make one now to mark a good moment.";
pub(crate) const RESTORE: &str = "Restore…";

pub(crate) fn not_saved_yet(changes: u64) -> String {
    format!("{} since the last checkpoint.", super::changes(changes))
}

/// What follows the name of a commit.
pub(crate) fn about(made: &str, seq: shared_types::Seq) -> String {
    format!(" · {made} · {}", super::event(seq))
}

// The comparison.
pub(crate) const COMPARISON: &str = "Comparison";
pub(crate) const COMPARE_WITH: &str = "Compare with";
pub(crate) const NOW: &str = "now";
pub(crate) const NO_DIFFERENCE: &str = "No file differs.";
