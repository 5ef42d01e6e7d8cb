//! The interface to a cell, the same for every backend.
//!
//! A backend builds the isolation and provides a [`ControlChannel`]; the same cell init serves it inside. So
//! commands, terminals and signals use the same protocol in a jail, a container, and later a virtual machine.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::policy::{Limit, Policy};
use crate::probe::Probe;

/// A way to isolate cells.
pub trait Backend: Send + Sync + std::fmt::Debug {
    fn name(&self) -> &'static str;

    /// Checks which features this machine supports.
    fn probe(&self) -> Probe;

    /// Tells the backend to expect many cells in a row, so that it may prepare the next one in advance.
    fn keep_warm(&self) {}

    /// Builds a cell. `scratch` is an empty folder that the cell owns for its lifetime.
    fn start(&self, policy: &Policy, scratch: &Path) -> Result<Arc<dyn Cell>, StartError>;
}

/// A running cell. It ends on `stop`, when its last handle is dropped, or when this process dies.
pub trait Cell: Send + Sync + std::fmt::Debug {
    /// Runs a command to completion and streams its output to `output`, which may block.
    fn exec(&self, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError>;

    /// Starts a command on a pseudo-terminal of its own.
    fn pty(&self, command: &Command, size: Size) -> Result<Pty, ExecError>;

    /// Starts a long-running command with its standard streams as pipes.
    fn spawn_piped(&self, command: &Command) -> Result<PipedCommand, ExecError>;

    /// Takes the listener that accepts the cell's connections to the proxy address. `None` without network or if
    /// already taken.
    fn take_listener(&self) -> Option<std::net::TcpListener>;

    /// Ends every process in the cell and returns once none is left.
    fn stop(&self) -> Usage;
}

/// Receives output as it arrives.
pub type Sink<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// A byte stream to the cell init.
pub trait ControlChannel: Send + Sync {
    /// Splits the stream so that one thread can read while another writes.
    fn split(&self) -> io::Result<(Box<dyn Read + Send>, Box<dyn Write + Send>)>;

    /// Closes the channel, which ends the cell.
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

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working folder inside the cell.
    pub folder: PathBuf,
    /// Variables in addition to the policy's.
    pub environment: Vec<(String, String)>,
    /// Standard input; empty for none. It is sent in frames of its own.
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

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// The result of a command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    pub status: Status,
    /// Bytes of output.
    pub written: u64,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Exited(i32),
    Signaled(i32),
    /// The command was killed because it exceeded a limit.
    Limited(Limit),
    /// The cell was stopped while the command ran.
    Stopped,
}

/// The resources a cell used, known once it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Processes killed by the out-of-memory killer.
    pub out_of_memory: u64,
    /// Processes that could not be created because of the process limit.
    pub out_of_processes: u64,
    pub memory_peak: u64,
    /// The limit for which the launcher ended the whole cell.
    #[serde(rename = "met")]
    pub exceeded: Option<Limit>,
}

/// A command on a pseudo-terminal.
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

/// A command whose standard streams are pipes. It ends with its cell.
pub struct PipedCommand {
    pub output: Box<dyn Read + Send>,
    pub input: Box<dyn Write + Send>,
    /// Returns the last lines that it has written to standard error so far.
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
    /// Waits for the command to end.
    fn wait(&self) -> Status;
}

/// Why a cell could not be started. Nothing runs, and nothing was changed.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("this machine cannot isolate a command: {0}. Commands never run without isolation.")]
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
