//! The master key, and what it does: seal an entry for its place, and open it there and nowhere else.

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use zeroize::Zeroizing;

use super::error::Locked;
use super::{Place, Secret};

const BYTES: usize = 32;

/// Tells master keys apart and tells nothing about them. It stands in the store beside what was sealed.
pub(super) type Fingerprint = [u8; 16];

/// 256 bits that seal all entries.
#[derive(Clone)]
pub(super) struct Master(Zeroizing<[u8; BYTES]>);

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Master(…)")
    }
}

/// A secret as it lies on the disk. The nonce is new for every sealing.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) nonce: [u8; NONCE_LEN],
    pub(super) bytes: Vec<u8>,
}

/// What does not open: another key, another place, or other bytes.
#[derive(Debug)]
pub(super) struct DoesNotOpen;

impl Master {
    pub(super) fn generate() -> Result<Self, Locked> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        getrandom::fill(&mut *bytes).map_err(Locked::Randomness)?;
        Ok(Self(bytes))
    }

    /// Reads hex, or base64 of either alphabet, with or without its padding.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let bytes = match text.len() {
            64 => unhex(text)?,
            _ => {
                let lenient =
                    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
                let read = |alphabet| GeneralPurpose::new(alphabet, lenient).decode(text).ok();
                Zeroizing::new(read(&alphabet::STANDARD).or_else(|| read(&alphabet::URL_SAFE))?)
            }
        };
        Some(Self(Zeroizing::new(bytes.as_slice().try_into().ok()?)))
    }

    /// The form in its file.
    pub(super) fn to_hex(&self) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = Zeroizing::new(String::with_capacity(2 * BYTES));
        for byte in self.0.iter() {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        text
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*self.0);
        let tag = hmac::sign(&key, b"choir.vault.fingerprint");
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(&tag.as_ref()[..16]);
        fingerprint
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&CHACHA20_POLY1305, &*self.0).ok().map(LessSafeKey::new)
    }

    pub(super) fn seal(&self, place: &Place, secret: &Secret) -> Result<Sealed, Locked> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(Locked::Randomness)?;
        let tag = CHACHA20_POLY1305.tag_len();
        // With room for the tag, so that the buffer does not move and leave a copy behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(secret.reveal().len() + tag));
        bytes.extend_from_slice(secret.reveal().as_bytes());
        let cipher = self.cipher().ok_or(Locked::Seal)?;
        cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(place.bound()),
                &mut *bytes,
            )
            .map_err(|_| Locked::Seal)?;
        Ok(Sealed { nonce, bytes: std::mem::take(&mut *bytes) })
    }

    pub(super) fn open(&self, place: &Place, sealed: &Sealed) -> Result<Secret, DoesNotOpen> {
        let mut bytes = Zeroizing::new(sealed.bytes.clone());
        let cipher = self.cipher().ok_or(DoesNotOpen)?;
        let nonce = Nonce::assume_unique_for_key(sealed.nonce);
        let plain =
            cipher.open_in_place(nonce, Aad::from(place.bound()), &mut bytes).map_err(|_| DoesNotOpen)?;
        std::str::from_utf8(plain).map(|text| Secret::new(text.to_owned())).map_err(|_| DoesNotOpen)
    }
}

fn unhex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
    bytes.map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_key_is_read_in_every_form_and_hides_from_debug() {
        let master = Master(Zeroizing::new([0xfb; BYTES]));
        let hex = "fb".repeat(32);
        assert_eq!(*master.to_hex(), hex);
        let standard = "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=";
        let url = standard.replace('+', "-").replace('/', "_");
        let forms = [hex.clone(), hex.to_uppercase(), format!("{hex}\n"), standard.into(), url.clone()];
        for text in forms.iter().chain([&url.replace('=', "")]) {
            let read = Master::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.fingerprint(), master.fingerprint(), "{text}");
        }
        for bad in ["", "fb", &"fb".repeat(31), &"fb".repeat(33), &"zz".repeat(32), "not a key"] {
            assert!(Master::parse(bad).is_none(), "{bad}");
        }
        assert_eq!(format!("{master:?}"), "Master(…)");
    }

    #[test]
    fn a_nonce_is_never_used_twice() {
        let (master, place) = (Master::generate().unwrap(), Place::shared("zai"));
        let seal = || master.seal(&place, &Secret::new("the same".into())).unwrap();
        let (one, two) = (seal(), seal());
        assert_ne!(one.nonce, two.nonce);
        assert_ne!(one.bytes, two.bytes);
    }
}
