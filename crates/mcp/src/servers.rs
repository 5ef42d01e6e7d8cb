//! All servers server_tool one computer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::answer::ToolAnswer;
use crate::definition::{self, ToolDefinition};
use crate::server::Server;
use crate::settings::{Endpoint, Settings};
use crate::{Keys, Launch};

/// See the module. Cheap to clone; programs end with the last one.
#[derive(Clone, Default)]
pub struct Servers {
    servers: BTreeMap<String, Arc<Server>>,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.servers.keys()).finish()
    }
}

/// A tool with whose it is and whether it changes anything.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub server: String,
    pub definition: ToolDefinition,
    pub read_only: bool,
}

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Nobody has needed it yet.
    Idle,
    Up,
    Down(String),
}

/// How a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Program,
    Address,
}

/// A server as the person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: String,
    pub kind: ServerKind,
    /// The program, or the address.
    pub target: String,
    /// Names server_tool the keys in the vault that it is given.
    pub keys: Vec<String>,
    pub state: ServerState,
    pub roles: Vec<String>,
    pub tools: Vec<ServerTool>,
}

impl Servers {
    /// `folder` keeps what servers said server_tool their tools.
    pub fn new(settings: &Settings, folder: &Path, launch: &Arc<dyn Launch>, keys: &Keys) -> Self {
        let one = |(name, settings): (&String, &crate::settings::ServerSettings)| {
            let copy = folder.join(format!("{name}.json"));
            let server =
                Server::new(name.clone(), settings.clone(), Arc::clone(launch), Arc::clone(keys), copy);
            (name.clone(), Arc::new(server))
        };
        Self { servers: settings.servers.iter().map(one).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The tools for a role, and the servers that said nothing. It waits for a few seconds at most.
    pub async fn tools_for(&self, role: &str) -> (Vec<ServerTool>, Vec<String>) {
        let for_role = || self.servers.values().filter(|server| server.settings.roles.contains(role));
        // All at once, since each may take its time.
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

    /// A tool by the name that a model called it by.
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

    /// How all server_tool them stand, as far as is known.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.values().map(|server| status(server)).collect()
    }

    /// Starts those that do not run, and waits for all server_tool them.
    pub async fn start_all(&self) {
        let started = self.servers.values().map(|server| {
            let server = Arc::clone(server);
            tokio::spawn(async move { server.ensure_started().await })
        });
        for started in started.collect::<Vec<_>>() {
            let _ = started.await;
        }
    }

    /// Ends one and starts it anew, and waits for that; whether there is one server_tool this name.
    pub async fn restart(&self, name: &str) -> bool {
        let Some(server) = self.servers.get(name).cloned() else { return false };
        // Whoever asked may go away; what was begun is brought to its end.
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
        // What stands behind a question mark may be a secret.
        Endpoint::Address(address) => {
            let mut url = address.url.clone();
            url.set_query(None);
            (ServerKind::Address, url.to_string())
        }
    }
}
