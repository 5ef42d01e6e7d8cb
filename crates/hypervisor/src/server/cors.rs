//! CORS: pages of the configured origins may call with a token, never with a cookie.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::site::Site;

/// The request's origin, if it is one of the configured origins.
pub(super) fn allowed_origin(site: &Site, request: &Request) -> Option<HeaderValue> {
    let origin = request.headers().get(ORIGIN)?;
    site.is_allowed_origin(origin.to_str().ok()?).then(|| origin.clone())
}

/// The response to a preflight request, or `None` if it is not one.
pub(super) fn preflight(request: &Request) -> Option<Response> {
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    is_preflight.then(|| {
        let headers = [
            (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE"),
            (
                ACCESS_CONTROL_ALLOW_HEADERS,
                "authorization, choir-command, content-type, if-match, if-none-match, range",
            ),
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
