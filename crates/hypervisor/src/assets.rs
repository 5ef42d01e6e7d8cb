//! Serves the web bundle from an [`Assets`] source: files on disk, or bytes embedded in the binary.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::problem::ApiError;
use crate::server::headers::content_security_policy;
use crate::site::Site;

/// One file of the bundle.
#[derive(Debug, Clone)]
pub struct Asset {
    pub bytes: Cow<'static, [u8]>,
    /// The bytes compressed with Brotli at build time.
    pub brotli: Option<Cow<'static, [u8]>>,
    pub mime: &'static str,
    /// The file name contains a hash of the content, so the file never changes.
    pub immutable: bool,
}

/// A source of bundle files. Paths have no leading slash.
pub trait Assets: Send + Sync {
    fn get(&self, path: &str) -> Option<Asset>;
}

/// The media type of a file, by its extension.
pub fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some(_) | None => "application/octet-stream",
    }
}

/// The single page of the desktop.
const INDEX: &str = "index.html";
/// Replaced in the page by the nonce of the response.
const NONCE_PLACEHOLDER: &str = "{{nonce}}";

pub(crate) fn serve(assets: &dyn Assets, site: &Site, path: &str, request_headers: &HeaderMap) -> Response {
    let path = path.trim_start_matches('/');
    let path = if path.is_empty() { INDEX } else { path };
    match assets.get(path) {
        Some(asset) if path == INDEX => index(&asset, site).unwrap_or_else(ApiError::into_response),
        Some(asset) => file(asset, path, request_headers),
        None => ApiError::not_found().into_response(),
    }
}

/// The page, with a fresh nonce.
fn index(asset: &Asset, site: &Site) -> Result<Response, ApiError> {
    let nonce = crate::identity::RandomSecret::generate()?.reveal();
    let page = String::from_utf8_lossy(&asset.bytes).replace(NONCE_PLACEHOLDER, &nonce);
    let policy = content_security_policy(site, Some(&nonce));
    let policy = HeaderValue::from_str(&policy).map_err(|_| ApiError::internal())?;
    let mut response = page.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

fn file(asset: Asset, path: &str, request_headers: &HeaderMap) -> Response {
    let brotli = asset.brotli.filter(|_| accepts_brotli(request_headers));
    let compressed = brotli.is_some();
    let identity = if asset.immutable { path.as_bytes().to_vec() } else { asset.bytes.to_vec() };
    let digest =
        Sha256::digest(&identity)[..12].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let etag = format!("\"{digest}{}\"", if compressed { "-br" } else { "" });
    let not_modified = request_headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag))
    });
    let mut response = if not_modified {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match brotli.unwrap_or(asset.bytes) {
            Cow::Borrowed(bytes) => Body::from(bytes).into_response(),
            Cow::Owned(bytes) => Body::from(bytes).into_response(),
        }
    };
    let headers = response.headers_mut();
    let cache = if asset.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    if !not_modified {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.mime));
        if compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
    }
    response
}

fn accepts_brotli(request_headers: &HeaderMap) -> bool {
    let values = request_headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok());
        name.trim() == "br" && weight.is_some_and(|q| q > 0.0)
    })
}
