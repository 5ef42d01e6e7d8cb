//! The process of a terminal, on this machine or in a cell.

use std::io::{self, Read, Write};
use std::sync::Arc;

/// The size of a screen, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// A process on a pseudo terminal.
pub struct Process {
    /// Its output, until it ends.
    pub output: Box<dyn Read + Send>,
    /// Its input.
    pub input: Box<dyn Write + Send>,
    pub control: Arc<dyn ProcessControl>,
    /// Waits for its end and returns its exit code, if it has one. Called after the end of the output.
    pub wait: Box<dyn FnOnce() -> Option<i32> + Send>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

/// Controls a process, from several threads at once.
pub trait ProcessControl: Send + Sync {
    /// Sets the size of its screen. May wait for a program that does not read.
    fn resize(&self, size: Size) -> io::Result<()>;

    /// Ends it, even while [`resize`](Self::resize) waits. Does nothing if it has ended.
    fn end(&self);
}
