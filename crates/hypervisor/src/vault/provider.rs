//! The name of a provider, such as `anthropic`, `bedrock`, `openai`, `zai` or `moonshot`. Which there are is not known
//! here.

use std::fmt;

use super::VaultError;

const AT_MOST: usize = 32;

/// A name of `[a-z0-9-]{1,32}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Provider(String);

impl Provider {
    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=AT_MOST).contains(&text.len()) && text.bytes().all(letter) {
            return Ok(Self(text.to_owned()));
        }
        let message =
            format!("the name of a provider has 1 to {AT_MOST} of a-z, 0-9 and '-', as in anthropic");
        Err(VaultError::Invalid(message))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_letters() {
        for good in ["anthropic", "z-ai", "x", "0", &"a".repeat(32)] {
            assert_eq!(Provider::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "Anthropic", "a b", "a/b", "é", "a\0", &"a".repeat(33)] {
            assert!(Provider::parse(bad).is_err(), "{bad:?}");
        }
    }
}
