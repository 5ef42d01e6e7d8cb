//! The public routes: the page and its files, health, readiness, metrics.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use shared_types::wire::Health;

use crate::access::{Access, Principal, ResponseKind, Route};
use crate::assets::{self, Assets};
use crate::client_address::ClientAddress;
use crate::metrics::metric;
use crate::problem::ApiError;
use crate::server_state::ServerState;

/// What the public routes need from the embedding program.
#[derive(Clone)]
pub struct Pages {
    pub assets: Arc<dyn Assets>,
    pub version: &'static str,
    /// Returns an error that names what is not ready yet.
    pub ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Appends further metrics. It may block.
    pub metrics: Arc<dyn Fn(&mut String) + Send + Sync>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The response of `/ready`.
#[derive(Debug, Serialize, JsonSchema)]
struct Ready {
    status: &'static str,
}

pub fn routes(pages: Pages) -> Vec<Route> {
    use Access::Anyone;
    let Pages { assets, version, ready, metrics } = pages;
    let file = move |Extension(state): Extension<Arc<ServerState>>, uri: Uri, headers: HeaderMap| async move {
        assets::serve(&*assets, &state.site, uri.path(), &headers)
    };
    let health = move || async move { axum::Json(Health { status: "ok".into(), version: version.into() }) };
    let metrics_handler = move |Extension(state): Extension<Arc<ServerState>>,
                                address: Option<Extension<ClientAddress>>,
                                principal: Option<Extension<Principal>>| async move {
        let address = address.map(|Extension(address)| address).unwrap_or_default();
        // With a public URL, a proxy on this machine would make every client look local.
        let is_local = address.0.is_loopback() && state.site.is_local();
        if !is_local && !principal.is_some_and(|Extension(principal)| principal.owner) {
            return ApiError::forbidden("Only this machine and its owner may read the metrics.")
                .into_response();
        }
        // Collecting metrics reads databases and files.
        match tokio::task::spawn_blocking(move || render_metrics(&state, &*metrics)).await {
            Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
            Err(_) => ApiError::internal().into_response(),
        }
    };
    vec![
        Route::get("/health", Anyone, "Whether the server is running", health),
        Route::get("/ready", Anyone, "Whether the server is ready for requests", move || async move {
            readiness(ready())
        }),
        Route::get(
            "/metrics",
            Anyone,
            "Metrics for Prometheus; only for this machine and its owner",
            metrics_handler,
        )
        .responds_with(ResponseKind::Bytes("text/plain")),
        Route::get("/", Anyone, "The desktop's page", file.clone()),
        Route::get("/{*path}", Anyone, "The files of the page", file),
    ]
}

fn readiness(ready: Result<(), String>) -> Result<axum::Json<Ready>, ApiError> {
    match ready {
        Ok(()) => Ok(axum::Json(Ready { status: "ready" })),
        Err(reason) => Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason)),
    }
}

fn render_metrics(state: &ServerState, more: &(dyn Fn(&mut String) + Send + Sync)) -> String {
    let mut text = String::new();
    state.metrics.write(&mut text);
    if let Ok(users) = state.identity.users() {
        metric(&mut text, "choir_users", "gauge", "Accounts on this machine.", users.len() as u64);
    }
    more(&mut text);
    text
}
