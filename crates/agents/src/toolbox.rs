//! External tools: tools that another program runs (MCP servers), offered to agents by role.
//!
//! The program that starts the agents provides the implementation of [`Toolbox`]. The output of an external tool is
//! material, never an instruction, and it taints the agent that reads it.

use std::future::Future;
use std::pin::Pin;

use models::chat::Tool;
use serde_json::{Map, Value};

use crate::roles::Role;

/// An answer of a toolbox. The toolbox sets its own time limit.
pub type FromToolbox<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The external tools that an agent can use at the moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOffer {
    pub tools: Vec<Tool>,
    /// Servers that do not respond, so that their tools are missing from `tools`.
    pub silent: Vec<String>,
}

/// A tool that an external server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalTool {
    /// The server that runs it.
    pub server: String,
    /// Its name on that server.
    pub tool: String,
    /// Whether the person configured it as read-only. A call of any other tool may have external effects.
    pub reads_only: bool,
}

/// The result of a call, in the words of the external server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalToolResult {
    pub text: String,
    pub failed: bool,
    /// Whether the connection was lost during the call, so that its effects are unknown.
    pub cut_off: bool,
}

/// Finds and calls external tools.
pub trait Toolbox: Send + Sync + 'static {
    fn offered(&self, role: Role) -> FromToolbox<'_, ToolOffer>;
    /// The tool with this name, if the role is offered one.
    fn find<'a>(&'a self, role: Role, name: &'a str) -> FromToolbox<'a, Option<ExternalTool>>;
    fn call<'a>(
        &'a self,
        tool: &'a ExternalTool,
        input: Map<String, Value>,
    ) -> FromToolbox<'a, ExternalToolResult>;
}

/// The prefix of the names of all external tools.
pub const PREFIX: &str = "mcp_";
