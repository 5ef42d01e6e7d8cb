//! Typed errors of the log, one per operation.

use shared_types::payload::DecodeError;
use shared_types::payload::file::BatchError;
use shared_types::{ContentHash, IdError, Seq, UserId};
use thiserror::Error;

/// The error of the storage underneath.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a log cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("no computer here: there is no event log at {0}")]
    Missing(std::path::PathBuf),
    #[error("a log already exists at {0}")]
    Exists(std::path::PathBuf),
    #[error("another process holds this log{}", .pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Locked { pid: Option<u32> },
    #[error("the log was written by a newer version (schema {found}, this one knows {known}); upgrade choir")]
    TooNew { found: i64, known: i64 },
    #[error("the user id stored in the log is not valid")]
    User(#[from] IdError),
    #[error("the log's database is damaged: {0}")]
    Damaged(String),
    #[error("the log's storage cannot be opened")]
    Storage(#[source] Cause),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why an append was refused. The log is unchanged in every case.
#[derive(Debug, Error)]
pub enum AppendError {
    #[error("the log is at {actual}, not at {expected}: another append came first")]
    WrongSeq { expected: Seq, actual: Seq },
    #[error("an append holds 1 to 500 events, this one {0}")]
    Size(usize),
    #[error("found event {found} where event {place} was expected")]
    Misplaced { found: Seq, place: Seq },
    #[error("content {hash} has {size} bytes, too many for an append: stage it as a blob")]
    ContentSize { hash: ContentHash, size: usize },
    #[error("content {0} does not have that hash")]
    WrongHash(ContentHash),
    #[error("the log could not be written; nothing was changed")]
    Storage(#[source] Cause),
}

/// Why events cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("the chain breaks at event {seq}: {reason}; everything before it is intact")]
    Broken { seq: Seq, reason: String },
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
    #[error("the list of event {seq} cannot be read")]
    BatchContent {
        seq: Seq,
        #[source]
        source: ContentError,
    },
    #[error("the log of {user} cannot be read")]
    Storage {
        user: UserId,
        #[source]
        source: Cause,
    },
}

/// Why bytes cannot be stored or read.
#[derive(Debug, Error)]
pub enum ContentError {
    #[error("content {0} is not stored here")]
    Missing(ContentHash),
    #[error("content {0} was purged: its bytes were deleted for good")]
    Purged(ContentHash),
    #[error("content {0} is damaged: the bytes do not have that hash")]
    Damaged(ContentHash),
    #[error("the content could not be stored or read")]
    Storage(#[source] Cause),
}

impl ContentError {
    pub(crate) fn storage(cause: impl Into<Cause>) -> Self {
        Self::Storage(cause.into())
    }

    /// Unwraps the error of a failed read: the log's readers wrap theirs into an [`std::io::Error`].
    pub fn from_read(error: std::io::Error) -> Self {
        error.downcast::<Self>().unwrap_or_else(|other| Self::Storage(Box::new(other)))
    }
}
