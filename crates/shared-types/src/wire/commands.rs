//! Commands that run in a cell, and what came of them.

use serde::{Deserialize, Serialize};

use crate::payload::tool::{ToolReport, ToolStatus};
use crate::wire::{CallStatus, Done};
use crate::{CommandId, FilePath, OpId};

/// A command to run in a cell, over a copy of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The program and its arguments; for a line of shell: `["sh", "-c", "…"]`.
    pub argv: Vec<String>,
    /// The folder to start in; the top of the workspace if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FilePath>,
    /// Keep what it changes aside until it is accepted.
    #[serde(default)]
    pub dry: bool,
    #[serde(default)]
    pub network: RunNetwork,
    #[serde(default)]
    pub limits: RunLimits,
}

/// What a command may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunNetwork {
    #[default]
    None,
    /// These hosts: `example.org`, or `*.example.org` for all below it.
    Hosts(Vec<String>),
    /// Every public host.
    Open,
}

/// Limits that differ from those of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Bytes that may be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// Bytes that may be printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ran {
    pub op: OpId,
    /// How it ended; absent while a dry run waits to be accepted or discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// What a dry run exited with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    pub report: ToolReport,
    /// What it changed, or would change.
    pub done: Done,
}

/// A body of `POST /commands`. With the ids of the caller's own, a resend is harmless.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartCommand {
    pub run: RunCommand,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
}

/// A command that was recorded, and runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartedCommand {
    pub op: OpId,
}

/// A command that runs, or a dry run that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenCommand {
    pub op: OpId,
    pub title: Box<str>,
    pub status: CallStatus,
    /// Whether it may reach the outside.
    pub network: bool,
}
