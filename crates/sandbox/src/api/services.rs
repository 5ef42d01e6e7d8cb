//! Services beside models: which are set up, and whether the search answers.

use axum::Json;
use shared_types::wire::{SearchTestResult, ServiceList};

use super::CurrentComputer;
use super::problem::RouteError;
use computer::error::{ComputerError, ErrorCode};

pub(super) async fn list(open_computer: CurrentComputer) -> Json<ServiceList> {
    Json(open_computer.services().list())
}

/// Searches the web for a word.
pub(super) async fn try_search(open_computer: CurrentComputer) -> Result<Json<SearchTestResult>, RouteError> {
    let none = || ComputerError::new(ErrorCode::NotFound, "no search of the web is set up in choir.toml");
    Ok(Json(open_computer.services().try_search().await.ok_or_else(none)?))
}
