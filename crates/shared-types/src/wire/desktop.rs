//! The state that a desktop holds, and the gestures that change it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::payload::window::Window;
use crate::{CommandId, OpId, RootHash, Seq, WindowId};

/// The slices of the view that the desktop holds, at one point of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopState {
    pub seq: Seq,
    pub root: RootHash,
    pub windows: Vec<(WindowId, Window)>,
    pub settings: Vec<(Box<str>, Value)>,
    /// The newest checkpoint, and how many operations on files came after it.
    pub checkpoint: Option<(Box<str>, Seq)>,
    pub unsaved: u64,
}

/// A gesture on the desktop, with ids by which a resend is recognised.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gesture {
    pub command: CommandId,
    pub op: OpId,
    pub action: DesktopAction,
}

/// What a gesture does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DesktopAction {
    SetWindow { window: WindowId, state: Window },
    CloseWindow { window: WindowId },
    SetSetting { key: Box<str>, value: Value },
    ClearSetting { key: Box<str> },
}

/// Storage usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Storage {
    pub events: u64,
    pub operations: u64,
    pub files: u64,
    /// Bytes of the files as they are now.
    pub workspace: u64,
    /// Bytes of the log with its contents, of the read models, of large contents, and of checkpoints.
    pub log: u64,
    pub views: u64,
    pub blobs: u64,
    pub checkpoints: u64,
}
