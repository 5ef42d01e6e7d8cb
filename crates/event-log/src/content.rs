//! Contents on their way into the log: small ones travel in an append, large ones become blobs before it.

use std::io::Read;

use shared_types::{ContentHash, ContentRef, INLINE_LIMIT};

/// Staged bytes: either a durable blob already, or small bytes that go into the append that names them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "small contents become durable only with the append that carries them"]
pub enum Staged {
    Inline { content: ContentRef, bytes: Vec<u8> },
    Blob { content: ContentRef },
}

impl Staged {
    pub fn content(&self) -> ContentRef {
        match self {
            Self::Inline { content, .. } | Self::Blob { content } => *content,
        }
    }

    /// The bytes that the append has to carry, if they are small.
    pub fn into_inline(self) -> Option<(ContentHash, Vec<u8>)> {
        match self {
            Self::Inline { content, bytes } => Some((content.hash, bytes)),
            Self::Blob { .. } => None,
        }
    }
}

/// The start of some bytes, read far enough to know how they are stored.
pub(crate) enum ReadStart {
    /// All of them: they fit into an append.
    Small(Vec<u8>),
    /// More than fit into an append: they must become a blob.
    Large(Vec<u8>),
}

/// Reads until it is known whether the bytes fit the inline limit.
pub(crate) fn read_start(bytes: &mut dyn Read) -> std::io::Result<ReadStart> {
    let mut start = Vec::new();
    bytes.take(INLINE_LIMIT as u64 + 1).read_to_end(&mut start)?;
    Ok(if start.len() > INLINE_LIMIT { ReadStart::Large(start) } else { ReadStart::Small(start) })
}
