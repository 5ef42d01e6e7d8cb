//! The door that every request passes: is it meant for us, who is it from, and what does the answer carry.

use std::sync::Arc;
use std::time::Instant;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::address::Address;
use super::site::Addressed;
use super::{cors, headers};
use crate::front::Front;
use crate::problem::{MEDIA_TYPE, Refusal};

/// Answers that monitors fetch by number, without a name.
const PLAIN: [&str; 3] = ["/health", "/ready", "/metrics"];

pub(crate) async fn door(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response {
    let (begun, method, path) = (Instant::now(), request.method().clone(), request.uri().path().to_owned());
    let address = Address::of(&request, &front.proxies);
    request.extensions_mut().insert(address);
    let welcome = cors::welcome(&front.site, &request);
    let mut response = match turn_away(&front, &request) {
        Some(response) => response,
        None => match welcome.as_ref().and_then(|_| cors::preflight(&request)) {
            Some(response) => response,
            None => explain(next.run(request).await).await,
        },
    };
    let (status, elapsed) = (response.status(), begun.elapsed());
    front.metrics.answered(status);
    // Never the query: it may hold what a person searched for.
    if status.is_server_error() {
        tracing::error!(%method, path, %status, ?elapsed, %address, "request failed");
    } else {
        tracing::debug!(%method, path, %status, ?elapsed, %address, "request");
    }
    if path.starts_with("/api/") {
        let unkept = HeaderValue::from_static("private, no-cache");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(unkept);
    }
    headers::protect(&front.site, welcome.is_some(), response.headers_mut());
    if let Some(origin) = welcome {
        cors::allow(origin, response.headers_mut());
    }
    response
}

/// What is said to those who meant somebody else, or came by number.
fn turn_away(front: &Front, request: &Request) -> Option<Response> {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    match front.site.addressed(host.unwrap_or_default()) {
        Addressed::ToUs => None,
        Addressed::ToLoopback => {
            let path = request.uri().path();
            let plain = PLAIN.contains(&path) || has_token(request.headers());
            let rest = request.uri().path_and_query().map_or("/", |rest| rest.as_str());
            let origin = front.site.origin().origin().ascii_serialization();
            (!plain).then(|| Redirect::permanent(&format!("{origin}{rest}")).into_response())
        }
        Addressed::ToAnother => {
            let detail = format!("This server answers to {}.", front.site.origin());
            let refusal = Refusal::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", detail);
            Some(refusal.into_response())
        }
    }
}

fn has_token(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_some_and(|value| {
        value.as_bytes().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
    })
}

/// Gives every failure the one form, also those that the framework words itself.
async fn explain(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let said = kind.is_some_and(|kind| kind.as_bytes().starts_with(MEDIA_TYPE.as_bytes()));
    if said || !(status.is_client_error() || status.is_server_error()) {
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
    let words = to_bytes(body, 4096).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let detail = if words.trim().is_empty() { "The request was not done." } else { words.trim() };
    let mut explained = Refusal::new(status, code, detail).into_response();
    if let Some(allowed) = parts.headers.get(ALLOW) {
        explained.headers_mut().insert(ALLOW, allowed.clone());
    }
    explained
}
