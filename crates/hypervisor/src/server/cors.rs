//! Pages of other origins: only those in the configuration, only with a token, never with a cookie.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::site::Site;

/// The origin of the page that asks, if it is in the list.
pub(super) fn welcome(site: &Site, request: &Request) -> Option<HeaderValue> {
    let origin = request.headers().get(ORIGIN)?;
    site.is_welcome(origin.to_str().ok()?).then(|| origin.clone())
}

/// The answer to a browser that asks beforehand.
pub(super) fn preflight(request: &Request) -> Option<Response> {
    let asks =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    asks.then(|| {
        let headers = [
            (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE"),
            (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, if-match, if-none-match, range"),
            (ACCESS_CONTROL_MAX_AGE, "600"),
        ];
        (StatusCode::NO_CONTENT, headers).into_response()
    })
}

pub(super) fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = HeaderValue::from_static("etag, retry-after, x-choir-hash");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.append(VARY, HeaderValue::from_static("origin"));
}
