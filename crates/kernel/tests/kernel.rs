//! The kernel from outside: tables of what each command leads to, and the laws that hold for all of them.
//!
//! Everything runs in [`shell::Shell`], a log in memory that records, decodes and replays as the real one does.

// Helpers of a test may panic like the test itself; clippy's exception covers only the marked functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "kernel/agents.rs"]
mod agents;
#[path = "kernel/shell.rs"]
mod shell;
#[path = "kernel/show.rs"]
mod show;
#[path = "kernel/steps.rs"]
mod steps;

#[path = "kernel/batches.rs"]
mod batches;
#[path = "kernel/calls.rs"]
mod calls;
#[path = "kernel/capture.rs"]
mod capture;
#[path = "kernel/desktop.rs"]
mod desktop;
#[path = "kernel/owed.rs"]
mod owed;
#[path = "kernel/paths.rs"]
mod paths;
#[path = "kernel/redo.rs"]
mod redo;
#[path = "kernel/restore.rs"]
mod restore;
#[path = "kernel/rewind.rs"]
mod rewind;
#[path = "kernel/run_state.rs"]
mod run_state;
#[path = "kernel/runs.rs"]
mod runs;
#[path = "kernel/undo.rs"]
mod undo;
#[path = "kernel/undo_desktop.rs"]
mod undo_desktop;
#[path = "kernel/undo_runs.rs"]
mod undo_runs;
#[path = "kernel/undo_shapes.rs"]
mod undo_shapes;

#[path = "kernel/version.rs"]
mod version;

#[path = "kernel/apart.rs"]
mod apart;
#[path = "kernel/commands.rs"]
mod commands;
#[path = "kernel/edits.rs"]
mod edits;
#[path = "kernel/labels.rs"]
mod labels;
#[path = "kernel/laws.rs"]
mod laws;
#[path = "kernel/total.rs"]
mod total;
