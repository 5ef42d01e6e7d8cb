//! A client for MCP servers, which provide tools and are not trusted.
//!
//! A server is configured in `[mcp.NAME]` of `choir.toml` ([`settings`]): a program, started by an implementation of
//! [`Launch`], or a URL. Its tool definitions are reduced to what providers accept ([`definition`]), and its answers
//! to what a model can read ([`answer`]). A server that fails to start, hangs, floods or crashes affects only the
//! current call; the next call starts it again ([`server`]). This crate knows no agents, no cells and no events.

mod answer;
mod connection;
mod definition;
mod http;
mod process;
mod server;
mod servers;
pub mod settings;

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

pub use answer::ToolAnswer;
pub use definition::ToolDefinition;
pub use servers::{ServerKind, ServerState, ServerStatus, ServerTool, Servers};
pub use settings::{NetworkScope, Program, Settings, SettingsError};
pub use zeroize::Zeroizing;

/// Looks up secrets by their name in the vault. Called at every start of a server, so a changed secret is used from
/// then on.
pub type Keys = Arc<dyn Fn(&str) -> Option<Zeroizing<String>> + Send + Sync>;

/// Starts a program in isolation. May block; it is called on a separate thread.
pub trait Launch: Send + Sync + 'static {
    fn launch(&self, name: &str, program: &Program, secrets: Secrets) -> io::Result<LaunchedProgram>;
}

/// Environment variables with secret values.
pub type Secrets = Vec<(String, Zeroizing<String>)>;

/// A running program.
pub struct LaunchedProgram {
    /// Its standard input and output.
    pub stream: UnixStream,
    /// The end of its standard error, for the person.
    pub stderr_tail: Arc<dyn Fn() -> String + Send + Sync>,
    /// Checks that its restrictions still hold. May block.
    pub is_confined: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Ends the program when dropped.
    pub guard: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for LaunchedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LaunchedProgram")
    }
}
