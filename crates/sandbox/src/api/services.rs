//! Services besides models: the configured ones, and a test of the web search.

use axum::Json;
use shared_types::wire::{SearchTestResult, ServiceList};

use super::CurrentComputer;
use super::problem::RouteError;
use computer::error::{ComputerError, ErrorCode};

pub(super) async fn list(open_computer: CurrentComputer) -> Json<ServiceList> {
    Json(open_computer.services().list())
}

/// Tests the web search.
pub(super) async fn try_search(open_computer: CurrentComputer) -> Result<Json<SearchTestResult>, RouteError> {
    let none = || ComputerError::new(ErrorCode::NotFound, "no web search is configured in choir.toml");
    Ok(Json(open_computer.services().try_search().await.ok_or_else(none)?))
}
