//! The web bundle, wherever it is kept: the caller brings it, this serves it.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::problem::Refusal;
use crate::server::headers::policy;
use crate::server::site::Site;

/// One file of the bundle.
#[derive(Debug, Clone)]
pub struct Asset {
    pub bytes: Cow<'static, [u8]>,
    /// The same, compressed beforehand.
    pub brotli: Option<Cow<'static, [u8]>>,
    pub mime: &'static str,
    /// Its name says its content, so it never changes.
    pub immutable: bool,
}

/// Where the bundle is. Paths have no leading slash.
pub trait Assets: Send + Sync {
    fn get(&self, path: &str) -> Option<Asset>;
}

/// What a file is, by its name.
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

/// The page that holds everything.
const INDEX: &str = "index.html";
/// Where the page wants its nonce.
const NONCE: &str = "{{nonce}}";

pub(crate) fn serve(assets: &dyn Assets, site: &Site, path: &str, asked: &HeaderMap) -> Response {
    let path = path.trim_start_matches('/');
    let path = if path.is_empty() { INDEX } else { path };
    match assets.get(path) {
        Some(asset) if path == INDEX => index(&asset, site).unwrap_or_else(Refusal::into_response),
        Some(asset) => file(asset, path, asked),
        None => Refusal::not_found().into_response(),
    }
}

/// The page, with a nonce that is used once.
fn index(asset: &Asset, site: &Site) -> Result<Response, Refusal> {
    let nonce = crate::identity::Secret::generate()?.reveal();
    let page = String::from_utf8_lossy(&asset.bytes).replace(NONCE, &nonce);
    let policy = HeaderValue::from_str(&policy(site, Some(&nonce))).map_err(|_| Refusal::internal())?;
    let mut response = page.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

fn file(asset: Asset, path: &str, asked: &HeaderMap) -> Response {
    let brotli = asset.brotli.filter(|_| takes_brotli(asked));
    let compressed = brotli.is_some();
    let name = if asset.immutable { path.as_bytes().to_vec() } else { asset.bytes.to_vec() };
    let mark =
        Sha256::digest(&name)[..12].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let etag = format!("\"{mark}{}\"", if compressed { "-br" } else { "" });
    let known = asked.get_all(IF_NONE_MATCH).iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag))
    });
    let mut response = if known {
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
    if !known {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.mime));
        if compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
    }
    response
}

fn takes_brotli(asked: &HeaderMap) -> bool {
    let values = asked.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok());
        name.trim() == "br" && weight.is_some_and(|q| q > 0.0)
    })
}
