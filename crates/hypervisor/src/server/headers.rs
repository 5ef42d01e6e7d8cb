//! The security headers of every response.

use axum::http::header::{
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::site::Site;

const COOP: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");

const PERMISSIONS_VALUE: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
     magnetometer=(), microphone=(), midi=(), payment=(), usb=(), \
     clipboard-read=(self), clipboard-write=(self), fullscreen=(self), publickey-credentials-create=(self), \
     publickey-credentials-get=(self)";

/// The content security policy of our pages: own scripts and WASM, own styles or those with the page's nonce, nothing
/// else inline.
pub(crate) fn content_security_policy(site: &Site, nonce: Option<&str>) -> String {
    let style = nonce.map(|nonce| format!(" 'nonce-{nonce}'")).unwrap_or_default();
    let origin = site.origin().origin().ascii_serialization();
    let socket = origin.replacen("http", "ws", 1);
    format!(
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'{style}; \
         img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; frame-src 'self' blob:; \
         worker-src 'self' blob:; connect-src 'self' {socket}; frame-ancestors 'none'; object-src 'none'; \
         base-uri 'none'; form-action 'self'"
    )
}

/// Adds the headers that the handler did not set itself. Files of a workspace come with a stricter policy.
pub(super) fn protect(site: &Site, cross_origin: bool, headers: &mut HeaderMap) {
    let mut set = |name: HeaderName, value: HeaderValue| {
        headers.entry(name).or_insert(value);
    };
    if let Ok(policy) = HeaderValue::from_str(&content_security_policy(site, None)) {
        set(CONTENT_SECURITY_POLICY, policy);
    }
    set(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    set(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    set(COOP, HeaderValue::from_static("same-origin"));
    set(CORP, HeaderValue::from_static(if cross_origin { "cross-origin" } else { "same-origin" }));
    set(PERMISSIONS, HeaderValue::from_static(PERMISSIONS_VALUE));
    // For `localhost`, HSTS would apply to every port and so to other programs.
    if site.is_secure() && !site.is_local() {
        set(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}
