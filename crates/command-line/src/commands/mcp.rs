//! `choir mcp`: starts the MCP servers of `choir.toml`, and lists their tools or the reason they do not answer.

use std::path::Path;
use std::sync::Arc;

use agent_host::agent_services::AgentServices;
use agent_host::mcp_cells::McpServerCells;
use anyhow::Result;
use computer::config::Config;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;
use shared_types::UserId;
use shared_types::wire::{McpServerLine, McpServerState, McpToolLine};

use super::{Context, services};
use crate::cli::Mcp;
use crate::render::{self, Style, line, safe};

pub(crate) fn run(context: &Context, args: &Mcp) -> Result<()> {
    let agent_services = chosen(services::of_this_machine()?, args.name.as_deref())?;
    if agent_services.mcp_settings.servers.is_empty() {
        if !context.style.is_json() {
            line("no MCP servers yet; add one to choir.toml in the data folder:");
            line("  [mcp.notes]\n  command = [\"npx\", \"-y\", \"some-server\"]\n  network = \"open\"");
        }
        return Ok(());
    }
    let lines = reached(context, &agent_services)?;
    for server in &lines {
        if context.style.is_json() {
            render::json(server);
        } else {
            show(context.style, server, args.name.is_some());
        }
    }
    match lines.iter().find_map(|server| server.problem.as_ref().filter(|_| args.name.is_some())) {
        Some(problem) => {
            Err(ComputerError::new(ErrorCode::Failed, format!("it does not answer: {problem}")).into())
        }
        None => Ok(()),
    }
}

/// One server, or all.
fn chosen(agent_services: AgentServices, name: Option<&str>) -> Result<AgentServices> {
    let Some(name) = name else { return Ok(agent_services) };
    let mut servers = (*agent_services.mcp_settings).clone();
    let names: Vec<String> = servers.servers.keys().cloned().collect();
    servers.servers.retain(|server, _| server == name);
    if servers.servers.is_empty() {
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("there is no MCP server {name:?} in choir.toml; there are: {there}");
        return Err(ComputerError::new(ErrorCode::NotFound, message).into());
    }
    Ok(AgentServices { mcp_settings: Arc::new(servers), ..agent_services })
}

/// Starts the servers in cells of this process, independent of the process that holds the computer.
fn reached(context: &Context, agent_services: &AgentServices) -> Result<Vec<McpServerLine>> {
    let scratch = tempfile::tempdir()?;
    let launch = cells(context, agent_services, scratch.path())?;
    // The computer's own cache of tool lists is not touched.
    let tools =
        agent_services.mcp_tools_with(&ComputerPaths::at(scratch.path()), &UserId::owner(), Arc::new(launch));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let lines = runtime.block_on(async {
        tools.reach_all().await;
        let lines = tools.lines();
        tools.end().await;
        lines
    });
    // Stop the programs before their folders are removed.
    drop(runtime);
    Ok(lines)
}

/// Cells with the computer's settings, in a folder of this process.
pub(super) fn cells(
    context: &Context,
    agent_services: &AgentServices,
    scratch: &Path,
) -> Result<McpServerCells> {
    let paths = context.paths().unwrap_or_else(|_| ComputerPaths::at(scratch));
    let cells = Config::load(&paths.state)?.cells;
    let backend = cells.backend(&paths.state);
    let (owner, folders) = (UserId::owner().to_string(), scratch.join("cells"));
    Ok(McpServerCells::new(cells, backend, &paths, owner, folders, &agent_services.rules))
}

fn show(style: Style, server: &McpServerLine, in_full: bool) {
    let state = match (server.state, &server.problem) {
        (McpServerState::Up | McpServerState::Idle, _) => render::count(server.tools.len() as u64, "tool"),
        (McpServerState::Down, problem) => {
            format!("does not answer: {}", safe(problem.as_deref().unwrap_or("no reason given")))
        }
    };
    line(&format!("{} {state} {}", style.bold(&server.name), style.dim(&safe(&server.target))));
    line(&format!("  for: {}", server.roles.join(", ")));
    server.tools.iter().for_each(|tool| line(&tool_line(style, tool, in_full)));
}

fn tool_line(style: Style, tool: &McpToolLine, in_full: bool) -> String {
    let may = if tool.reads_only { "only reads" } else { "asks first" };
    let words = if in_full { format!("\n      {}", safe(&tool.description)) } else { String::new() };
    format!("  {:<40} {}{}", safe(&tool.name), style.dim(may), style.dim(&words))
}
