//! References to bytes by their hash. Events never carry bytes, only hash and size.

use serde::{Deserialize, Serialize};

use crate::ContentHash;

/// Bytes up to this size are stored in the log's database, in the same transaction as the event that names them; larger
/// ones are stored as blobs and are durable before the append.
pub const INLINE_LIMIT: usize = 64 * 1024;

/// The hash and the size of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentRef {
    pub hash: ContentHash,
    pub size: u64,
}

impl ContentRef {
    /// The reference to these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: ContentHash::of(bytes), size: bytes.len() as u64 }
    }
}
