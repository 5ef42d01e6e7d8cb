//! The supervised parts of a running computer: what is supervised, by which rule, and how each part is doing.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A kind of supervised part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// The computer itself, below the application.
    Computer,
    /// The writer of the event log.
    Log,
    /// Reads new events once, for all tabs.
    EventBus,
    /// Brings lists, search and files up to date, and makes checkpoints that are due.
    Projector,
    /// Records what other programs do to the files.
    Watcher,
    /// Serves the command line over `.choir/choir.sock`.
    Socket,
    /// Starts runs and sends them their events.
    Agents,
    /// One run of agents.
    Run,
    /// One terminal.
    Terminal,
    /// One command in a cell.
    Command,
    /// The program of one MCP server.
    McpServer,
}

/// What happens when a part of this kind fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartRule {
    pub kind: PartKind,
    pub name: String,
    /// What starts it again.
    pub restart: String,
    /// What happens to unfinished work.
    pub work: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    Running,
    /// It failed and is started again after a pause.
    Restarting,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartStatus {
    pub kind: PartKind,
    /// Which one, where there are several of its kind: an id or a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub state: PartState,
    /// When it was started last.
    pub since: Timestamp,
    /// How often it failed and was started again.
    pub restarts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

/// The supervision tree of one computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartsReport {
    /// One row per kind, also for kinds of which none runs now.
    pub rules: Vec<PartRule>,
    pub parts: Vec<PartStatus>,
}
