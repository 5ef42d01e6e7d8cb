//! Cross-site request forgery protection. Browsers attach cookies on their own, so a request with a session cookie must
//! come from one of our own pages.

use axum::http::header::{ORIGIN, UPGRADE};
use axum::http::{HeaderMap, Method};

use super::{Credential, Principal};
use crate::problem::ApiError;
use crate::site::Site;

pub(super) fn check(
    site: &Site,
    method: &Method,
    headers: &HeaderMap,
    principal: Option<&Principal>,
) -> Result<(), ApiError> {
    // A browser never attaches a token on its own.
    if principal.is_some_and(|principal| matches!(principal.credential, Credential::Token { .. })) {
        return Ok(());
    }
    let origin =
        headers.get(ORIGIN).map(|value| value.to_str().is_ok_and(|origin| site.is_own_origin(origin)));
    let fetch_site = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or_default());
    let allowed = if is_upgrade(headers) {
        // Browsers let any page open a WebSocket to any host, and always send the page's origin.
        origin == Some(true)
    } else if method.is_safe() {
        true
    } else {
        match (origin, fetch_site) {
            (Some(own), _) => own,
            (None, Some(site)) => matches!(site, "same-origin" | "none"),
            // Neither header: not a browser. Without a session there is nothing to forge.
            (None, None) => principal.is_none(),
        }
    };
    if allowed { Ok(()) } else { Err(ApiError::wrong_origin()) }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}
