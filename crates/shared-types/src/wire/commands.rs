//! Commands that run in a cell, and their results.

use serde::{Deserialize, Serialize};

use crate::payload::tool::{ToolReport, ToolStatus};
use crate::wire::{CallStatus, ChangeResult};
use crate::{CommandId, FilePath, OpId};

/// A command to run in a cell, over a copy of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CellCommand {
    /// The program and its arguments; for a line of shell: `["sh", "-c", "…"]`.
    pub argv: Vec<String>,
    /// The folder to start in; absent for the top of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FilePath>,
    /// A dry run: its changes are kept aside until they are accepted.
    #[serde(default)]
    pub dry: bool,
    #[serde(default)]
    pub network: CommandNetwork,
    #[serde(default)]
    pub limits: CommandLimits,
}

/// The hosts that a command may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CommandNetwork {
    #[default]
    None,
    /// These hosts: `example.org`, or `*.example.org` for all subdomains.
    Hosts(Vec<String>),
    /// Every public host.
    Open,
}

/// Limits that differ from those of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CommandLimits {
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

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandResult {
    pub op: OpId,
    /// How it ended; absent while a dry run waits to be accepted or discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// The exit code of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    pub report: ToolReport,
    /// The changes that it made, or that a dry run would make.
    pub done: ChangeResult,
}

/// A body of `POST /commands`. The caller may set the ids, so that a resend is recognised.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartCommand {
    pub run: CellCommand,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
}

/// A command that was recorded and started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartedCommand {
    pub op: OpId,
}

/// A running command, or a dry run that is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenCommand {
    pub op: OpId,
    pub title: Box<str>,
    pub status: CallStatus,
    /// Whether it has network access.
    pub network: bool,
}
