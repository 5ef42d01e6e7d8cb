//! The one interface to a cell, whatever its walls are made of.
//!
//! A backend builds the walls and gives a [`ControlChannel`]; inside, the same agent answers on it. So a command,
//! a terminal and a signal are the same bytes for a jail, a container, and one day a machine of its own.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::policy::{Limit, Policy};
use crate::probe::Probe;

/// A kind of walls.
pub trait Backend: Send + Sync + std::fmt::Debug {
    fn name(&self) -> &'static str;

    /// What works on this machine, and what does not and why.
    fn probe(&self) -> Probe;

    /// From now on cells follow one another, and the next may be prepared while the last one runs.
    fn keep_warm(&self) {}

    /// Builds a cell. `scratch` is an empty folder of its own for as long as it lives.
    fn start(&self, policy: &Policy, scratch: &Path) -> Result<Arc<dyn Cell>, StartError>;
}

/// A running cell. It ends when it is stopped, when its last handle is dropped, or when this process dies.
pub trait Cell: Send + Sync + std::fmt::Debug {
    /// Runs a command to its end; what it writes is handed to `output` as it comes, which may wait.
    fn exec(&self, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError>;

    /// Starts a command on a terminal of its own.
    fn pty(&self, command: &Command, size: Size) -> Result<Pty, ExecError>;

    /// Starts a command that is spoken with for as long as it lives: bytes in, bytes out, and no terminal between.
    fn spawn_piped(&self, command: &Command) -> Result<PipedCommand, ExecError>;

    /// Where connections that were made inside, to the proxy's address, arrive; once, and only with a network.
    fn take_listener(&self) -> Option<std::net::TcpListener>;

    /// Ends everything inside, and returns when nothing of it is left.
    fn stop(&self) -> Usage;
}

/// Told of output as it comes.
pub type Sink<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// A byte stream to the agent inside.
pub trait ControlChannel: Send + Sync {
    /// Both directions, so that one thread reads while another writes.
    fn split(&self) -> io::Result<(Box<dyn Read + Send>, Box<dyn Write + Send>)>;

    /// Lets go, which ends the cell.
    fn close(&self);
}

impl ControlChannel for std::os::unix::net::UnixStream {
    fn split(&self) -> io::Result<(Box<dyn Read + Send>, Box<dyn Write + Send>)> {
        Ok((Box::new(self.try_clone()?), Box::new(self.try_clone()?)))
    }

    fn close(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The folder to start in, inside.
    pub folder: PathBuf,
    /// Variables beside those of the policy.
    pub environment: Vec<(String, String)>,
    /// What the command reads; nothing if it is empty. It travels by itself.
    #[serde(skip)]
    pub input: Vec<u8>,
}

impl Command {
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let argv = argv.into_iter().map(Into::into).collect();
        Self { argv, folder: crate::policy::WORKSPACE.into(), environment: Vec::new(), input: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    pub status: Status,
    /// Bytes that it wrote.
    pub written: u64,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Exited(i32),
    Signaled(i32),
    /// It was ended because it met a limit.
    Limited(Limit),
    /// The cell was stopped under it.
    Stopped,
}

/// What a cell used, known when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Processes that were ended for want of memory.
    pub out_of_memory: u64,
    /// Processes that were refused.
    pub out_of_processes: u64,
    pub memory_peak: u64,
    /// The limit for which the whole cell was ended from outside.
    pub met: Option<Limit>,
}

/// A command on a terminal: what it writes, what it reads, and the rest.
pub struct Pty {
    pub output: Box<dyn Read + Send>,
    pub input: Box<dyn Write + Send>,
    pub control: Box<dyn PtyControl>,
}

impl std::fmt::Debug for Pty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pty")
    }
}

/// A command that is spoken with. It ends with its cell.
pub struct PipedCommand {
    pub output: Box<dyn Read + Send>,
    pub input: Box<dyn Write + Send>,
    /// The end of what it complained of so far.
    pub stderr_tail: Arc<dyn Fn() -> String + Send + Sync>,
}

impl std::fmt::Debug for PipedCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PipedCommand")
    }
}

pub trait PtyControl: Send + Sync {
    fn resize(&self, size: Size) -> io::Result<()>;
    fn signal(&self, signal: i32) -> io::Result<()>;
    /// Waits for the command's end.
    fn wait(&self) -> Status;
}

/// Why there is no cell. Nothing runs, and nothing was changed.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("this machine cannot isolate a command: {0}. Nothing is run without protection.")]
    Unprotected(String),
    #[error("the cell could not be set up: {step}: {reason}")]
    Setup { step: String, reason: String },
    #[error("the cell's policy cannot be applied: {0}")]
    Policy(String),
    #[error("the cell's launcher could not be started")]
    Launcher(#[source] io::Error),
    #[error("the cell ended before it was ready")]
    Died,
}

/// Why a command did not run.
#[derive(Debug, Error)]
pub enum ExecError {
    #[error("{program}: {reason}")]
    NotStarted { program: String, reason: String },
    #[error("the cell has ended")]
    Gone,
}
