//! `tool.*`: commands and other tool calls, as transactions. One call is one operation with the call's id, and its
//! changes are in the same append as its result.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, TaskId};

/// A tool was called. The call is open until its [`ToolResult`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The tool's name: `exec` for a command.
    pub tool: Box<str>,
    /// One line for people, such as the command line.
    pub title: Box<str>,
    /// Its arguments as JSON.
    pub input: ContentRef,
    /// Whether it may use the network. Then only its changes to files can be undone.
    pub network: bool,
    /// The agent that called it, if the person did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// The decision about a network request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RequestVerdict {
    Allowed,
    Refused,
}

/// A network request was made inside a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRequest {
    pub method: Box<str>,
    pub host: Box<str>,
    pub port: u16,
    pub verdict: RequestVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
    /// Bytes sent and received.
    pub sent: u64,
    pub received: u64,
}

/// Why a call was stopped: by the person, or at a limit.
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
    /// The process exited.
    Exited { code: i32 },
    /// The process was killed by a signal that the server did not send.
    Killed { signal: i32 },
    /// The person or a limit stopped it.
    Stopped { why: StopReason },
    /// It could not be started, or its changes could not be recorded.
    Failed { reason: Box<str> },
    /// The server stopped while it ran.
    Interrupted { reason: Box<str> },
    /// It was a dry run, and its changes were discarded.
    Discarded,
}

/// Written by hand: serde's derive for tagged enums buffers the whole value, which adds ten kilobytes to the desktop.
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

/// Facts about a call that has run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolReport {
    /// Its output, up to a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<ContentRef>,
    /// The size of its whole output, in bytes.
    pub written: u64,
    pub millis: u64,
    /// Limits that it reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<StopReason>,
    /// What could not be recorded and why; files that changed meanwhile, and the name of the call's version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Box<str>>,
}

/// A dry run ended; its changes wait to be accepted or discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolHold {
    pub report: ToolReport,
    /// The number of changed paths.
    pub changes: u64,
    /// Its exit code; absent in older events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

/// A call ended. The file events in the same append are its changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    pub status: ToolStatus,
    pub report: ToolReport,
}

events! {
    /// Commands and other tool calls; the operation's id is the call's.
    ToolEvent {
        /// A tool was called; the call is open until its result.
        "tool.call" v 1 Final => Call(ToolCall),
        /// A network request was made inside a call.
        "tool.request" v 1 Final => Request(ToolRequest),
        /// A dry run ended, with its exit `code`; its changes wait to be accepted or discarded.
        "tool.hold" v 1 Final => Hold(ToolHold),
        /// A call ended; its changes are in the same append.
        "tool.result" v 1 Final => Result(ToolResult),
    }
}
