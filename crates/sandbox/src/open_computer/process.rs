//! What runs in a terminal, however it was started: on this machine or in a cell.

use std::io::{self, Read, Write};
use std::sync::Arc;

/// How large a screen is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// A process on a pseudo terminal.
pub struct Process {
    /// What it writes, until it is gone.
    pub output: Box<dyn Read + Send>,
    /// What it is typed.
    pub input: Box<dyn Write + Send>,
    pub control: Arc<dyn ProcessControl>,
    /// Waits for its end and says its exit code, if it has one. Called once the output is over.
    pub wait: Box<dyn FnOnce() -> Option<i32> + Send>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

/// What can be done to a process from outside, by several threads at once.
pub trait ProcessControl: Send + Sync {
    /// Tells it the size of its screen. May wait for a program that does not read.
    fn resize(&self, size: Size) -> io::Result<()>;

    /// Ends it, even while [`resize`](Self::resize) waits; one that has ended already is left alone.
    fn end(&self);
}
