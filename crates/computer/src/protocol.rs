//! The protocol between the command line and the holder of a computer: frames over a Unix socket.
//!
//! A frame is a little-endian length of four bytes and that many bytes. A caller sends one JSON [`Envelope`], then the
//! bytes of the request (none for most) in frames that an empty frame ends. The answer is any number of
//! progress, output and run updates, then exactly one final [`Answer`].

mod runs;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use isolation::Stream;
use kernel::{Base, Choice};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shared_types::wire::{CellCommand, CommandResult, DesktopAction, MoveBody, PartsReport, UploadedFile};
pub use shared_types::wire::{Change, ChangeResult};
use shared_types::{Actor, ChainHash, CommandId, ContentHash, FilePath, OpId, RootHash, Seq, Subject};

pub use runs::{RunRequest, RunResponse, RunUpdate};

use crate::error::{ComputerError, ErrorCode};

pub const VERSION: u32 = 1;
const JSON_LIMIT: usize = 16 * 1024 * 1024;
const CHUNK_LIMIT: usize = 1024 * 1024;

/// A request with the ids by which a resend is recognised.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    pub version: u32,
    /// The interface that the person uses.
    #[serde(default = "command_line")]
    pub actor: Actor,
    pub command: CommandId,
    pub op: OpId,
    pub request: Request,
}

impl Envelope {
    pub fn new(request: Request) -> Self {
        let (command, op) = (crate::ids::new_command(), crate::ids::new_op());
        Self { version: VERSION, actor: Actor::CLI, command, op, request }
    }

    /// Reads a request. The version is checked first, because the meaning of other versions is unknown.
    pub fn receive(input: &mut dyn Read) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let bytes = receive_bytes(input, JSON_LIMIT)?;
        let invalid = |e: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, e.to_string());
        let Versioned { version } = serde_json::from_slice(&bytes).map_err(|e| invalid(&e))?;
        if version != VERSION {
            return Err(invalid(&format!("protocol version {version} is not supported, only {VERSION}")));
        }
        serde_json::from_slice(&bytes).map_err(|e| invalid(&e))
    }
}

fn command_line() -> Actor {
    Actor::CLI
}

/// How to resolve conflicts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    #[serde(default)]
    pub each: Vec<(Subject, Choice)>,
    #[serde(default)]
    pub others: Option<Choice>,
}

/// Which outside edits must be captured before a request is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureNeed {
    /// The request does not concern files.
    None,
    /// The edits that the watcher has captured are enough: the request names its files, and a concurrent edit is
    /// merged. Without a watcher, all edits are captured.
    WatcherIsEnough,
    /// All edits: the request concerns any file, or compares with all of them.
    FullScan,
}

impl Request {
    /// Whether the request reads or makes something before it is submitted, so that a resend must be recognised first.
    /// The writer recognises all other resends.
    pub(crate) fn reads_before_submitting(&self) -> bool {
        match self {
            Self::Copy { .. }
            | Self::Restore { preview: false, .. }
            | Self::Checkpoint { .. }
            | Self::Import { .. }
            | Self::Purge { .. } => true,
            Self::Status
            | Self::Parts
            | Self::RunCommand(_)
            | Self::Accept { .. }
            | Self::Discard { .. }
            | Self::Write { .. }
            | Self::WriteSeveral { .. }
            | Self::MakeFolder { .. }
            | Self::Remove { .. }
            | Self::Gesture(_)
            | Self::Move { .. }
            | Self::Undo { .. }
            | Self::Redo { .. }
            | Self::Restore { preview: true, .. }
            | Self::AgentRuns(_)
            | Self::CollectGarbage
            | Self::Rebuild => false,
        }
    }

    pub fn capture_need(&self) -> CaptureNeed {
        match self {
            Self::Gesture(_)
            | Self::Parts
            | Self::CollectGarbage
            // These two capture outside edits themselves, for the files that the command touched.
            | Self::Accept { .. }
            | Self::Discard { .. }
            // Captured when the call is recorded, which also happens without a request.
            | Self::RunCommand(_)
            // It captures them itself, and reports how many.
            | Self::Status => CaptureNeed::None,
            Self::Write { .. }
            | Self::WriteSeveral { .. }
            | Self::MakeFolder { .. }
            | Self::Remove { .. }
            | Self::Copy { .. }
            | Self::Move { .. } => CaptureNeed::WatcherIsEnough,
            Self::Undo { .. }
            | Self::Redo { .. }
            | Self::Restore { .. }
            | Self::Checkpoint { .. }
            | Self::Import { .. }
            | Self::Purge { .. }
            | Self::Rebuild => CaptureNeed::FullScan,
            Self::AgentRuns(request) => request.capture_need(),
        }
    }
}

/// Everything that changes a computer, or needs its holder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Captures outside edits, brings everything up to date and reports the status.
    Status,
    /// How the parts of the process that holds the computer are doing.
    Parts,
    /// Runs a command in a cell; the bytes that follow are its standard input.
    #[serde(rename = "run")]
    RunCommand(CellCommand),
    /// Accepts the changes of a dry run.
    Accept {
        call: String,
    },
    /// Discards the changes of a dry run.
    Discard {
        call: String,
    },
    /// Writes the bytes that follow.
    Write {
        path: FilePath,
        mode: Option<u16>,
        base: Base,
    },
    /// Writes several files over what is there. Their bytes follow one after the other.
    WriteSeveral {
        files: Vec<UploadedFile>,
    },
    /// Makes a folder, which is kept while it is empty.
    MakeFolder {
        path: FilePath,
    },
    Remove {
        paths: Vec<FilePath>,
    },
    /// Copies files and folders to free paths.
    Copy {
        copies: Vec<MoveBody>,
    },
    /// Windows and settings.
    Gesture(DesktopAction),
    Move {
        moves: Vec<MoveBody>,
    },
    /// An operation by its id, a part of it or `@SEQ`; without one, the person's latest.
    Undo {
        target: Option<String>,
        choices: Choices,
        preview: bool,
    },
    Redo {
        target: Option<String>,
        choices: Choices,
        preview: bool,
    },
    Restore {
        seq: Seq,
        preview: bool,
    },
    Checkpoint {
        message: String,
    },
    /// Imports the files of an export into this computer.
    Import {
        file: PathBuf,
        into: Option<FilePath>,
    },
    Purge {
        hashes: Vec<ContentHash>,
        paths: Vec<FilePath>,
        reason: String,
    },
    /// Runs of agents.
    #[serde(rename = "runs")]
    AgentRuns(RunRequest),
    /// Deletes contents that no event references.
    #[serde(rename = "collect")]
    CollectGarbage,
    /// Computes the read models again from the first event, and compares the whole disk with the log.
    Rebuild,
}

/// An answer: progress, output and run updates first, then exactly one final answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Progress {
        phase: String,
        done: u64,
        total: u64,
    },
    /// Output of a command, one character for each byte.
    Output {
        errors: bool,
        text: String,
    },
    /// What happened in a run that the caller follows.
    #[serde(rename = "heard")]
    RunUpdate(RunUpdate),
    #[serde(rename = "ran")]
    CommandResult(Box<CommandResult>),
    #[serde(rename = "runs")]
    AgentRuns(RunResponse),
    Done(ChangeResult),
    Status(Box<Status>),
    Parts(PartsReport),
    Failure(ComputerError),
}

impl Answer {
    /// The result of a request that changes something.
    pub fn into_done(self) -> Result<ChangeResult, ComputerError> {
        match self {
            Self::Done(done) => Ok(done),
            Self::CommandResult(ran) => Ok(ran.done),
            Self::Failure(failure) => Err(failure),
            Self::Status(_)
            | Self::Parts(_)
            | Self::AgentRuns(_)
            | Self::Progress { .. }
            | Self::Output { .. }
            | Self::RunUpdate(_) => Ok(ChangeResult::default()),
        }
    }

    /// The answer to a request about runs.
    pub fn into_runs(self) -> Result<RunResponse, ComputerError> {
        match self {
            Self::AgentRuns(answer) => Ok(answer),
            Self::Failure(failure) => Err(failure),
            Self::Done(_)
            | Self::Parts(_)
            | Self::CommandResult(_)
            | Self::Status(_)
            | Self::Progress { .. }
            | Self::Output { .. }
            | Self::RunUpdate(_) => {
                Err(ComputerError::new(ErrorCode::Failed, "unexpected answer of the computer"))
            }
        }
    }

    pub(crate) fn output(stream: Stream, bytes: &[u8]) -> Self {
        Self::Output { errors: stream == Stream::Err, text: bytes.iter().copied().map(char::from).collect() }
    }
}

/// The bytes of a text with one character for each.
pub fn bytes_from_latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
}

/// The status of a computer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    pub user: String,
    pub owner: Option<String>,
    pub workspace: PathBuf,
    pub head: Seq,
    pub hash: ChainHash,
    pub root: RootHash,
    pub files: u64,
    pub bytes: u64,
    pub lag: u64,
    /// Outside edits that this request captured.
    pub captured: u64,
    pub captured_op: Option<OpId>,
    pub skipped: Vec<(String, String)>,
    pub unavailable: Vec<FilePath>,
    /// Files of the log that cannot be written because something else is at their path.
    pub blocked: Vec<String>,
    pub checkpoint: Option<(String, Seq)>,
    pub unsaved_operations: u64,
    pub pending_effects: u64,
    pub undone_operations: u64,
}

/// Writes one JSON frame.
pub fn send(out: &mut dyn Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    send_bytes(out, &bytes)
}

fn send_bytes(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a frame is too large"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(bytes)?;
    out.flush()
}

/// Reads one JSON frame. Bytes that are not valid JSON are an error.
pub fn receive<T: DeserializeOwned>(input: &mut dyn Read) -> io::Result<T> {
    let bytes = receive_bytes(input, JSON_LIMIT)?;
    serde_json::from_slice(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

fn receive_bytes(input: &mut dyn Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > limit {
        let message = format!("a frame of {length} bytes is over the limit of {limit}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Sends all bytes of a reader, ended by an empty frame.
pub fn send_body(out: &mut dyn Write, body: &mut dyn Read) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_LIMIT / 4];
    loop {
        match body.read(&mut chunk)? {
            0 => return send_bytes(out, &[]),
            count => send_bytes(out, &chunk[..count])?,
        }
    }
}

/// The bytes that follow an envelope, as a reader.
pub struct Body<'a> {
    input: &'a mut dyn Read,
    chunk: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<'a> Body<'a> {
    pub fn new(input: &'a mut dyn Read) -> Self {
        Self { input, chunk: Vec::new(), at: 0, ended: false }
    }
}

impl std::fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl Read for Body<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() && !self.ended {
            self.chunk = receive_bytes(self.input, CHUNK_LIMIT)?;
            self.at = 0;
            self.ended = self.chunk.is_empty();
        }
        let count = out.len().min(self.chunk.len() - self.at);
        out[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
