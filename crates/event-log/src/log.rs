//! The [`EventLog`] trait: the contract of every backend.

use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use shared_types::{CommandId, ContentHash, Event, OpId, RootHash, RunId, Seq, StoredEvent, UserId};

use crate::content::Staged;
use crate::error::{AppendError, ContentError, ReadError};
use crate::signal::{Head, HeadListener};

pub use kernel::MAX_EVENTS;

/// The events of one command, with the small contents that they name. They become durable together or not at all.
#[derive(Debug, Clone)]
pub struct Append {
    pub command: CommandId,
    /// The newest seq as the caller knows it: the events get the seqs after it.
    pub expected: Seq,
    pub events: Vec<Event>,
    /// Bytes up to the inline limit, by hash. Larger ones are staged as blobs before the append.
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

/// The answer to an append, and to every resend of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub first: Seq,
    pub last: Seq,
}

/// The state at a seq, in slices, with the roots that replay must reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: Seq,
    pub root: RootHash,
    /// The version of the view that was encoded: see [`kernel::VIEW_VERSION`].
    pub version: u32,
    pub slices: Vec<SliceSnapshot>,
}

/// One slice of a snapshot, encoded by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceSnapshot {
    pub name: String,
    pub root: RootHash,
    pub bytes: Vec<u8>,
}

/// One user's log. Calls block; asynchronous callers run them on a blocking thread.
pub trait EventLog: Send + Sync + std::fmt::Debug {
    fn user(&self) -> &UserId;

    fn head(&self) -> Head;

    /// Group commit: the appends of a group become durable in order with one flush, and each gets its own answer.
    /// A refused append (a wrong seq, too many events) changes nothing and does not stop the others; if the flush
    /// fails, all are refused and the log is unchanged.
    fn append(&self, group: &[Append]) -> Vec<Result<Appended, AppendError>>;

    /// The answer that a command got, if its events were appended.
    fn answer(&self, command: CommandId) -> Result<Option<Appended>, ReadError>;

    /// Visits events in order from `from` until the visitor breaks or the log ends, and checks the chain. Visits
    /// everything before a broken link, then returns the break as the error.
    fn scan(
        &self,
        from: Seq,
        visit: &mut dyn FnMut(&StoredEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError>;

    /// The events of one operation, in order, by index.
    fn operation(&self, op: OpId) -> Result<Vec<StoredEvent<'static>>, ReadError>;

    /// The events of one run, in order, by index.
    fn run(&self, run: RunId) -> Result<Vec<StoredEvent<'static>>, ReadError>;

    /// Waits until the log is past `after` or `timeout` is over, and returns the newest seq.
    fn wait(&self, after: Seq, timeout: Duration) -> Seq;

    /// Calls `listener` with the newest seq after every append of this process, for as long as the log is open.
    fn on_append(&self, listener: HeadListener);

    /// Ends all waiting in this process, now and later: the log is about to be closed.
    fn release(&self);

    /// Gives back memory that only makes the next requests faster. Called when the log has been idle for a while.
    fn release_memory(&self) {}

    /// Stages bytes: small ones are returned for the append that names them, large ones become a durable blob.
    fn stage(&self, bytes: &mut dyn Read) -> Result<Staged, ContentError>;

    /// Stores small contents before the append that will name them, so that a large change need not keep all of its
    /// bytes in memory.
    fn store(&self, contents: Vec<(ContentHash, Vec<u8>)>) -> Result<(), ContentError>;

    /// The bytes behind a hash, checked against it before the last of them is returned.
    fn content(&self, hash: &ContentHash) -> Result<Box<dyn Read + Send>, ContentError>;

    /// A range of the bytes behind a hash. The whole content is checked before the first byte is returned, without
    /// loading it into memory, and not again while the stored file is unchanged.
    fn content_range(
        &self,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, ContentError>;

    /// The number of bytes behind a hash, without reading them.
    fn content_size(&self, hash: &ContentHash) -> Result<u64, ContentError>;

    /// Whether the bytes are stored, without reading them.
    fn has_content(&self, hash: &ContentHash) -> Result<bool, ContentError>;

    /// Deletes bytes for good and records that they were purged. Returns how many contents were deleted.
    fn purge(&self, hashes: &[ContentHash]) -> Result<u64, ContentError>;

    /// Garbage collection: deletes contents and blobs that no event names, such as those of an append that never came.
    /// Returns how many and how many bytes. Anything that looks like a hash in a payload or list counts as named.
    fn collect(&self) -> Result<(u64, u64), ContentError>;

    /// Every stored content with its size: for exports and for the figures of `status`.
    fn each_content(&self, visit: &mut dyn FnMut(ContentHash, u64)) -> Result<(), ContentError>;

    fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), AppendError>;

    /// The newest snapshot at or before a seq.
    fn snapshot(&self, at: Seq) -> Result<Option<Snapshot>, ReadError>;

    /// All snapshots without their slices, oldest first.
    fn snapshots(&self) -> Result<Vec<Snapshot>, ReadError>;
}

/// All bytes behind a hash, checked.
pub fn read_content(log: &dyn EventLog, hash: &ContentHash) -> Result<Vec<u8>, ContentError> {
    let mut bytes = Vec::new();
    log.content(hash)?.read_to_end(&mut bytes).map_err(ContentError::from_read)?;
    Ok(bytes)
}
