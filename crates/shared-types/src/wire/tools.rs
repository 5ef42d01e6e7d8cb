//! Tools that others run: MCP servers, how they stand, and what they have.

use serde::{Deserialize, Serialize};

/// How a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolServerState {
    /// Nobody needs it now; it is started when somebody does.
    Idle,
    Up,
    /// It did not answer when it was last needed.
    Down,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolServerKind {
    /// A program in a cell of its own.
    Program,
    /// A server that runs elsewhere.
    Address,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolServerLine {
    pub name: String,
    pub kind: ToolServerKind,
    /// The program that is started, or the address.
    pub way: String,
    pub state: ToolServerState,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Names of the keys in the vault that it is given.
    pub keys: Vec<String>,
    /// Roles whose agents are offered its tools.
    pub roles: Vec<String>,
    /// As far as they are known.
    pub tools: Vec<ToolLine>,
}

/// A tool of a server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolLine {
    /// As agents call it.
    pub name: String,
    /// As its server calls it.
    pub tool: String,
    /// By the server, after a mark that says so.
    pub description: String,
    /// The same without the mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_description: String,
    /// Whether it changes nothing; any other asks the person first.
    pub reads_only: bool,
}
