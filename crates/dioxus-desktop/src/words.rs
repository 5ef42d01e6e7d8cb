//! The desktop's texts on the screen, in one place, so that they can be read as a whole.
//!
//! This file has the texts that several apps share; each app has a module of its own. A fixed text is a constant, a text
//! with values a function. Some sentences come from the server and are shown as they are: labels of operations, reasons
//! of errors and of undo conflicts, notes of previews, why a model or an MCP server cannot be used. Class names, ids, routes and keys are not words. Times, sizes and amounts are written by
//! [`crate::clock`] and [`crate::format`].

pub(crate) mod apps;
pub(crate) mod cards;
pub(crate) mod checkpoints;
pub(crate) mod desktop;
pub(crate) mod editor;
pub(crate) mod files;
pub(crate) mod help;
pub(crate) mod prompt;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod shortcuts;
pub(crate) mod sign_in;
pub(crate) mod terminal;
pub(crate) mod timeline;
pub(crate) mod tour;
pub(crate) mod undo;
pub(crate) mod viewer;

use crate::clock;

// Buttons.
pub(crate) const CANCEL: &str = "Cancel";
pub(crate) const CLOSE: &str = "Close";
pub(crate) const COPY: &str = "Copy";
pub(crate) const NOTHING: &str = "Nothing";
pub(crate) const OPEN: &str = "Open";
pub(crate) const REDO: &str = "Redo";
pub(crate) const RESTORE_TO_HERE: &str = "Restore to here";
pub(crate) const STOP: &str = "Stop";
pub(crate) const TEST: &str = "Test";
pub(crate) const TRY_AGAIN: &str = "Try again";
pub(crate) const UNDO: &str = "Undo";

// States.
pub(crate) const LOADING: &str = "Loading";
pub(crate) const UNDONE: &str = "undone";
pub(crate) const FAILED: &str = "failed";

// Failures.
pub(crate) const COULD_NOT_BE_READ: &str = "This could not be read";
pub(crate) const NO_ANSWER: &str = "The computer does not answer. Nothing was lost; try again in a moment.";

pub(crate) fn answer_unreadable(reason: &str) -> String {
    format!("The answer could not be read ({reason}). Reload the page.")
}

pub(crate) fn answered_with(status: u16) -> String {
    format!("The computer answered {status}.")
}

/// The reason for a frame of the socket that is neither text nor output of a terminal.
pub(crate) const NOT_A_FRAME: &str = "a frame of the connection";

/// `detail` comes from the server.
pub(crate) fn message_refused(detail: &str) -> String {
    format!("The computer refused a message from this page: {detail}")
}

pub(crate) fn part_not_loaded(reason: &str) -> String {
    format!("This part of the desktop could not be loaded ({reason}). Reload the page to try again.")
}

// Changed files.
pub(crate) const CHANGED: &str = "changed";
pub(crate) const DELETED: &str = "deleted";
pub(crate) const MOVED: &str = "moved";
pub(crate) const NEW: &str = "new";
pub(crate) const NO_TEXT_TO_COMPARE: &str = "No text to compare.";

pub(crate) fn more_lines(count: usize) -> String {
    format!("… {count} more lines\n")
}

pub(crate) fn and_more(count: u64) -> String {
    format!("and {} more", clock::count(count))
}

// Names of things with their number.

/// `1 file`, `3 files`
fn plural(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", clock::count(n)) }
}

pub(crate) fn changes(n: u64) -> String {
    plural(n, "change")
}

pub(crate) fn files(n: u64) -> String {
    plural(n, "file")
}

pub(crate) fn steps(n: u64) -> String {
    plural(n, "step")
}

/// The name of a moment in the log.
pub(crate) fn event(seq: shared_types::Seq) -> String {
    format!("event {seq}")
}

/// A label as it is quoted in a sentence.
pub(crate) fn quoted(label: &str) -> String {
    format!("“{label}”")
}
