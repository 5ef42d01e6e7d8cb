//! Tools that somebody else runs, for agents whose roles are offered them. Who has them is chosen by whoever builds the
//! choir; what they say is material, never an instruction, and labels whoever reads it.

use std::future::Future;
use std::pin::Pin;

use models::chat::Tool;
use serde_json::{Map, Value};

use crate::roles::Role;

/// What a toolbox answers, in its own time, which has an end.
pub type FromToolbox<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an agent can use beside its own tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    pub tools: Vec<Tool>,
    /// Servers that do not answer: their tools are not there now.
    pub silent: Vec<String>,
}

/// A tool of somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Who runs it.
    pub server: String,
    /// Its name there.
    pub tool: String,
    /// Whether it changes nothing, by the person's word. Anything else may have reached the outside once it was called.
    pub reads_only: bool,
}

/// What came of a call, in the words of whoever runs the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub text: String,
    pub failed: bool,
    /// Whether it was cut off, so that nobody knows what became of it.
    pub cut_off: bool,
}

/// Whoever has tools of others.
pub trait Toolbox: Send + Sync + 'static {
    fn offered(&self, role: Role) -> FromToolbox<'_, Offer>;
    /// The tool of a name, if a role is offered one.
    fn find<'a>(&'a self, role: Role, name: &'a str) -> FromToolbox<'a, Option<Foreign>>;
    fn call<'a>(&'a self, tool: &'a Foreign, input: Map<String, Value>) -> FromToolbox<'a, Answered>;
}

/// How the names of all of them begin.
pub const PREFIX: &str = "mcp_";
