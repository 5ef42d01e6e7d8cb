//! How the supervised parts of the computer are doing.

use axum::Json;
use shared_types::wire::PartsReport;

use super::CurrentComputer;

pub(super) async fn list(computer: CurrentComputer) -> Json<PartsReport> {
    Json(computer.parts().await)
}
