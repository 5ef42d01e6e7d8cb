//! What goes over the one WebSocket of a tab, as text.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::desktop::DesktopState;
use crate::{OpId, RunId, Seq, Source, TaskId, TerminalId};

/// What the server says over the WebSocket, as text. Terminal output comes in binary frames: see `TerminalFrame`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FromServer<E = Box<RawValue>> {
    /// Where the client starts, or starts again because it was too far behind.
    State { state: Box<DesktopState> },
    /// The next event, exactly as the log has it.
    Event {
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
        event: E,
    },
    /// Everything up to here was sent.
    Through { seq: Seq },
    /// Lists, search and the disk are up to date with the log as of here.
    Projected { seq: Seq },
    /// Output of a terminal begins or goes on from `offset`: bytes since it was started. What comes before `written` was
    /// there already, so questions in it to the screen have been answered.
    Attached { terminal: TerminalId, offset: u64, written: u64 },
    /// A terminal ended by itself, or was closed.
    TerminalEnded { terminal: TerminalId, code: Option<i32> },
    /// An agent says something just now. It is shown and forgotten: the whole reply comes as an event. With no words,
    /// what it said so far is void.
    Said { run: RunId, task: TaskId, text: String },
    /// Something the person should know.
    Notice { text: String },
    /// What the client sent could not be understood; the connection goes on.
    Refused { detail: String },
}

/// What a tab reads of an event. The log has more; see [`StoredEvent`](crate::StoredEvent).
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

/// What a client says over the WebSocket, as text. Terminal input goes in binary frames.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromClient {
    /// Sends the output of a terminal from a place on; what is no longer kept is left out.
    Attach {
        terminal: TerminalId,
        offset: u64,
    },
    /// The same for a command that runs; from then on it is spoken of as the terminal with the bytes of its id.
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
    /// So many bytes of output have been shown; the server sends only a window's worth ahead of this.
    Shown {
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
            FromServer::Through { seq: Seq(3) },
            FromServer::Projected { seq: Seq(4) },
            FromServer::Attached { terminal, offset: 5, written: 9 },
            FromServer::TerminalEnded { terminal, code: None },
            FromServer::TerminalEnded { terminal, code: Some(-1) },
            FromServer::Said {
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
