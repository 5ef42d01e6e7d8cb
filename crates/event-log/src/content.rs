//! Bytes on their way into the log, and out of it.

use std::io::Read;

use shared_types::{ContentHash, ContentRef, INLINE_LIMIT};

use crate::{ContentError, EventLog};

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

/// All bytes behind a hash, checked.
pub fn read_content(log: &dyn EventLog, hash: &ContentHash) -> Result<Vec<u8>, ContentError> {
    let mut bytes = Vec::new();
    log.content(hash)?.read_to_end(&mut bytes).map_err(ContentError::from_read)?;
    Ok(bytes)
}

/// Bytes as far as they tell where they belong.
pub(crate) enum Intake {
    /// All of them, few enough to travel with an append.
    Small(Vec<u8>),
    /// The beginning of what must become a blob.
    Large(Vec<u8>),
}

/// Reads until it is known whether the bytes fit the inline limit.
pub(crate) fn take_in(bytes: &mut dyn Read) -> std::io::Result<Intake> {
    let mut start = Vec::new();
    bytes.take(INLINE_LIMIT as u64 + 1).read_to_end(&mut start)?;
    Ok(if start.len() > INLINE_LIMIT { Intake::Large(start) } else { Intake::Small(start) })
}
