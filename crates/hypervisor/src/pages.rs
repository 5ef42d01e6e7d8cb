//! What is there without an account: the page and its files, health, readiness, metrics.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use shared_types::wire::Health;

use crate::access::{Access, Given, Principal, Route};
use crate::assets::{self, Assets};
use crate::front::Front;
use crate::problem::Refusal;
use crate::server::address::Address;
use crate::server::metrics::metric;

/// What the caller brings for these routes.
#[derive(Clone)]
pub struct Pages {
    pub assets: Arc<dyn Assets>,
    pub version: &'static str,
    /// Says what is not ready yet, if anything.
    pub ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Adds its own lines to the metrics. It may block.
    pub metrics: Arc<dyn Fn(&mut String) + Send + Sync>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The answer of `/ready`.
#[derive(Debug, Serialize, JsonSchema)]
struct Ready {
    status: &'static str,
}

pub fn routes(pages: Pages) -> Vec<Route> {
    use Access::Anyone;
    let Pages { assets, version, ready, metrics } = pages;
    let file = move |Extension(front): Extension<Arc<Front>>, uri: Uri, headers: HeaderMap| async move {
        assets::serve(&*assets, &front.site, uri.path(), &headers)
    };
    let health = move || async move { axum::Json(Health { status: "ok".into(), version: version.into() }) };
    let measured = move |Extension(front): Extension<Arc<Front>>,
                         address: Option<Extension<Address>>,
                         who: Option<Extension<Principal>>| async move {
        let address = address.map(|Extension(address)| address).unwrap_or_default();
        // A proxy on this machine would make everyone look as if they were on it.
        let near = address.0.is_loopback() && front.site.is_local();
        if !near && !who.is_some_and(|Extension(who)| who.owner) {
            return Refusal::forbidden("Metrics are for this machine and its owner.").into_response();
        }
        // Stores and files are asked, which may take a while.
        match tokio::task::spawn_blocking(move || measure(&front, &*metrics)).await {
            Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
            Err(_) => Refusal::internal().into_response(),
        }
    };
    vec![
        Route::get("/health", Anyone, "Whether the server runs", health),
        Route::get("/ready", Anyone, "Whether it can work", move || async move { readiness(ready()) }),
        Route::get("/metrics", Anyone, "Figures for Prometheus; for this machine and its owner", measured)
            .giving(Given::Bytes("text/plain")),
        Route::get("/", Anyone, "The page", file.clone()),
        Route::get("/{*path}", Anyone, "Its files", file),
    ]
}

fn readiness(ready: Result<(), String>) -> Result<axum::Json<Ready>, Refusal> {
    match ready {
        Ok(()) => Ok(axum::Json(Ready { status: "ready" })),
        Err(why) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", why)),
    }
}

fn measure(front: &Front, more: &(dyn Fn(&mut String) + Send + Sync)) -> String {
    let mut text = String::new();
    front.metrics.write(&mut text);
    if let Ok(users) = front.identity.users() {
        metric(&mut text, "choir_users", "gauge", "Accounts on this machine.", users.len() as u64);
    }
    more(&mut text);
    text
}
