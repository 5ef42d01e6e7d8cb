//! The state of the supervised parts of a computer.

use axum::Json;
use shared_types::wire::PartsReport;

use super::CurrentComputer;

pub(super) async fn list(computer: CurrentComputer) -> Json<PartsReport> {
    Json(computer.parts().await)
}
