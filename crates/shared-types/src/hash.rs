//! SHA-256 digests, one type per meaning, written as 64 hex digits in JSON and as 32 bytes elsewhere.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The error for a text that is not 64 hex digits.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("not a SHA-256 hash: expected 64 lower-case hex digits")]
pub struct HashError;

/// The SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn decode_hex(text: &[u8]) -> Result<[u8; 32], HashError> {
    let digits: &[u8; 64] = text.try_into().map_err(|_| HashError)?;
    // Without branches and tables, so that the compiler can vectorize it.
    let mut nibbles = [0; 64];
    let mut all_hex = true;
    for (nibble, digit) in nibbles.iter_mut().zip(digits) {
        let (number, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
        all_hex &= (number < 10) | (letter < 6);
        *nibble = if number < 10 { number } else { letter.wrapping_add(10) };
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(nibbles.chunks_exact(2)) {
        *byte = pair[0] << 4 | (pair[1] & 0x0f);
    }
    if all_hex { Ok(out) } else { Err(HashError) }
}

fn encode_hex(bytes: &[u8; 32]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[(byte >> 4) as usize];
        pair[1] = DIGITS[(byte & 0x0f) as usize];
    }
    out
}

struct HexVisitor;

impl<'de> Visitor<'de> for HexVisitor {
    type Value = [u8; 32];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 lower-case hex digits")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        decode_hex(text.as_bytes()).map_err(E::custom)
    }
}

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub [u8; 32]);

        impl $name {
            pub fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Parses 64 hex digits.
            pub fn parse(text: &str) -> Result<Self, HashError> {
                decode_hex(text.as_bytes()).map(Self)
            }

            /// The first digits, for display.
            pub fn short(&self) -> String {
                self.to_string()[..12].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let hex = encode_hex(&self.0);
                f.write_str(std::str::from_utf8(&hex).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.short())
            }
        }

        impl std::str::FromStr for $name {
            type Err = HashError;
            fn from_str(text: &str) -> Result<Self, HashError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    let hex = encode_hex(&self.0);
                    let text = std::str::from_utf8(&hex).map_err(serde::ser::Error::custom)?;
                    serializer.serialize_str(text)
                } else {
                    self.0.serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(HexVisitor).map(Self)
                } else {
                    <[u8; 32]>::deserialize(deserializer).map(Self)
                }
            }
        }
    };
}

digest! {
    /// The hash of a content: a file, a message, a list.
    ContentHash
}
digest! {
    /// The hash of an event in the log's chain; the default value comes before the first event.
    ChainHash
}
digest! {
    /// The hash of a whole `View`, or of one of its slices.
    RootHash
}

impl ContentHash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_other_texts_are_refused() {
        let hash = ContentHash::of(b"choir");
        assert_eq!(ContentHash::parse(&hash.to_string()), Ok(hash));
        for bad in ["", "abc", &"g".repeat(64), &"A".repeat(64), &"0".repeat(65)] {
            assert_eq!(ContentHash::parse(bad), Err(HashError), "{bad}");
        }
    }
}
