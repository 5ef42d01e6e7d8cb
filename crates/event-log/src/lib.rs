//! The event log of one user: the [`EventLog`] trait, its backends, contents by hash, snapshots.
//!
//! The log is the truth; everything else is computed from it. A backend acknowledges an append only when it is
//! durable, keeps the chain of hashes, and never returns bytes that do not match their hash. It does not know what
//! events mean: the kernel decides, and the one writer in [`writer`] joins the two.

mod blobs;
mod check;
pub mod conformance;
pub mod content;
pub mod decode;
mod disk;
pub mod error;
pub mod lock;
pub mod log;
pub mod memory;
mod references;
pub mod replay;
pub mod signal;
pub mod snapshot;
pub mod sqlite;
pub mod subscription;
mod verified;
pub mod writer;

pub use content::Staged;
pub use decode::decode_event;
pub use error::{AppendError, ContentError, OpenError, ReadError};
pub use lock::LogLock;
pub use log::{Append, Appended, EventLog, MAX_EVENTS, SliceSnapshot, Snapshot, read_content};
pub use memory::MemoryLog;
pub use references::find_hashes;
pub use signal::{Head, HeadListener, HeadSignal};
pub use sqlite::SqliteLog;
pub use subscription::Subscription;
