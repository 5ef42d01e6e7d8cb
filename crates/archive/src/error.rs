//! Why an export or an import fails. Each error says what is wrong and where.

use std::io;
use std::path::{Path, PathBuf};

use event_log::sqlite::AdoptError;
use event_log::{AppendError, ContentError, OpenError, ReadError};
use shared_types::payload::DecodeError;
use shared_types::payload::file::BatchError;
use shared_types::{ChainHash, ContentHash, FilePath, PathError, RootHash, Seq};
use thiserror::Error;
use zip::result::ZipError;

/// Why a computer could not be exported. The partial output is not a valid archive.
#[derive(Debug, Error)]
pub enum ExportError {
    #[error("the log has no event {at} yet: its newest is {head}")]
    NotYet { at: Seq, head: Seq },
    #[error("the log cannot be read")]
    Read(#[from] ReadError),
    #[error("event {seq} cannot be written as one line: {reason}")]
    Event { seq: Seq, reason: String },
    #[error("the contents cannot be listed")]
    Contents(#[source] ContentError),
    #[error("content {hash} cannot be read")]
    Content {
        hash: ContentHash,
        #[source]
        source: ContentError,
    },
    #[error("the archive cannot be written")]
    Write(#[source] io::Error),
    #[error("the archive cannot be written")]
    Zip(#[from] ZipError),
}

/// What is wrong with an entry, found before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EntryFault {
    #[error("unexpected entry name")]
    Name,
    #[error("it is encrypted")]
    Encrypted,
    #[error("it is not a regular file")]
    Kind,
    #[error("unsupported compression method")]
    Method,
    #[error("contents above 64 KiB must be stored, but this one is deflated")]
    Deflated,
    #[error("stored entry with different packed and unpacked sizes")]
    Stored,
    #[error("it has a comment")]
    Comment,
}

/// Why an archive was refused. Nothing was imported.
#[derive(Debug, Error)]
pub enum ImportError {
    #[error("the file cannot be read as a zip archive")]
    Zip(#[source] ZipError),
    #[error("the zip archive has bytes that belong to no entry: {0}")]
    Stray(&'static str),
    #[error("the zip archive has two entries of the same name")]
    Duplicate,
    #[error("entry {name:?} is refused: {fault}")]
    Entry { name: String, fault: EntryFault },
    #[error("the archive has no {0}")]
    NoEntry(&'static str),
    #[error("{what} is {size} bytes; the limit is {limit}")]
    TooLarge { what: String, size: u64, limit: u64 },
    #[error("manifest.json is not a manifest: {reason}")]
    Manifest { reason: String },
    #[error("the archive has version {found}, but this program supports {known}; upgrade choir")]
    Version { found: u32, known: u32 },
    #[error("{what} is {found}, but the manifest says {declared}")]
    Sum { what: &'static str, declared: u64, found: u64 },
    #[error("entry {name} is {found} bytes, but the zip's directory says {declared}")]
    Size { name: String, declared: u64, found: u64 },
    #[error("entry {name} cannot be unpacked")]
    Unreadable {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("log/events.jsonl does not have the hash of the manifest")]
    EventsHash,
    #[error("line {line} of log/events.jsonl is not an event: {reason}")]
    Line { line: u64, reason: String },
    #[error("line {line} of log/events.jsonl holds event {found}")]
    Misplaced { line: u64, found: Seq },
    #[error("the chain breaks at event {seq}: its hash does not follow from the event before it")]
    Unlinked { seq: Seq },
    #[error("the events end at {found}, but the manifest says {declared}")]
    End { declared: Seq, found: Seq },
    #[error("the newest event has the hash {found}, but the manifest says {declared}")]
    Head { declared: ChainHash, found: ChainHash },
    #[error("event {seq} cannot be decoded")]
    Undecodable {
        seq: Seq,
        #[source]
        source: DecodeError,
    },
    #[error("the list of event {seq} cannot be decoded")]
    Batch {
        seq: Seq,
        #[source]
        source: BatchError,
    },
    #[error("event {seq} refers to the list {hash}, which is not in the archive")]
    NoList { seq: Seq, hash: ContentHash },
    #[error("event {seq} makes {path} a link that points outside the workspace")]
    LinkLeaves { seq: Seq, path: FilePath },
    #[error("{path} is below a path that is not a folder")]
    NotATree { path: FilePath },
    #[error("replaying the events gives the root {found}, but the manifest says {declared}")]
    Root { declared: RootHash, found: RootHash },
    #[error("content {0} does not match its hash")]
    WrongContent(ContentHash),
    #[error("event {seq} refers to content {hash}, which is neither in the archive nor declared absent")]
    NoContent { seq: Seq, hash: ContentHash },
    #[error("content {0} is in the archive and also declared absent")]
    NotAbsent(ContentHash),
    #[error("no event refers to content {0}")]
    Unnamed(ContentHash),

    #[error("this computer is not empty: its log is at event {0}")]
    NotEmpty(Seq),
    #[error("the computer's log cannot be opened")]
    Open(#[from] OpenError),
    #[error("the events cannot be imported")]
    Adopt(#[source] AdoptError),
    #[error("the new log cannot be finished")]
    Snapshot(#[source] AppendError),
    #[error("content {hash} cannot be imported")]
    Content {
        hash: ContentHash,
        #[source]
        source: ContentError,
    },
    #[error("small contents cannot be imported")]
    Contents(#[source] ContentError),
    #[error("cannot {action} {}", .path.display())]
    Disk {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} cannot be imported into that folder")]
    Path {
        path: FilePath,
        #[source]
        source: PathError,
    },
}

/// Adds the action and the path to an I/O error.
pub(super) fn disk(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ImportError {
    let path = path.to_owned();
    move |source| ImportError::Disk { action, path, source }
}
