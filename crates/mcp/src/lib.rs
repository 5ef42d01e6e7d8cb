//! Tools that somebody else runs: a client of MCP servers that trusts none of them.
//!
//! A server is named in `[mcp.NAME]` of `choir.toml` ([`settings`]): a program, started by whoever implements
//! [`Launch`], or an address. What it says of its tools is cut to what a model can be told ([`offer`]), and what they
//! answer to what a model can read ([`words`]). A server that does not start, hangs, floods or dies costs the call that
//! was under way and nothing else: it is started again for the next ([`server`]). This crate knows no agents, no cells
//! and no events.

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

/// Knows secrets by their name in the vault. It is asked whenever a server is started, so a new one is used from then on.
pub type Keys = Arc<dyn Fn(&str) -> Option<Zeroizing<String>> + Send + Sync>;

/// Starts a program away from everything that it was not given. It may take its time, on a thread of its own.
pub trait Launch: Send + Sync + 'static {
    fn launch(&self, name: &str, program: &Program, secrets: Secrets) -> io::Result<LaunchedProgram>;
}

/// Variables whose values are known to nobody else.
pub type Secrets = Vec<(String, Zeroizing<String>)>;

/// A program that runs.
pub struct LaunchedProgram {
    /// What it reads and writes.
    pub stream: UnixStream,
    /// What it complained of last, for the person.
    pub stderr_tail: Arc<dyn Fn() -> String + Send + Sync>,
    /// Whether it still sees nothing that it may not. It may take its time.
    pub is_confined: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Ends the program when dropped.
    pub guard: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for LaunchedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LaunchedProgram")
    }
}
