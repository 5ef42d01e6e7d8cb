//! Operations as the timeline shows them, their changes, and undo.

use serde::{Deserialize, Serialize};

use super::calls::{CallDetails, CallLine};
use crate::payload::file::FileNode;
use crate::{FilePath, OpId, Seq, Source, Subject, Timestamp};

/// One operation as a row of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operation {
    pub op: OpId,
    pub first: Seq,
    pub last: Seq,
    pub ts: Timestamp,
    pub source: Source,
    pub actor: String,
    pub family: String,
    pub label: String,
    pub events: u64,
    pub files: u64,
    pub reversible: bool,
    pub undone: bool,
    /// Present if the operation is the call of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallLine>,
    /// The command or the title of that call, which `label` has after a verb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Present if the operation is an undo or a redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<Reverted>,
}

/// What an undo or a redo was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reverted {
    pub direction: RevertDirection,
    /// The ordinary operation that was undone or is in effect again. For a run it is the operation that started it.
    pub op: OpId,
    /// The title or the label of that operation.
    pub title: String,
}

/// Undo or redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RevertDirection {
    Undo,
    Redo,
}

/// Operations, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operations {
    pub rows: Vec<Operation>,
    /// The number of operations that match the filter.
    pub total: u64,
}

/// One file that an operation changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    pub path: FilePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileNode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileNode>,
    /// A unified diff, if both sides are text and not too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The result of a change, or of its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Seq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Seq>,
    /// The operation that was undone or redone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<OpId>,
    /// True if this is a resend: the answer is that of the first request.
    pub resent: bool,
    /// True if this is a preview and nothing was changed.
    pub preview: bool,
    /// The first changes; `total` counts all of them.
    pub changes: Vec<Change>,
    pub total: u64,
    /// Changes to anything but files, and remarks for the person.
    pub notes: Vec<String>,
}

/// An operation with its changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationDetails {
    pub operation: Operation,
    pub changes: Vec<Change>,
    pub total: u64,
    pub notes: Vec<String>,
    /// Present if the operation is the call of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallDetails>,
}

/// A body of `POST …/undo` and `…/redo`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevertOptions {
    #[serde(default)]
    pub preview: bool,
    /// For every conflict that `each` does not list: keep today's state, or take the one from before.
    #[serde(rename = "conflicts", default)]
    pub others: Option<Side>,
    /// A choice for single conflicts.
    #[serde(default)]
    pub each: Vec<(Subject, Side)>,
}

/// A side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Keep,
    Take,
}

/// A body of `POST /restore`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    pub seq: Seq,
    #[serde(default)]
    pub preview: bool,
}
