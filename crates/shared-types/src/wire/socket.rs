//! Text messages over the WebSocket of a tab.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::desktop::DesktopState;
use crate::{OpId, RunId, Seq, Source, TaskId, TerminalId};

/// A text message from the server. Terminal output comes in binary frames: see `TerminalFrame`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FromServer<E = Box<RawValue>> {
    /// The state to start from: first, or again because the client was too far behind.
    State { state: Box<DesktopState> },
    /// The next event, exactly as the log has it.
    Event {
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
        event: E,
    },
    /// All events up to here were sent.
    #[serde(rename = "through")]
    CaughtUp { seq: Seq },
    /// Lists, search and the disk include all events up to here.
    Projected { seq: Seq },
    /// Output of a terminal follows from `offset`, in bytes since its start. Output before `written` was sent before,
    /// so the client must not answer terminal queries in it.
    Attached { terminal: TerminalId, offset: u64, written: u64 },
    /// A terminal ended or was closed.
    TerminalEnded { terminal: TerminalId, code: Option<i32> },
    /// Text that an agent's model streams. For display only: the complete reply arrives as an event. An empty text
    /// discards the text so far.
    #[serde(rename = "said")]
    Speech { run: RunId, task: TaskId, text: String },
    /// Something the person should know.
    Notice { text: String },
    /// A message of the client was not understood. The connection stays open.
    Refused { detail: String },
}

/// The fields of an event that a tab reads. The log has more; see [`StoredEvent`](crate::StoredEvent).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SentEvent {
    pub seq: Seq,
    pub source: Source,
    #[serde(rename = "type")]
    pub name: Box<str>,
    #[serde(rename = "v", default = "first_version")]
    pub version: u16,
    pub op: OpId,
    #[serde(default)]
    pub run_id: Option<RunId>,
    pub payload: Value,
}

fn first_version() -> u16 {
    1
}

/// A text message from the client. Terminal input is sent in binary frames.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromClient {
    /// Requests terminal output from an offset; output that is no longer buffered is skipped.
    Attach {
        terminal: TerminalId,
        offset: u64,
    },
    /// The same for a running command; afterwards its terminal id has the bytes of the operation's id.
    AttachCommand {
        op: OpId,
        offset: u64,
    },
    Detach {
        terminal: TerminalId,
    },
    Resize {
        terminal: TerminalId,
        columns: u16,
        rows: u16,
    },
    /// The tab has shown this many more bytes of output. The server sends only a window's worth ahead of this.
    #[serde(rename = "shown")]
    Acknowledged {
        terminal: TerminalId,
        bytes: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_reads_back() {
        let terminal = TerminalId::from_bytes([1; 16]);
        let event: Box<RawValue> = RawValue::from_string(r#"{"seq": 1}"#.into()).unwrap();
        for message in [
            FromServer::Event { event },
            FromServer::CaughtUp { seq: Seq(3) },
            FromServer::Projected { seq: Seq(4) },
            FromServer::Attached { terminal, offset: 5, written: 9 },
            FromServer::TerminalEnded { terminal, code: None },
            FromServer::TerminalEnded { terminal, code: Some(-1) },
            FromServer::Speech {
                run: RunId::from_bytes([2; 16]),
                task: TaskId::from_bytes([3; 16]),
                text: "hm".into(),
            },
            FromServer::Notice { text: "hello".into() },
            FromServer::Refused { detail: "no".into() },
        ] {
            let json = serde_json::to_string(&message).unwrap();
            let back: FromServer = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), json);
        }
        for wrong in
            ["{}", r#"{"through":{}}"#, r#"{"other":{"seq":1}}"#, "[]", r#"{"through":{"seq":1},"x":{}}"#]
        {
            assert!(serde_json::from_str::<FromServer>(wrong).is_err(), "{wrong}");
        }
    }
}
