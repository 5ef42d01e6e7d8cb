//! Undo, redo and restore: the dialog that asks first, and what it leads to.

pub(crate) const RETRY: &str = "Try again from here";
pub(crate) const UNDID: &str = "Undid";
pub(crate) const REDID: &str = "Redid";
pub(crate) const RETRIED: &str = "Goes on from before";

/// `Undid: made notes.md`; also the title of the dialog.
pub(crate) fn verb_of(verb: &str, label: &str) -> String {
    format!("{verb}: {label}")
}

pub(crate) fn done(verb: &str) -> String {
    format!("{verb}: done")
}

pub(crate) fn returned_to(label: &str) -> String {
    format!("Returned to {label}")
}

// The dialog.
pub(crate) const RESTORE: &str = "Restore";
pub(crate) const NO_FILE_CHANGES: &str = "No file changes.";
pub(crate) const NOTHING_WOULD_CHANGE: &str = "Nothing would change: it is already so.";
pub(crate) const AGENTS_BEGIN_AGAIN: &str = "Agents begin again from there.";
pub(crate) const CAN_BE_UNDONE: &str = "This can be undone too.";

pub(crate) fn restore_to(label: &str) -> String {
    format!("Restore to {label}")
}

// Conflicts.
pub(crate) const CHANGED_SINCE: &str =
    "Something changed since. Choose a side for each; nothing is done until you confirm.";
pub(crate) const KEEP_PRESENT: &str = "Keep today's";
pub(crate) const TAKE_OTHER: &str = "Take the other";
pub(crate) const WITH_THESE_CHOICES: &str = "With these choices";
