//! Random secrets of 256 bits, shown once and stored only as their SHA-256.
//!
//! A fast hash is enough because 256 random bits cannot be guessed. Only recovery codes, which people copy by hand, are
//! shorter and use argon2.

use std::fmt;

use sha2::{Digest, Sha256};

use super::IdentityError;

/// The secret of a session, link, invitation or token.
#[derive(Clone)]
pub struct RandomSecret([u8; 32]);

/// Hides the secret.
impl fmt::Debug for RandomSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomSecret(…)")
    }
}

impl RandomSecret {
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

    /// The text form in links, cookies and tokens.
    pub fn reveal(&self) -> String {
        hex(&self.0)
    }

    /// The hash that is stored.
    pub(super) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

/// A random id for a row. It is not secret.
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
    fn a_secret_round_trips_through_text_and_is_hidden_in_debug_output() {
        let secret = RandomSecret::generate().unwrap();
        let again = RandomSecret::parse(&secret.reveal()).unwrap();
        assert_eq!(again.hash(), secret.hash());
        assert_eq!(format!("{secret:?}"), "RandomSecret(…)");
        for bad in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert!(RandomSecret::parse(bad).is_none(), "{bad}");
        }
    }
}
