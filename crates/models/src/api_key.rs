//! API keys of providers. They are wiped from memory when dropped and never appear in logs.

use std::fmt;

use zeroize::Zeroizing;

/// An API key. Its `Debug` output hides the key, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    /// A header value of `prefix` followed by the key, marked as sensitive so that it is not logged. `None` if the key
    /// contains characters that a header does not allow.
    pub fn in_header(&self, prefix: &str) -> Option<reqwest::header::HeaderValue> {
        let text = format!("{prefix}{}", self.expose().trim());
        let mut value = reqwest::header::HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The key itself. Call this only to send it to its provider.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Looks up API keys. The gateway asks for the key before every request, so a changed key takes effect immediately.
///
/// For Bedrock a key is either an API key, or `access key id:secret access key[:session token]`.
pub trait ApiKeys: Send + Sync {
    fn key(&self, provider: &str) -> Option<ApiKey>;
}
