//! Timeline: operations, commands and what they printed, the bar that goes back in time.

use shared_types::Seq;

use super::plural;
use crate::clock;

// Filters.
pub(crate) const WHO: &str = "Who";
pub(crate) const WHAT: &str = "What";
pub(crate) const SEARCH: &str = "Words";
pub(crate) const SEARCH_LABEL: &str = "Words in the row";
/// The value of a filter by author, and its name.
pub(crate) const SOURCES: &[(&str, &str)] =
    &[("", "Everyone"), ("user", "You"), ("agent", "Agents"), ("system", "System")];
/// The value of a filter by kind of operation, and its name.
pub(crate) const FAMILIES: &[(&str, &str)] = &[
    // Moving windows about is no work, and would hide what is.
    ("work", "Work"),
    ("", "Everything"),
    ("file", "Files"),
    ("tool", "Commands"),
    ("window", "Windows"),
    ("setting", "Settings"),
    ("checkpoint", "Checkpoints"),
    ("undo", "Undo"),
];

// Rows.
pub(crate) const OPERATIONS: &str = "Operations, newest first";
pub(crate) const NOTHING_HERE: &str = "Nothing here";
pub(crate) const NOTHING_HERE_MORE: &str =
    "What happens on this computer appears here, and can be undone. With a filter, try a wider one.";
pub(crate) const RUNS_IN_CELL: &str = "in a cell";
pub(crate) const RESTORE_TO_HERE_ASK: &str = "Restore to here…";
pub(crate) const LOOK_AT_DESKTOP: &str = "Look at the desktop then";

/// An operation that undid or redid another: `Undid “made notes.md”`.
pub(crate) fn reverted(done: &str, label: &str) -> String {
    format!("{done} {}", super::quoted(label))
}

/// A verb whose dialog opens first.
pub(crate) fn ask_first(verb: &str) -> String {
    format!("{verb}…")
}

pub(crate) fn verb_on(verb: &str, title: &str) -> String {
    format!("{verb} {title}")
}

pub(crate) fn events(n: u64) -> String {
    plural(n, "event")
}

// Details.
pub(crate) const DETAILS: &str = "Details";
pub(crate) const CLOSE_DETAILS: &str = "Close the details";
pub(crate) const LOOK: &str = "Look";

pub(crate) fn about(actor: &str, at: &str, first: Seq, last: Seq) -> String {
    format!("{actor} · {at} · events {first}–{last}")
}

// The bar on top.
pub(crate) const LOOK_BACK: &str = "Look at the desktop at another moment";

pub(crate) fn at_event(seq: u64) -> String {
    format!("Event {}", clock::count(seq))
}

pub(crate) fn at_now(operations: u64) -> String {
    format!("Now · {}", plural(operations, "operation"))
}

// How a command stands, on its row.
pub(crate) const DRY_RUN: &str = "dry run";
pub(crate) const RUNNING: &str = "running";
/// An exit whose code is not known.
pub(crate) const EXITED: &str = "exited";
pub(crate) const KILLED: &str = "killed";
pub(crate) const STOPPED: &str = "stopped";
pub(crate) const INTERRUPTED: &str = "interrupted";
pub(crate) const DISCARDED: &str = "discarded";

pub(crate) fn exit(code: i32) -> String {
    format!("exit {code}")
}

pub(crate) fn dry_run_exit(code: i32) -> String {
    format!("{DRY_RUN} · {}", exit(code))
}

// How a command ended, in its details.
pub(crate) const RUNS: &str = "Runs in a cell";
pub(crate) const TRIED: &str = "Tried on a copy. Nothing is changed until you accept it";
pub(crate) const YOU_STOPPED_IT: &str = "You stopped it; nothing of it was kept";
pub(crate) const YOU_DISCARDED_IT: &str = "You threw away what it did";

pub(crate) fn exit_code(code: i32) -> String {
    format!("Exit code {code}")
}

pub(crate) fn tried_with_exit(code: i32) -> String {
    format!("{} · {TRIED}", exit_code(code))
}

pub(crate) fn killed_by(signal: i32) -> String {
    format!("Killed by signal {signal}; nothing of it was kept")
}

pub(crate) fn stopped_at(limit: &str) -> String {
    format!("Stopped at the limit of {limit}; nothing of it was kept")
}

pub(crate) fn did_not_run(reason: &str) -> String {
    format!("It did not run: {reason}")
}

pub(crate) fn interrupted(reason: &str) -> String {
    format!("Interrupted: {reason}")
}

// Limits of commands.
pub(crate) const TIME: &str = "time";
pub(crate) const MEMORY: &str = "memory";
pub(crate) const PROCESSES: &str = "processes";
pub(crate) const DISK_SPACE: &str = "disk space";
pub(crate) const OUTPUT_LIMIT: &str = "output";
pub(crate) const FILES: &str = "files";

pub(crate) fn met_limits(limits: &[&str]) -> String {
    format!("met the limit of {}", limits.join(" and "))
}

// The network of a command.
pub(crate) const WITH_NETWORK: &str = "with the network";
pub(crate) const NO_NETWORK: &str = "no network";
pub(crate) const ALLOWED: &str = "allowed";
pub(crate) const REFUSED: &str = "refused";

pub(crate) fn requests(n: u64) -> String {
    format!("{} to the network", plural(n, "request"))
}

// What a command printed.
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const PRINTED_NOTHING: &str = "It printed nothing.";
pub(crate) const PRINTED_NOTHING_YET: &str = "It has printed nothing yet.";

pub(crate) fn show_all_lines(lines: usize) -> String {
    format!("Show all {lines} lines")
}

// A dry run.
pub(crate) const ACCEPT: &str = "Accept";
pub(crate) const DISCARD: &str = "Discard";
pub(crate) const KEPT: &str = "Dry run kept";
pub(crate) const THROWN_AWAY: &str = "Dry run thrown away";
