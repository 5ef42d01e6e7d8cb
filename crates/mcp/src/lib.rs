//! Tools that somebody else runs: a client of MCP servers that trusts none of them.
//!
//! A server is named in `[mcp.NAME]` of `choir.toml` ([`settings`]): a program, started by whoever implements
//! [`Launch`], or an address. What it says of its tools is cut to what a model can be told ([`offer`]), and what they
//! answer to what a model can read ([`words`]). A server that does not start, hangs, floods or dies costs the call that
//! was under way and nothing else: it is started again for the next ([`server`]). This crate knows no agents, no cells
//! and no events.

mod http;
mod link;
mod offer;
mod running;
mod server;
mod servers;
pub mod settings;
mod words;

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

pub use offer::Offered;
pub use servers::{Found, Kind, Line, Servers, State};
pub use settings::{Program, Reach, Settings, SettingsError};
pub use words::Said;
pub use zeroize::Zeroizing;

/// Knows secrets by their name in the vault. It is asked whenever a server is started, so a new one is used from then on.
pub type Keys = Arc<dyn Fn(&str) -> Option<Zeroizing<String>> + Send + Sync>;

/// Starts a program away from everything that it was not given. It may take its time, on a thread of its own.
pub trait Launch: Send + Sync + 'static {
    fn launch(&self, name: &str, program: &Program, secrets: Secrets) -> io::Result<Launched>;
}

/// Variables whose values are known to nobody else.
pub type Secrets = Vec<(String, Zeroizing<String>)>;

/// A program that runs.
pub struct Launched {
    /// What it reads and writes.
    pub stream: UnixStream,
    /// What it complained of last, for the person.
    pub complaints: Arc<dyn Fn() -> String + Send + Sync>,
    /// Whether it still sees nothing that it may not. It may take its time.
    pub is_confined: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Ends the program when dropped.
    pub guard: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for Launched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Launched")
    }
}
