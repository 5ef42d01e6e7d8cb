//! What every backend of the log does, in one trait.

use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use shared_types::{
    ChainHash, CommandId, ContentHash, Event, OpId, RootHash, RunId, Seq, StoredEvent, UserId,
};

use crate::{AppendError, ContentError, ReadError, Staged};

pub use kernel::MAX_EVENTS;

/// The newest durable event: its place and its link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    pub seq: Seq,
    pub hash: ChainHash,
}

/// The events of one command, with the small contents that they name. They become durable together or not at all.
#[derive(Debug, Clone)]
pub struct Append {
    pub command: CommandId,
    /// The seq that the caller believes is the newest: the events take the places after it.
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
    /// Of the view that it was taken of: see [`kernel::VIEW_VERSION`].
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

/// One user's log. Calls block; asynchronous callers give them a thread of their own.
pub trait EventLog: Send + Sync + std::fmt::Debug {
    fn user(&self) -> &UserId;

    fn head(&self) -> Head;

    /// Group commit: the appends of a group become durable with one flush, in order, and are answered one by one.
    /// One that is refused (a wrong seq, too many events) changes nothing and does not stop the others; if the
    /// flush itself fails, all of them are refused and the log is as it was.
    fn append(&self, group: &[Append]) -> Vec<Result<Appended, AppendError>>;

    /// The answer that a command got, if it was appended.
    fn answer(&self, command: CommandId) -> Result<Option<Appended>, ReadError>;

    /// Visits events in order from `from` until the visitor breaks or the log ends, checking the chain on the way.
    /// Everything before a broken link is visited; the break is then the error.
    fn scan(
        &self,
        from: Seq,
        visit: &mut dyn FnMut(&StoredEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError>;

    /// The events of one operation, in order, by index.
    fn operation(&self, op: OpId) -> Result<Vec<StoredEvent<'static>>, ReadError>;

    /// The events of one run, in order, by index.
    fn run(&self, run: RunId) -> Result<Vec<StoredEvent<'static>>, ReadError>;

    /// Waits until the log goes past `after`, at most for `patience`, and returns the newest seq.
    fn wait(&self, after: Seq, patience: Duration) -> Seq;

    /// Wakes everybody who waits in this process, for good: whoever holds the log is about to let go of it.
    fn release(&self);

    /// Takes bytes in: small ones are returned to travel with their append, large ones become a durable blob.
    fn stage(&self, bytes: &mut dyn Read) -> Result<Staged, ContentError>;

    /// Keeps small contents ahead of the append that will name them, so that a large change need not hold all of its
    /// bytes in memory.
    fn store(&self, contents: Vec<(ContentHash, Vec<u8>)>) -> Result<(), ContentError>;

    /// The bytes behind a hash, checked against it before the last of them is handed out.
    fn content(&self, hash: &ContentHash) -> Result<Box<dyn Read + Send>, ContentError>;

    /// A part of the bytes behind a hash, which must lie within them. The whole is checked before any of it is handed
    /// out, in little memory, and not again while the stored file stays as it was.
    fn content_range(
        &self,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, ContentError>;

    /// How many bytes are behind a hash, without reading them.
    fn content_size(&self, hash: &ContentHash) -> Result<u64, ContentError>;

    /// True if the bytes are here, without reading them.
    fn has_content(&self, hash: &ContentHash) -> Result<bool, ContentError>;

    /// Drops bytes for good and remembers that they were purged. Returns how many were there.
    fn purge(&self, hashes: &[ContentHash]) -> Result<u64, ContentError>;

    /// Drops contents and blobs that no event names, such as those of an append that never came. Returns the number
    /// and the bytes freed. Whatever looks like a hash in any payload or list counts as named.
    fn collect(&self) -> Result<(u64, u64), ContentError>;

    /// Every content that is here, with its size: for exports and for the figures of `status`.
    fn each_content(&self, visit: &mut dyn FnMut(ContentHash, u64)) -> Result<(), ContentError>;

    fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), AppendError>;

    /// The newest snapshot at or before a seq.
    fn snapshot(&self, at: Seq) -> Result<Option<Snapshot>, ReadError>;

    /// All snapshots without their slices, oldest first.
    fn snapshots(&self) -> Result<Vec<Snapshot>, ReadError>;
}
