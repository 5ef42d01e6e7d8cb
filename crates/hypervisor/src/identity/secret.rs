//! Secrets: 256 random bits, shown once, kept only as their SHA-256.
//!
//! A plain hash is enough because there is nothing to guess; only recovery codes, which people copy by hand, are
//! shorter and take argon2.

use std::fmt;

use sha2::{Digest, Sha256};

use super::IdentityError;

/// A secret on its way to its holder, or back.
#[derive(Clone)]
pub struct Secret([u8; 32]);

/// Never the secret itself, not even in a log of what went wrong.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    pub(crate) fn generate() -> Result<Self, IdentityError> {
        Ok(Self(random()?))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(value(pair[0])? << 4 | value(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    /// The form in links, cookies and tokens.
    pub fn reveal(&self) -> String {
        hex(&self.0)
    }

    /// What is kept.
    pub(super) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

/// A name for a row that anyone may see.
pub(super) fn id() -> Result<String, IdentityError> {
    Ok(hex(&random::<12>()?))
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(IdentityError::Randomness)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_its_text_and_hides_from_debug() {
        let secret = Secret::generate().unwrap();
        let again = Secret::parse(&secret.reveal()).unwrap();
        assert_eq!(again.hash(), secret.hash());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        for bad in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert!(Secret::parse(bad).is_none(), "{bad}");
        }
    }
}
