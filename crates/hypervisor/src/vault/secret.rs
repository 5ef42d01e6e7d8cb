//! A provider's secret in memory: it shows itself to nobody who does not ask by name, and is wiped when dropped.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::VaultError;

/// As much as a secret may hold. Bedrock's session tokens are the longest, with about 2 KiB.
const AT_MOST: usize = 16 << 10;
/// Of a secret that is shorter, four letters would tell too much.
const SHOWN_FROM: usize = 20;
const SHOWN: usize = 4;

/// A provider's secret: an API key, or whatever else a provider takes. It has no `Display` and no `Serialize`, so it gets
/// nowhere by accident.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for the request to its provider and for nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Without the spaces around it that come with pasting; refused where it cannot be a secret.
    pub(super) fn checked(&self) -> Result<Self, VaultError> {
        let text = self.0.trim();
        // A line break within a key is a slip of the mouse; in JSON it means nothing.
        let odd = |c: char| c.is_control() && !(text.starts_with('{') && c.is_whitespace());
        match text.len() {
            0 => Err(VaultError::Invalid("the secret is empty".into())),
            length if length > AT_MOST => {
                Err(VaultError::Invalid(format!("a secret has at most {AT_MOST} bytes")))
            }
            _ if text.contains(odd) => {
                Err(VaultError::Invalid("the secret has line breaks or control characters in it".into()))
            }
            _ => Ok(Self::new(text.to_owned())),
        }
    }

    /// The last letters, by which a person knows one key from another, where they tell little. The end of JSON says
    /// nothing.
    pub(super) fn hint(&self) -> Option<String> {
        let text = self.0.as_str();
        let plain = text.chars().all(|c| c.is_ascii_graphic()) && !text.starts_with('{');
        (plain && text.len() >= SHOWN_FROM).then(|| text[text.len() - SHOWN..].to_owned())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_hides_from_debug_and_shows_its_end_only_where_that_tells_little() {
        assert_eq!(format!("{:?}", Secret::new("sk-ant-0123456789abcdef".into())), "Secret(…)");
        for (text, hint) in [
            ("sk-ant-0123456789abcdef", Some("cdef")),
            ("0123456789012345678", None),
            (r#"{"access_key_id":"AKIA","secret":"abcdefghijkl"}"#, None),
            ("schlüssel-schlüssel-schlüssel", None),
        ] {
            assert_eq!(Secret::new(text.into()).hint().as_deref(), hint, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_secret_is_refused() {
        for bad in ["", " \n", "two\nlines", "nul\0", &"x".repeat(AT_MOST + 1)] {
            assert!(matches!(Secret::new(bad.into()).checked(), Err(VaultError::Invalid(_))), "{bad:?}");
        }
        assert_eq!(Secret::new(" sk-1\r\n".into()).checked().unwrap().reveal(), "sk-1");
        assert_eq!(Secret::new("{\n \"a\": 1\n}\n".into()).checked().unwrap().reveal(), "{\n \"a\": 1\n}");
    }
}
