//! `file.*`: what happens to the files of the workspace. Every change carries what was there before, so that its
//! inverse needs no history.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{ContentHash, ContentRef, FilePath};

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileNode {
    /// Bytes with permission bits.
    File { hash: ContentHash, size: u64, mode: u16 },
    /// A symbolic link that stays inside the workspace.
    Symlink { target: Box<str> },
    /// A folder that is kept even when nothing is in it. Folders above files need no node of their own.
    Folder,
}

impl FileNode {
    pub const DEFAULT_MODE: u16 = 0o644;

    pub fn file(content: ContentRef, mode: u16) -> Self {
        Self::File { hash: content.hash, size: content.size, mode: mode & 0o777 }
    }

    pub fn content(&self) -> Option<ContentRef> {
        match self {
            Self::File { hash, size, .. } => Some(ContentRef { hash: *hash, size: *size }),
            Self::Symlink { .. } | Self::Folder => None,
        }
    }
}

/// A node appeared at a path or was replaced there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWrite {
    pub path: FilePath,
    pub node: FileNode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<FileNode>,
}

/// The node at a path went away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDelete {
    pub path: FilePath,
    pub prev: FileNode,
}

/// A node moved unchanged to a path where nothing was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMove {
    pub from: FilePath,
    pub to: FilePath,
    pub node: FileNode,
}

/// One change within a batch; the same three as the single events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    Write(FileWrite),
    Delete(FileDelete),
    Move(FileMove),
}

impl From<FileChange> for FileEvent {
    fn from(change: FileChange) -> Self {
        match change {
            FileChange::Write(p) => Self::Write(p),
            FileChange::Delete(p) => Self::Delete(p),
            FileChange::Move(p) => Self::Move(p),
        }
    }
}

/// Many changes as one event: the list is content by hash, one JSON object a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBatch {
    pub list: ContentRef,
    pub count: u64,
    /// The list itself, attached by whoever reads the event from a log; never a part of the stored form.
    #[serde(skip)]
    pub changes: Vec<FileChange>,
}

impl FileBatch {
    /// The list as bytes, and the event that names it.
    pub fn of(changes: Vec<FileChange>) -> (Self, Vec<u8>) {
        let mut bytes = Vec::new();
        for change in &changes {
            // Writing plain data to memory has no failure.
            let _ = serde_json::to_writer(&mut bytes, change);
            bytes.push(b'\n');
        }
        let batch = Self { list: ContentRef::of(&bytes), count: changes.len() as u64, changes };
        (batch, bytes)
    }

    /// Attaches the list.
    pub fn attach(&mut self, bytes: &[u8]) -> Result<(), BatchError> {
        let mut changes = Vec::with_capacity(usize::try_from(self.count).unwrap_or_default().min(1 << 20));
        for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            changes.push(serde_json::from_slice(line).map_err(|e| BatchError(e.to_string()))?);
        }
        if changes.len() as u64 != self.count {
            return Err(BatchError(format!("expected {} changes, found {}", self.count, changes.len())));
        }
        self.changes = changes;
        Ok(())
    }
}

/// Why a batch's list cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the list of a file.batch event is not readable: {0}")]
pub struct BatchError(String);

events! {
    /// Files, links and folders of the workspace.
    FileEvent {
        /// A file, link or folder appeared at a path, or replaced what was there.
        "file.write" v 1 Reversible => Write(FileWrite),
        /// What stood at a path went away.
        "file.delete" v 1 Reversible => Delete(FileDelete),
        /// What stood at a path moved, unchanged, to a path where nothing was.
        "file.move" v 1 Reversible => Move(FileMove),
        /// More changes than fit an append, as a list that is content by hash.
        "file.batch" v 1 Reversible => Batch(FileBatch),
    }
}

impl FileEvent {
    /// The changes of this event, however many.
    pub fn changes(&self) -> Cow<'_, [FileChange]> {
        match self {
            Self::Write(p) => Cow::Owned(vec![FileChange::Write(p.clone())]),
            Self::Delete(p) => Cow::Owned(vec![FileChange::Delete(p.clone())]),
            Self::Move(p) => Cow::Owned(vec![FileChange::Move(p.clone())]),
            Self::Batch(batch) => Cow::Borrowed(&batch.changes),
        }
    }
}
