//! From which page a request comes. A cookie travels by itself, so what it allows must come from a page of ours.

use axum::http::header::{ORIGIN, UPGRADE};
use axum::http::{HeaderMap, Method};

use super::{How, Principal};
use crate::problem::Refusal;
use crate::server::site::Site;

pub(super) fn check(
    site: &Site,
    method: &Method,
    headers: &HeaderMap,
    principal: Option<&Principal>,
) -> Result<(), Refusal> {
    // No page can make a browser send a token of ours by itself.
    if principal.is_some_and(|principal| matches!(principal.how, How::Token { .. })) {
        return Ok(());
    }
    let origin = headers.get(ORIGIN).map(|value| value.to_str().is_ok_and(|origin| site.is_ours(origin)));
    let fetched = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or_default());
    let right = if is_upgrade(headers) {
        // Browsers let any page open a WebSocket anywhere, and always say which page it was.
        origin == Some(true)
    } else if method.is_safe() {
        true
    } else {
        match (origin, fetched) {
            (Some(ours), _) => ours,
            (None, Some(site)) => matches!(site, "same-origin" | "none"),
            // Neither is there: no browser. Without a cookie there is nothing to misuse.
            (None, None) => principal.is_none(),
        }
    };
    if right { Ok(()) } else { Err(Refusal::wrong_origin()) }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}
