//! MCP servers: which there are, how they stand, and what they have.

use axum::Json;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::McpServerLine;

use super::Of;
use super::problem::{Named, RouteError};
use computer::error::{ComputerError, ErrorCode};

/// A server, by its name in `choir.toml`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ServerName {
    name: String,
}

/// What is known of them, without asking any.
pub(super) async fn list(desk: Of) -> Json<Vec<McpServerLine>> {
    Json(desk.tools().lines())
}

/// Starts those that do not run, and says what came of it.
pub(super) async fn reach(desk: Of) -> Json<Vec<McpServerLine>> {
    desk.tools().reach_all().await;
    Json(desk.tools().lines())
}

/// Ends one and starts it anew, and says what came of it.
pub(super) async fn restart(
    desk: Of,
    Named(server): Named<ServerName>,
) -> Result<Json<McpServerLine>, RouteError> {
    let name = server.name;
    desk.tools().restart(&name).await;
    let line = desk.tools().lines().into_iter().find(|line| line.name == name);
    let none =
        || ComputerError::new(ErrorCode::NotFound, format!("there is no MCP server {name:?} in choir.toml"));
    Ok(Json(line.ok_or_else(none)?))
}
