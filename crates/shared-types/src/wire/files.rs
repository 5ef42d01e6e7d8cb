//! Folders, search results and versions of files; and the bodies of routes that take paths.

use serde::{Deserialize, Serialize};

use crate::payload::file::FileNode;
use crate::{FilePath, OpId, Seq, Source, Timestamp};

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    pub path: FilePath,
    pub node: FileNode,
    /// When it last changed.
    pub ts: Timestamp,
    pub seq: Seq,
}

/// The entries of a folder: folders first, each kind sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listing {
    /// Absent for the workspace itself.
    pub path: Option<FilePath>,
    pub entries: Vec<Entry>,
    /// The last event that the list includes.
    pub seq: Seq,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileMatch {
    pub path: FilePath,
    pub size: u64,
    pub matched: MatchedIn,
}

/// Where the query matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MatchedIn {
    Name,
    Text,
}

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    pub seq: Seq,
    pub op: OpId,
    pub ts: Timestamp,
    pub source: Source,
    pub actor: String,
    pub label: String,
    /// Absent where it was deleted or moved away.
    pub node: Option<FileNode>,
}

/// A body of the routes that move and copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveBody {
    pub from: FilePath,
    pub to: FilePath,
}

impl MoveBody {
    pub fn into_pair(self) -> (FilePath, FilePath) {
        (self.from, self.to)
    }
}

/// A change of several files and folders as one operation: all of it or nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeSeveral {
    Delete(Vec<FilePath>),
    Move(Vec<MoveBody>),
    Copy(Vec<MoveBody>),
}

/// A file of an upload of several: where it goes, and how many of the bytes are its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UploadedFile {
    pub path: FilePath,
    pub size: u64,
}

/// A body of the routes that take one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PathBody {
    pub path: FilePath,
}
