//! Keys of providers: held as short as possible, shown to nobody.

use std::fmt;

use zeroize::Zeroizing;

/// A key. It is wiped from memory when dropped, and shows itself only to whoever sends it along.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    /// It after these words, as a header that no log shows; nothing, if it holds characters that no key has.
    pub fn in_header(&self, before: &str) -> Option<reqwest::header::HeaderValue> {
        let text = format!("{before}{}", self.expose().trim());
        let mut value = reqwest::header::HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// For whoever carries it to the one it is for, and nobody else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where keys come from. It is asked anew for every turn, so a changed key is used at once.
///
/// For Bedrock a key is either an API key, or `access key id:secret access key[:session token]`.
pub trait Keys: Send + Sync {
    fn key(&self, provider: &str) -> Option<Secret>;
}
