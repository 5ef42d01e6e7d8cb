//! All MCP servers of one computer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::answer::ToolAnswer;
use crate::definition::{self, ToolDefinition};
use crate::server::Server;
use crate::settings::{Endpoint, Settings};
use crate::{Keys, Launch};

/// See the module documentation. Cheap to clone; programs end with the last clone.
#[derive(Clone, Default)]
pub struct Servers {
    servers: BTreeMap<String, Arc<Server>>,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.servers.keys()).finish()
    }
}

/// A tool with its server, and whether it is read-only.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub server: String,
    pub definition: ToolDefinition,
    pub read_only: bool,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Not needed yet.
    Idle,
    Up,
    Down(String),
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Program,
    Address,
}

/// A server's status, for the person.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: String,
    pub kind: ServerKind,
    /// The program, or the URL.
    pub target: String,
    /// Names of the vault keys that it receives.
    pub keys: Vec<String>,
    pub state: ServerState,
    pub roles: Vec<String>,
    pub tools: Vec<ServerTool>,
}

impl Servers {
    /// `folder` caches the servers' tool lists.
    pub fn new(settings: &Settings, folder: &Path, launch: &Arc<dyn Launch>, keys: &Keys) -> Self {
        let server = |(name, settings): (&String, &crate::settings::ServerSettings)| {
            let cache_file = folder.join(format!("{name}.json"));
            let server =
                Server::new(name.clone(), settings.clone(), Arc::clone(launch), Arc::clone(keys), cache_file);
            (name.clone(), Arc::new(server))
        };
        Self { servers: settings.servers.iter().map(server).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The tools for a role, and the servers that did not answer. Waits a few seconds at most.
    pub async fn tools_for(&self, role: &str) -> (Vec<ServerTool>, Vec<String>) {
        let for_role = || self.servers.values().filter(|server| server.settings.roles.contains(role));
        // Ask all servers concurrently.
        let asked: Vec<_> = for_role()
            .map(|server| {
                let server = Arc::clone(server);
                tokio::spawn(async move { server.tools().await })
            })
            .collect();
        let (mut found, mut unanswered) = (Vec::new(), Vec::new());
        for (server, asked) in for_role().zip(asked) {
            match asked.await.ok().flatten() {
                Some(tools) => found.extend(tools.iter().map(|tool| server_tool(server, tool))),
                None => unanswered.push(server.name.clone()),
            }
        }
        (found, unanswered)
    }

    /// Finds a tool by the name that a model used.
    pub async fn find(&self, role: &str, name: &str) -> Option<ServerTool> {
        let server = self.servers.get(definition::server_of(name)?)?;
        let tools = server.tools().await.filter(|_| server.settings.roles.contains(role))?;
        tools.iter().find(|tool| tool.name == name).map(|tool| server_tool(server, tool))
    }

    pub async fn call(&self, server: &str, tool: &str, input: Map<String, Value>) -> ToolAnswer {
        match self.servers.get(server) {
            Some(server) => server.call(tool, input).await,
            None => ToolAnswer::failed(format!("there is no server {server} any more")),
        }
    }

    /// The status of all servers, as far as known.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.values().map(|server| status(server)).collect()
    }

    /// Starts all servers that are not running, and waits for them.
    pub async fn start_all(&self) {
        let started = self.servers.values().map(|server| {
            let server = Arc::clone(server);
            tokio::spawn(async move { server.ensure_started().await })
        });
        for started in started.collect::<Vec<_>>() {
            let _ = started.await;
        }
    }

    /// Restarts a server and waits for that; returns false if there is no such server.
    pub async fn restart(&self, name: &str) -> bool {
        let Some(server) = self.servers.get(name).cloned() else { return false };
        // The restart completes even if the caller goes away.
        let _ = tokio::spawn(async move { server.restart().await }).await;
        true
    }

    /// Ends all programs for good.
    pub async fn end(&self) {
        for server in self.servers.values() {
            server.end().await;
        }
    }
}

fn server_tool(server: &Server, tool: &ToolDefinition) -> ServerTool {
    ServerTool { server: server.name.clone(), read_only: server.is_read_only(tool), definition: tool.clone() }
}

fn status(server: &Server) -> ServerStatus {
    let tools = server.known_tools();
    let state = match server.error() {
        Some(why) => ServerState::Down(why),
        None if server.is_up() => ServerState::Up,
        None => ServerState::Idle,
    };
    let (kind, target) = target(&server.settings.endpoint);
    ServerStatus {
        name: server.name.clone(),
        kind,
        target,
        keys: server.settings.endpoint.keys(),
        state,
        roles: server.settings.roles.iter().cloned().collect(),
        tools: tools.iter().flat_map(|tools| tools.iter()).map(|tool| server_tool(server, tool)).collect(),
    }
}

fn target(endpoint: &Endpoint) -> (ServerKind, String) {
    match endpoint {
        Endpoint::Program(program) => (ServerKind::Program, program.argv.join(" ")),
        // The query may contain a secret.
        Endpoint::Address(address) => {
            let mut url = address.url.clone();
            url.set_query(None);
            (ServerKind::Address, url.to_string())
        }
    }
}
