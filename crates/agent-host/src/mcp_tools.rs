//! The MCP tools of one computer, for its agents.

use std::path::Path;
use std::sync::Arc;

use agents::roles::Role;
use agents::toolbox::{ExternalTool, ExternalToolResult, FromToolbox, ToolOffer, Toolbox};
pub use mcp::settings::{Endpoint, ServerSettings};
use mcp::{Keys, Launch, Servers, Settings};
use models::chat::Tool;
use serde_json::{Map, Value};
use shared_types::wire::{McpServerKind, McpServerLine, McpServerState, McpToolLine};

use computer::error::{ComputerError, ErrorCode};

/// The folder in which a computer stores the tool definitions of its servers.
const FOLDER: &str = "mcp";

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct McpTools {
    servers: Servers,
}

/// Roles that use tools: all except the conductor, which only delegates.
fn roles() -> Vec<&'static str> {
    let roles = agents::roles::ROLES.into_iter().filter(|role| *role != Role::Conductor);
    roles.map(Role::name).collect()
}

/// `[mcp]` of `choir.toml`.
pub fn settings(table: Option<&toml::Table>) -> Result<Settings, ComputerError> {
    let Some(table) = table else { return Ok(Settings::default()) };
    let parsed = Settings::parse(table, &roles());
    let mut settings = parsed.map_err(|e| ComputerError::new(ErrorCode::BadRequest, e.to_string()))?;
    // Folders may start with `~` for the home folder.
    let home = std::env::home_dir();
    for server in settings.servers.values_mut() {
        if let (Endpoint::Program(program), Some(home)) = (&mut server.endpoint, &home) {
            for folder in &mut program.mounts {
                if let Ok(below) = folder.strip_prefix("~") {
                    *folder = home.join(below);
                }
            }
        }
    }
    Ok(settings)
}

impl McpTools {
    /// `state` is the computer's own folder.
    pub fn new(settings: &Settings, state: &Path, launch: Arc<dyn Launch>, keys: Keys) -> Self {
        models::prepare_tls();
        Self { servers: Servers::new(settings, &state.join(FOLDER), &launch, &keys) }
    }

    /// Whether no server is configured.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Starts every server, to find out whether it answers.
    pub async fn reach_all(&self) {
        self.servers.start_all().await;
    }

    /// Restarts a server and waits for it. Returns whether a server has this name.
    pub async fn restart(&self, name: &str) -> bool {
        self.servers.restart(name).await
    }

    /// Stops every program for good.
    pub async fn end(&self) {
        self.servers.end().await;
    }

    /// The last known state of each server.
    pub fn lines(&self) -> Vec<McpServerLine> {
        self.servers.statuses().into_iter().map(line).collect()
    }
}

fn line(line: mcp::ServerStatus) -> McpServerLine {
    let (state, problem) = match line.state {
        mcp::ServerState::Idle => (McpServerState::Idle, None),
        mcp::ServerState::Up => (McpServerState::Up, None),
        mcp::ServerState::Down(why) => (McpServerState::Down, Some(why)),
    };
    let tools = line.tools.into_iter().map(|found| McpToolLine {
        name: found.definition.name,
        tool: found.definition.tool,
        description: found.definition.description,
        own_description: found.definition.own_description,
        reads_only: found.read_only,
    });
    let kind = match line.kind {
        mcp::ServerKind::Program => McpServerKind::Program,
        mcp::ServerKind::Address => McpServerKind::Address,
    };
    McpServerLine {
        name: line.name,
        kind,
        target: line.target,
        keys: line.keys,
        state,
        problem,
        roles: line.roles,
        tools: tools.collect(),
    }
}

impl Toolbox for McpTools {
    fn offered(&self, role: Role) -> FromToolbox<'_, ToolOffer> {
        Box::pin(async move {
            let (found, silent) = self.servers.tools_for(role.name()).await;
            let tools = found.into_iter().map(|found| Tool {
                name: found.definition.name,
                description: found.definition.description,
                input: found.definition.input,
            });
            ToolOffer { tools: tools.collect(), silent }
        })
    }

    fn find<'a>(&'a self, role: Role, name: &'a str) -> FromToolbox<'a, Option<ExternalTool>> {
        Box::pin(async move {
            let found = self.servers.find(role.name(), name).await?;
            Some(ExternalTool {
                server: found.server,
                tool: found.definition.tool,
                reads_only: found.read_only,
            })
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a ExternalTool,
        input: Map<String, Value>,
    ) -> FromToolbox<'a, ExternalToolResult> {
        Box::pin(async move {
            let result = self.servers.call(&tool.server, &tool.tool, input).await;
            ExternalToolResult { text: result.text, failed: result.failed, cut_off: result.cut_off }
        })
    }
}
