//! MCP servers: their state and their tools.

use serde::{Deserialize, Serialize};

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// Not running; started on demand.
    Idle,
    Up,
    /// It did not answer the last time.
    Down,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpServerKind {
    /// A program in a cell of its own.
    Program,
    /// A remote server.
    Address,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerLine {
    pub name: String,
    pub kind: McpServerKind,
    /// The program to start, or the address.
    #[serde(rename = "way")]
    pub target: String,
    pub state: McpServerState,
    /// The last error.
    #[serde(rename = "trouble", default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Names of the vault keys that it receives.
    pub keys: Vec<String>,
    /// Roles whose agents are offered its tools.
    pub roles: Vec<String>,
    /// The tools that are known so far.
    pub tools: Vec<McpToolLine>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpToolLine {
    /// Its name for agents.
    pub name: String,
    /// Its name on the server.
    pub tool: String,
    /// The server's description, after a mark that says so.
    pub description: String,
    /// The same without the mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_description: String,
    /// Whether it is read-only; other tools ask the person first.
    pub reads_only: bool,
}
