//! MCP servers: their state, their tools, and restarts.

use axum::Json;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::McpServerLine;

use super::CurrentComputer;
use super::problem::{PathParam, RouteError};
use computer::error::{ComputerError, ErrorCode};

/// A server, by its name in `choir.toml`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ServerName {
    name: String,
}

/// Lists the servers without contacting them.
pub(super) async fn list(open_computer: CurrentComputer) -> Json<Vec<McpServerLine>> {
    Json(open_computer.mcp_tools().lines())
}

/// Starts the servers that do not run, and lists all.
pub(super) async fn start_all(open_computer: CurrentComputer) -> Json<Vec<McpServerLine>> {
    open_computer.mcp_tools().reach_all().await;
    Json(open_computer.mcp_tools().lines())
}

/// Restarts a server, and returns its state.
pub(super) async fn restart(
    open_computer: CurrentComputer,
    PathParam(server): PathParam<ServerName>,
) -> Result<Json<McpServerLine>, RouteError> {
    let name = server.name;
    open_computer.mcp_tools().restart(&name).await;
    let line = open_computer.mcp_tools().lines().into_iter().find(|line| line.name == name);
    let none =
        || ComputerError::new(ErrorCode::NotFound, format!("there is no MCP server {name:?} in choir.toml"));
    Ok(Json(line.ok_or_else(none)?))
}
