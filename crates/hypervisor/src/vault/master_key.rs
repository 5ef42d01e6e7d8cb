//! The master key. It seals a secret and binds it to its entry, so the secret opens only as that entry.

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use zeroize::Zeroizing;

use super::error::MasterKeyError;
use super::{EntryId, ProviderSecret};

const KEY_BYTES: usize = 32;

/// Identifies a master key without revealing it. The store keeps it beside the sealed entries.
pub(super) type Fingerprint = [u8; 16];

/// The 256-bit key that seals all entries.
#[derive(Clone)]
pub(super) struct MasterKey(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

/// An encrypted secret. Every sealing uses a new nonce.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) nonce: [u8; NONCE_LEN],
    pub(super) bytes: Vec<u8>,
}

/// The sealed bytes do not belong to this key and this entry, or were changed.
#[derive(Debug)]
pub(super) struct UnsealError;

impl MasterKey {
    pub(super) fn generate() -> Result<Self, MasterKeyError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes).map_err(MasterKeyError::Randomness)?;
        Ok(Self(bytes))
    }

    /// Parses hex, or base64 in the standard or URL-safe alphabet, with or without padding.
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

    /// The text form in the key file.
    pub(super) fn to_hex(&self) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
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

    pub(super) fn seal(&self, entry_id: &EntryId, secret: &ProviderSecret) -> Result<Sealed, MasterKeyError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(MasterKeyError::Randomness)?;
        let tag = CHACHA20_POLY1305.tag_len();
        // Reserves room for the tag, so that the buffer does not move and leave a copy of the secret behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(secret.reveal().len() + tag));
        bytes.extend_from_slice(secret.reveal().as_bytes());
        let cipher = self.cipher().ok_or(MasterKeyError::Seal)?;
        cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(entry_id.associated_data()),
                &mut *bytes,
            )
            .map_err(|_| MasterKeyError::Seal)?;
        Ok(Sealed { nonce, bytes: std::mem::take(&mut *bytes) })
    }

    pub(super) fn open(&self, entry_id: &EntryId, sealed: &Sealed) -> Result<ProviderSecret, UnsealError> {
        let mut bytes = Zeroizing::new(sealed.bytes.clone());
        let cipher = self.cipher().ok_or(UnsealError)?;
        let nonce = Nonce::assume_unique_for_key(sealed.nonce);
        let plain = cipher
            .open_in_place(nonce, Aad::from(entry_id.associated_data()), &mut bytes)
            .map_err(|_| UnsealError)?;
        std::str::from_utf8(plain).map(|text| ProviderSecret::new(text.to_owned())).map_err(|_| UnsealError)
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
    fn a_master_key_parses_from_every_form_and_is_hidden_in_debug_output() {
        let master = MasterKey(Zeroizing::new([0xfb; KEY_BYTES]));
        let hex = "fb".repeat(32);
        assert_eq!(*master.to_hex(), hex);
        let standard = "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=";
        let url = standard.replace('+', "-").replace('/', "_");
        let forms = [hex.clone(), hex.to_uppercase(), format!("{hex}\n"), standard.into(), url.clone()];
        for text in forms.iter().chain([&url.replace('=', "")]) {
            let read = MasterKey::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.fingerprint(), master.fingerprint(), "{text}");
        }
        for bad in ["", "fb", &"fb".repeat(31), &"fb".repeat(33), &"zz".repeat(32), "not a key"] {
            assert!(MasterKey::parse(bad).is_none(), "{bad}");
        }
        assert_eq!(format!("{master:?}"), "MasterKey(…)");
    }

    #[test]
    fn a_nonce_is_never_used_twice() {
        let (master, entry_id) = (MasterKey::generate().unwrap(), EntryId::shared("zai"));
        let seal = || master.seal(&entry_id, &ProviderSecret::new("the same".into())).unwrap();
        let (one, two) = (seal(), seal());
        assert_ne!(one.nonce, two.nonce);
        assert_ne!(one.bytes, two.bytes);
    }
}
