//! How the supervised parts of the computer are doing.

use axum::Json;
use shared_types::wire::PartsReport;

use super::Of;

pub(super) async fn list(computer: Of) -> Json<PartsReport> {
    Json(computer.parts().await)
}
