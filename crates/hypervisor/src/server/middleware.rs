//! The outermost middleware: checks the host, finds the client's address, answers CORS preflights, logs and counts the
//! response, and adds the security headers.

use std::sync::Arc;
use std::time::Instant;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::{cors, headers};
use crate::client_address::ClientAddress;
use crate::problem::{ApiError, MEDIA_TYPE};
use crate::server_state::ServerState;
use crate::site::HostMatch;

/// Paths that monitors may fetch by IP address, without the server's name.
const MONITORED: [&str; 3] = ["/health", "/ready", "/metrics"];

pub(crate) async fn handle(
    State(state): State<Arc<ServerState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (started, method, path) = (Instant::now(), request.method().clone(), request.uri().path().to_owned());
    let address = ClientAddress::of(&request, &state.proxies);
    request.extensions_mut().insert(address);
    let allowed_origin = cors::allowed_origin(&state.site, &request);
    let mut response = match check_host(&state, &request) {
        Some(response) => response,
        None => match allowed_origin.as_ref().and_then(|_| cors::preflight(&request)) {
            Some(response) => response,
            None => as_problem(next.run(request).await).await,
        },
    };
    let (status, elapsed) = (response.status(), started.elapsed());
    state.metrics.count_response(status);
    // The query string stays out of the log: it may contain search terms.
    if status.is_server_error() {
        tracing::error!(%method, path, %status, ?elapsed, %address, "request failed");
    } else {
        tracing::debug!(%method, path, %status, ?elapsed, %address, "request");
    }
    if path.starts_with("/api/") {
        let no_cache = HeaderValue::from_static("private, no-cache");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(no_cache);
    }
    headers::protect(&state.site, allowed_origin.is_some(), response.headers_mut());
    if let Some(origin) = allowed_origin {
        cors::allow(origin, response.headers_mut());
    }
    response
}

/// Refuses a request for another host, and redirects a browser from a loopback IP address to our name, where passkeys
/// work. Returns `None` if the request may proceed.
fn check_host(state: &ServerState, request: &Request) -> Option<Response> {
    let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = header.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    match state.site.match_host(host.unwrap_or_default()) {
        HostMatch::Ours => None,
        HostMatch::Loopback => {
            let path = request.uri().path();
            let needs_no_name = MONITORED.contains(&path) || has_token(request.headers());
            let rest = request.uri().path_and_query().map_or("/", |rest| rest.as_str());
            let origin = state.site.origin().origin().ascii_serialization();
            (!needs_no_name).then(|| Redirect::permanent(&format!("{origin}{rest}")).into_response())
        }
        HostMatch::Unknown => {
            let detail = format!("This server does not serve that host name. Use {}.", state.site.origin());
            let error = ApiError::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", detail);
            Some(error.into_response())
        }
    }
}

fn has_token(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_some_and(|value| {
        value.as_bytes().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
    })
}

/// Turns error responses of the framework into `application/problem+json`.
async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_problem = kind.is_some_and(|kind| kind.as_bytes().starts_with(MEDIA_TYPE.as_bytes()));
    if is_problem || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let code = match status {
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "not_json",
        StatusCode::UNPROCESSABLE_ENTITY => "invalid",
        status if status.is_server_error() => "internal",
        _ => "bad_request",
    };
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, 4096).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let detail = if text.trim().is_empty() { "The request was refused." } else { text.trim() };
    let mut problem = ApiError::new(status, code, detail).into_response();
    if let Some(allowed) = parts.headers.get(ALLOW) {
        problem.headers_mut().insert(ALLOW, allowed.clone());
    }
    problem
}
