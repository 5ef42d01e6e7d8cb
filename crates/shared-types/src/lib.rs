//! The types that all crates share: ids, hashes, paths, the event envelope and its typed payloads.
//!
//! This crate does not know storage, time or randomness; it compiles for native and for wasm, and all other crates may
//! depend on it. A new family of events is one file under `payload/` and one line in [`payload`].

pub mod content;
pub mod event;
pub mod hash;
pub mod id;
pub mod label;
pub mod name;
pub mod path;
pub mod payload;
#[cfg(feature = "schema")]
mod schema;
pub mod subject;
pub mod timestamp;
pub mod wire;

pub use content::{ContentRef, INLINE_LIMIT};
pub use event::{Event, StoreBuffers, StoredEvent};
pub use hash::{ChainHash, ContentHash, RootHash};
pub use id::{
    AskId, CommandId, ConversationId, EffectId, EventId, GrantId, IdError, MessageId, NoteId, OpId, RunId,
    Seq, TaskId, TerminalId, UserId, WindowId,
};
pub use label::{Actor, Source, Taint};
pub use name::EventName;
pub use path::{FilePath, PathError};
pub use payload::{Payload, Reversibility};
pub use subject::Subject;
pub use timestamp::Timestamp;
