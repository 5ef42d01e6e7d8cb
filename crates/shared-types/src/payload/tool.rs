//! `tool.*`: commands, and any other tool, as transactions. One call is one operation: the operation's id is the
//! call's, and what it changed stands in the same append as its result.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, TaskId};

/// A tool was called. It is open until a [`ToolResult`] answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Which one: `exec` for a command.
    pub tool: Box<str>,
    /// One line for people, such as the command line.
    pub title: Box<str>,
    /// Its arguments as JSON.
    pub input: ContentRef,
    /// Whether it may reach the outside. Then it cannot be taken back as a whole, only what it did to files.
    pub network: bool,
    /// The agent that called it, if the person did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RequestVerdict {
    Allowed,
    Refused,
}

/// Something inside a call asked for the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRequest {
    pub method: Box<str>,
    pub host: Box<str>,
    pub port: u16,
    pub verdict: RequestVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
    /// Bytes that went out, and that came back.
    pub sent: u64,
    pub received: u64,
}

/// What ended a call before its own end: the person, or a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Cancelled,
    Time,
    Memory,
    Processes,
    Disk,
    Output,
    Files,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ToolStatus {
    /// By itself.
    Exited { code: i32 },
    /// By a signal of its own making.
    Killed { signal: i32 },
    /// By the person or a limit.
    Stopped { why: StopReason },
    /// It could not be started, or what it did could not be taken.
    Failed { reason: Box<str> },
    /// The server ended while it ran.
    Interrupted { reason: Box<str> },
    /// It was a dry run, and the person threw away what it did.
    Discarded,
}

/// Read by its fields rather than through a copy of the whole value, which would cost the desktop ten kilobytes.
impl<'de> Deserialize<'de> for ToolStatus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;

        #[derive(Deserialize)]
        struct Fields {
            is: Box<str>,
            code: Option<i32>,
            signal: Option<i32>,
            why: Option<StopReason>,
            reason: Option<Box<str>>,
        }
        let Fields { is, code, signal, why, reason } = Fields::deserialize(deserializer)?;
        let status = match &*is {
            "exited" => code.map(|code| Self::Exited { code }),
            "killed" => signal.map(|signal| Self::Killed { signal }),
            "stopped" => why.map(|why| Self::Stopped { why }),
            "failed" => reason.map(|reason| Self::Failed { reason }),
            "interrupted" => reason.map(|reason| Self::Interrupted { reason }),
            "discarded" => Some(Self::Discarded),
            _ => None,
        };
        status.ok_or_else(|| D::Error::custom(format_args!("not a whole status: {is}")))
    }
}

/// What is known of a call that has run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolReport {
    /// What it printed, as far as that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<ContentRef>,
    /// All that it printed, in bytes.
    pub written: u64,
    pub millis: u64,
    /// Limits that were met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<StopReason>,
    /// What could not be kept and why; what changed meanwhile, and where the call's version of it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Box<str>>,
}

/// A dry run ended; what it changed waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolHold {
    pub report: ToolReport,
    /// How many paths it changed.
    pub changes: u64,
    /// What it exited with; absent where that was not recorded yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

/// A call ended. The file events beside it, in the same append, are what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    pub status: ToolStatus,
    pub report: ToolReport,
}

events! {
    /// Commands and other tools; the operation's id is the call's.
    ToolEvent {
        /// A tool was called; it is open until a result answers it.
        "tool.call" v 1 Final => Call(ToolCall),
        /// Something inside a call asked for the network.
        "tool.request" v 1 Final => Request(ToolRequest),
        /// A dry run ended, with its exit `code`; what it changed waits to be accepted or discarded.
        "tool.hold" v 1 Final => Hold(ToolHold),
        /// A call ended; what it changed stands beside, in the same append.
        "tool.result" v 1 Final => Result(ToolResult),
    }
}
