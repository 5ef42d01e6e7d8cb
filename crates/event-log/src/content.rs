//! Bytes on their way into the log.

use shared_types::{ContentHash, ContentRef};

/// Bytes taken in. Either they are a durable blob already, or they must travel with the append that names them.
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

    /// What the append has to carry.
    pub fn into_inline(self) -> Option<(ContentHash, Vec<u8>)> {
        match self {
            Self::Inline { content, bytes } => Some((content.hash, bytes)),
            Self::Blob { .. } => None,
        }
    }
}
