//! Folders, files that were found, what a file was; and the bodies of routes that take paths.

use serde::{Deserialize, Serialize};

use crate::payload::file::FileNode;
use crate::{FilePath, OpId, Seq, Source, Timestamp};

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    pub path: FilePath,
    pub node: FileNode,
    /// When it last changed.
    pub ts: Timestamp,
    pub seq: Seq,
}

/// A folder: what is in it, folders first, each kind by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listing {
    /// Absent for the workspace itself.
    pub path: Option<FilePath>,
    pub entries: Vec<Entry>,
    /// How far the list has followed the log.
    pub seq: Seq,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    pub path: FilePath,
    pub size: u64,
    pub matched: Matched,
}

/// Where the words stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Matched {
    Name,
    Text,
}

/// What a file was at some time.
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
pub struct FromTo {
    pub from: FilePath,
    pub to: FilePath,
}

/// A body of the routes that take one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AtPath {
    pub path: FilePath,
}
