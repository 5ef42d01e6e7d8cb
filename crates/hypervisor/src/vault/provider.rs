//! The name of a model provider, such as `anthropic`, `bedrock`, `openai`, `zai` or `moonshot`. The vault does not know
//! which providers exist, apart from Bedrock, whose key may have several parts.

use std::fmt;

use super::{ProviderSecret, VaultError};

const MAX_LENGTH: usize = 32;
const BEDROCK: &str = "bedrock";

/// A name of `[a-z0-9-]{1,32}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderName(String);

impl ProviderName {
    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(letter) {
            return Ok(Self(text.to_owned()));
        }
        let message = format!(
            "the name of a provider has 1 to {MAX_LENGTH} characters of a-z, 0-9 and '-', as in anthropic"
        );
        Err(VaultError::Invalid(message))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Refuses a secret that cannot be a key of this provider. A Bedrock key is split at its colons, so a malformed one
    /// would send parts of the secret in the wrong fields.
    pub(super) fn check(&self, secret: &ProviderSecret) -> Result<(), VaultError> {
        let letter = |b: u8| b.is_ascii_alphanumeric() || b"+/=_.-".contains(&b);
        let parts: Vec<&str> = secret.reveal().split(':').collect();
        let is_key =
            parts.len() <= 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(letter));
        if self.0 != BEDROCK || is_key {
            return Ok(());
        }
        let message = "a Bedrock key is an API key, or an access key as ID:SECRET or ID:SECRET:SESSION_TOKEN";
        Err(VaultError::Invalid(message.into()))
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_only_allowed_characters() {
        for good in ["anthropic", "z-ai", "x", "0", &"a".repeat(32)] {
            assert_eq!(ProviderName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "Anthropic", "a b", "a/b", "é", "a\0", &"a".repeat(33)] {
            assert!(ProviderName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_bedrock_key_has_up_to_three_parts() {
        let check = |provider: &str, secret: &str| {
            ProviderName::parse(provider).unwrap().check(&ProviderSecret::new(secret.into())).is_ok()
        };
        for good in
            ["ABSKQmVkcm9jaw==", "bedrock-api-key-YmVkcm9jaw", "AKIA:wJal/K7+x", "ASIA:wJal/K7:IQoJ+b3=="]
        {
            assert!(check("bedrock", good), "{good}");
        }
        let json = r#"{"access_key_id":"AKIA","secret_access_key":"wJal"}"#;
        for bad in [json, "AKIA:", ":wJal", "AKIA:wJal:IQoJ:b3", "AKIA: wJal", "AKIA:wJal:"] {
            assert!(!check("bedrock", bad), "{bad}");
        }
        assert!(check("tracker", json), "other providers accept any text");
    }
}
