//! MCP servers: which there are, how they stand, and what they have.

use axum::Json;
use shared_types::wire::ToolServerLine;

use super::Of;

/// What is known of them, without asking any.
pub(super) async fn list(desk: Of) -> Json<Vec<ToolServerLine>> {
    Json(desk.tools().lines())
}

/// Starts those that do not run, and says what came of it.
pub(super) async fn reach(desk: Of) -> Json<Vec<ToolServerLine>> {
    desk.tools().reach_all().await;
    Json(desk.tools().lines())
}
