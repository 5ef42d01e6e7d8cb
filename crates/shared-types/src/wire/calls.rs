//! Tool calls, as the timeline and the caller see them.

use serde::{Deserialize, Serialize};

use crate::payload::tool::{ToolReport, ToolRequest, ToolStatus};

/// The state of a call, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CallStatus {
    Running,
    /// A dry run has ended, and its changes wait to be accepted or discarded.
    Held,
    Exited,
    Killed,
    Stopped,
    Failed,
    Interrupted,
    Discarded,
}

impl CallStatus {
    const ALL: [Self; 8] = [
        Self::Running,
        Self::Held,
        Self::Exited,
        Self::Killed,
        Self::Stopped,
        Self::Failed,
        Self::Interrupted,
        Self::Discarded,
    ];

    /// The word for how a call ended.
    pub const fn of(status: &ToolStatus) -> Self {
        match status {
            ToolStatus::Exited { .. } => Self::Exited,
            ToolStatus::Killed { .. } => Self::Killed,
            ToolStatus::Stopped { .. } => Self::Stopped,
            ToolStatus::Failed { .. } => Self::Failed,
            ToolStatus::Interrupted { .. } => Self::Interrupted,
            ToolStatus::Discarded => Self::Discarded,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Held => "held",
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Discarded => "discarded",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// A call, in a row of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallLine {
    pub status: CallStatus,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Whether it had network access; effects over the network cannot be undone.
    pub network: bool,
}

/// A call in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallDetails {
    pub tool: Box<str>,
    pub title: Box<str>,
    pub network: bool,
    /// The arguments as JSON text; absent if they are long, or were purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// How it ended; absent while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// The report of the result, or of a dry run that is not settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ToolReport>,
    /// How many paths a dry run changed.
    #[serde(rename = "held", default, skip_serializing_if = "Option::is_none")]
    pub dry_run_changes: Option<u64>,
    /// The exit code of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The first network requests; `asked` counts all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<ToolRequest>,
    #[serde(rename = "asked")]
    pub request_count: u64,
}
