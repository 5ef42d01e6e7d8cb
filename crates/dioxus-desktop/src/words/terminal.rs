//! Terminal: shells in cells, and plain ones.

pub(crate) const SHELLS: &str = "Shells";
pub(crate) const SHELL: &str = "Shell";
pub(crate) const NEW_SHELL: &str = "New shell in a cell";
pub(crate) const KIND_OF_SHELL: &str = "Which kind of shell";
pub(crate) const IN_A_CELL: &str = "In a cell";
pub(crate) const PLAIN_SHELL: &str = "Plain shell";

// A tab.
pub(crate) const ENDED: &str = "Ended";
pub(crate) const PLAIN: &str = "plain";
pub(crate) const ABOUT_CELL: &str =
    "In a cell: it sees the workspace and the programs of this machine, and nothing else";
pub(crate) const ABOUT_PLAIN_SHELL: &str = "A plain shell, with your power over this machine";

pub(crate) fn cell(number: usize) -> String {
    format!("Cell {number}")
}

pub(crate) fn shell(number: usize) -> String {
    format!("{SHELL} {number}")
}

pub(crate) fn close_shell(number: usize) -> String {
    format!("Close shell {number}")
}

// Nothing runs.
pub(crate) const NO_CELL: &str = "No cell could be started";
pub(crate) const NO_CELL_MORE: &str =
    "A terminal runs in a cell, where it sees your files and nothing else of this machine.";
pub(crate) const SHELL_ENDED: &str = "This shell has ended. What it wrote stays until you close it.";
