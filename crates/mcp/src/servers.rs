//! All servers of one computer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::offer::{self, Offered};
use crate::server::Server;
use crate::settings::{Settings, Way};
use crate::words::Said;
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
pub struct Found {
    pub server: String,
    pub offered: Offered,
    pub read_only: bool,
}

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nobody has needed it yet.
    Idle,
    Up,
    Down(String),
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Program,
    Address,
}

/// A server as the person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    pub kind: Kind,
    /// The program, or the address.
    pub way: String,
    /// Names of the keys in the vault that it is given.
    pub keys: Vec<String>,
    pub state: State,
    pub roles: Vec<String>,
    pub tools: Vec<Found>,
}

impl Servers {
    /// `folder` keeps what servers said of their tools.
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
    pub async fn offered(&self, role: &str) -> (Vec<Found>, Vec<String>) {
        let for_role = || self.servers.values().filter(|server| server.settings.roles.contains(role));
        // All at once, since each may take its time.
        let asked: Vec<_> = for_role()
            .map(|server| {
                let server = Arc::clone(server);
                tokio::spawn(async move { server.tools().await })
            })
            .collect();
        let (mut found, mut silent) = (Vec::new(), Vec::new());
        for (server, asked) in for_role().zip(asked) {
            match asked.await.ok().flatten() {
                Some(tools) => found.extend(tools.iter().map(|tool| of(server, tool))),
                None => silent.push(server.name.clone()),
            }
        }
        (found, silent)
    }

    /// A tool by the name that a model called it by.
    pub async fn find(&self, role: &str, name: &str) -> Option<Found> {
        let server = self.servers.get(offer::server_of(name)?)?;
        let tools = server.tools().await.filter(|_| server.settings.roles.contains(role))?;
        tools.iter().find(|tool| tool.name == name).map(|tool| of(server, tool))
    }

    pub async fn call(&self, server: &str, tool: &str, input: Map<String, Value>) -> Said {
        match self.servers.get(server) {
            Some(server) => server.call(tool, input).await,
            None => Said::failed(format!("there is no server {server} any more")),
        }
    }

    /// How all of them stand, as far as is known.
    pub fn lines(&self) -> Vec<Line> {
        self.servers.values().map(|server| line(server)).collect()
    }

    /// Starts those that do not run, and waits for all of them.
    pub async fn reach_all(&self) {
        let reached = self.servers.values().map(|server| {
            let server = Arc::clone(server);
            tokio::spawn(async move { server.reach().await })
        });
        for reached in reached.collect::<Vec<_>>() {
            let _ = reached.await;
        }
    }

    /// Ends one and starts it anew, and waits for that; whether there is one of this name.
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

fn of(server: &Server, tool: &Offered) -> Found {
    Found { server: server.name.clone(), read_only: server.is_read_only(tool), offered: tool.clone() }
}

fn line(server: &Server) -> Line {
    let tools = server.known_tools();
    let state = match server.trouble() {
        Some(why) => State::Down(why),
        None if server.is_up() => State::Up,
        None => State::Idle,
    };
    let (kind, way) = way(&server.settings.way);
    Line {
        name: server.name.clone(),
        kind,
        way,
        keys: server.settings.way.keys(),
        state,
        roles: server.settings.roles.iter().cloned().collect(),
        tools: tools.iter().flat_map(|tools| tools.iter()).map(|tool| of(server, tool)).collect(),
    }
}

fn way(way: &Way) -> (Kind, String) {
    match way {
        Way::Program(program) => (Kind::Program, program.argv.join(" ")),
        // What stands behind a question mark may be a secret.
        Way::Address(address) => {
            let mut url = address.url.clone();
            url.set_query(None);
            (Kind::Address, url.to_string())
        }
    }
}
