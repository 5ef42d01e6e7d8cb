//! The desktop: windows, taskbar, launcher, notifications, toasts.

use super::plural;

// The background.
pub(crate) const WINDOWS: &str = "Windows";
pub(crate) const PROMPT: &str = "Ask, find or do…";
pub(crate) const ALL_APPS: &str = "All apps";
pub(crate) const KEYBOARD_SHORTCUTS: &str = "Keyboard shortcuts";
pub(crate) const HELLO: &str = "Hello";
// "Press Ctrl K and say what should be done, or begin here."
pub(crate) const PRESS: &str = "Press ";
pub(crate) const CTRL_K: &str = "Ctrl K";
pub(crate) const SAY_WHAT: &str = " and say what should be done, or begin here.";
pub(crate) const OUT_OF_REACH: &str =
    "The computer is out of reach. What is open stays open; changes are sent when it is back.";

pub(crate) fn hello(name: &str) -> String {
    format!("{HELLO}, {name}")
}

// The past.
pub(crate) const RETURN_TO_NOW: &str = "Return to now";

pub(crate) fn as_it_was(seq: shared_types::Seq) -> String {
    format!("The desktop as it was at {}. Nothing can be changed here.", super::event(seq))
}

pub(crate) fn window_as_it_was(title: &str) -> String {
    format!("{title}, as it was")
}

// Windows.
pub(crate) const MAXIMISE: &str = "Maximise";
pub(crate) const MAXIMISE_OR_RESTORE: &str = "Maximise or restore";
pub(crate) const RESTORE: &str = "Restore";
pub(crate) const MINIMISE: &str = "Minimise";
pub(crate) const LEFT_HALF: &str = "Left half";
pub(crate) const RIGHT_HALF: &str = "Right half";

pub(crate) fn closed_unsaved(title: &str) -> String {
    format!("{title} was closed with unsaved changes")
}

// The taskbar.
pub(crate) const TASKBAR: &str = "Taskbar";
pub(crate) const NEW_WINDOW: &str = "New window";
pub(crate) const CONNECTED: &str = "Connected";
pub(crate) const CONNECTING: &str = "Connecting";
pub(crate) const NOT_CONNECTED: &str = "Not connected";

pub(crate) fn running(app: &str) -> String {
    format!("{app}, running")
}

pub(crate) fn close_window(title: &str) -> String {
    format!("Close {title}")
}

pub(crate) fn runs_paused(n: usize) -> String {
    format!("{n} paused")
}

pub(crate) fn runs_waiting(n: usize) -> String {
    format!("{n} waiting")
}

pub(crate) fn runs_working(n: usize) -> String {
    format!("{n} working")
}

pub(crate) fn questions(n: u64) -> String {
    plural(n, "question")
}

pub(crate) fn since_checkpoint(changes: u64) -> String {
    format!("{} since the last checkpoint", super::changes(changes))
}

/// What the runs have cost so far, after what they do.
pub(crate) fn cost_so_far(money: &str) -> String {
    format!("· {money}")
}

// Notifications and toasts.
pub(crate) const NOTIFICATIONS: &str = "Notifications";
pub(crate) const CLEAR: &str = "Clear";
pub(crate) const NOTHING_NEW: &str = "Nothing new";
pub(crate) const NOTHING_NEW_MORE: &str = "What needs your attention is kept here.";
pub(crate) const REOPEN: &str = "Reopen";
pub(crate) const DISMISS: &str = "Dismiss";

/// What an operation did, and to how many files.
pub(crate) fn done_to_files(text: &str, files: u64) -> String {
    format!("{text} ({})", super::files(files))
}
