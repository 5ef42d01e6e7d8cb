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
    let minds = chosen(services::of_this_machine()?, args.name.as_deref())?;
    if minds.mcp_settings.servers.is_empty() {
        if !context.style.is_json() {
            line("no MCP servers yet; add one to choir.toml in the data folder:");
            line("  [mcp.notes]\n  command = [\"npx\", \"-y\", \"some-server\"]\n  network = \"open\"");
        }
        return Ok(());
    }
    let lines = reached(context, &minds)?;
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
fn chosen(minds: AgentServices, name: Option<&str>) -> Result<AgentServices> {
    let Some(name) = name else { return Ok(minds) };
    let mut servers = (*minds.mcp_settings).clone();
    let names: Vec<String> = servers.servers.keys().cloned().collect();
    servers.servers.retain(|server, _| server == name);
    if servers.servers.is_empty() {
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("there is no MCP server {name:?} in choir.toml; there are: {there}");
        return Err(ComputerError::new(ErrorCode::NotFound, message).into());
    }
    Ok(AgentServices { mcp_settings: Arc::new(servers), ..minds })
}

/// Starts the servers in cells of this process, independent of the process that holds the computer.
fn reached(context: &Context, minds: &AgentServices) -> Result<Vec<McpServerLine>> {
    let scratch = tempfile::tempdir()?;
    let launch = cells(context, minds, scratch.path())?;
    // The computer's own cache of tool lists is not touched.
    let tools = minds.mcp_tools_with(&ComputerPaths::at(scratch.path()), &UserId::owner(), Arc::new(launch));
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
pub(super) fn cells(context: &Context, minds: &AgentServices, scratch: &Path) -> Result<McpServerCells> {
    let place = context.place().unwrap_or_else(|_| ComputerPaths::at(scratch));
    let cells = Config::load(&place.state)?.cells;
    let backend = cells.backend(&place.state);
    let (owner, folders) = (UserId::owner().to_string(), scratch.join("cells"));
    Ok(McpServerCells::new(cells, backend, &place, owner, folders, &minds.rules))
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
