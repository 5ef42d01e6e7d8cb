//! A provider's secret in memory. It is never printed by accident, and it is wiped when dropped.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::VaultError;

/// The maximum length. Bedrock's session tokens are the longest secrets, with about 2 KiB.
const MAX_BYTES: usize = 16 << 10;
/// Shorter secrets have no hint, because four characters would reveal too much.
const MIN_BYTES_FOR_HINT: usize = 20;
const HINT_BYTES: usize = 4;

/// A provider's secret, usually an API key. It implements neither `Display` nor `Serialize`.
#[derive(Clone)]
pub struct ProviderSecret(Zeroizing<String>);

impl fmt::Debug for ProviderSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderSecret(…)")
    }
}

impl ProviderSecret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself. Use it only in the request to its provider.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Trims whitespace, which is easily pasted along, and checks that the text can be a secret.
    pub(super) fn checked(&self) -> Result<Self, VaultError> {
        let text = self.0.trim();
        // A line break within a key is a copy error; within JSON it is whitespace.
        let invalid = |c: char| c.is_control() && !(text.starts_with('{') && c.is_whitespace());
        match text.len() {
            0 => Err(VaultError::Invalid("the secret is empty".into())),
            length if length > MAX_BYTES => {
                Err(VaultError::Invalid(format!("a secret has at most {MAX_BYTES} bytes")))
            }
            _ if text.contains(invalid) => {
                Err(VaultError::Invalid("the secret contains line breaks or control characters".into()))
            }
            _ => Ok(Self::new(text.to_owned())),
        }
    }

    /// The last characters, by which a person recognises a key. `None` if the secret is too short or is JSON.
    pub(super) fn hint(&self) -> Option<String> {
        let text = self.0.as_str();
        let plain = text.chars().all(|c| c.is_ascii_graphic()) && !text.starts_with('{');
        (plain && text.len() >= MIN_BYTES_FOR_HINT).then(|| text[text.len() - HINT_BYTES..].to_owned())
    }
}

impl<'de> Deserialize<'de> for ProviderSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_in_debug_output_and_has_a_hint_only_if_it_is_long() {
        assert_eq!(
            format!("{:?}", ProviderSecret::new("sk-ant-0123456789abcdef".into())),
            "ProviderSecret(…)"
        );
        for (text, hint) in [
            ("sk-ant-0123456789abcdef", Some("cdef")),
            ("0123456789012345678", None),
            (r#"{"access_key_id":"AKIA","secret":"abcdefghijkl"}"#, None),
            ("schlüssel-schlüssel-schlüssel", None),
        ] {
            assert_eq!(ProviderSecret::new(text.into()).hint().as_deref(), hint, "{text}");
        }
    }

    #[test]
    fn text_that_cannot_be_a_secret_is_refused() {
        for bad in ["", " \n", "two\nlines", "nul\0", &"x".repeat(MAX_BYTES + 1)] {
            assert!(
                matches!(ProviderSecret::new(bad.into()).checked(), Err(VaultError::Invalid(_))),
                "{bad:?}"
            );
        }
        assert_eq!(ProviderSecret::new(" sk-1\r\n".into()).checked().unwrap().reveal(), "sk-1");
        assert_eq!(
            ProviderSecret::new("{\n \"a\": 1\n}\n".into()).checked().unwrap().reveal(),
            "{\n \"a\": 1\n}"
        );
    }
}
