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
