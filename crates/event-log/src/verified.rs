//! A reader that checks the hash of a content before it returns the last bytes.

use std::io::{self, Read};

use sha2::{Digest, Sha256};
use shared_types::ContentHash;

use crate::ContentError;

/// Reads exactly `size` bytes and checks their hash.
#[derive(Debug)]
pub(crate) struct VerifiedReader<R> {
    inner: R,
    expected: ContentHash,
    left: u64,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Hashing(Sha256),
    Passed,
    Failed,
}

impl<R: Read> VerifiedReader<R> {
    pub(crate) fn new(inner: R, size: u64, expected: ContentHash) -> Self {
        Self { inner, expected, left: size, check: Check::Hashing(Sha256::new()) }
    }

    fn damaged(&mut self) -> io::Error {
        self.check = Check::Failed;
        io::Error::new(io::ErrorKind::InvalidData, ContentError::Damaged(self.expected))
    }
}

impl<R: Read> Read for VerifiedReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let hasher = match &mut self.check {
            Check::Passed => return Ok(0),
            Check::Failed => return Err(self.damaged()),
            Check::Hashing(hasher) => hasher,
        };
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let count = self.inner.read(&mut buf[..room])?;
        if count == 0 && self.left > 0 {
            return Err(self.damaged());
        }
        hasher.update(&buf[..count]);
        self.left -= count as u64;
        if self.left == 0 {
            let found = ContentHash(hasher.finalize_reset().into());
            if found != self.expected {
                return Err(self.damaged());
            }
            self.check = Check::Passed;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], size: u64, hash: ContentHash) -> Result<Vec<u8>, ContentError> {
        let mut out = Vec::new();
        VerifiedReader::new(bytes, size, hash).read_to_end(&mut out).map_err(ContentError::from_read)?;
        Ok(out)
    }

    #[test]
    fn only_the_right_bytes_are_read_to_their_end() {
        let bytes = vec![7; 100_000];
        let hash = ContentHash::of(&bytes);
        assert_eq!(read(&bytes, 100_000, hash).unwrap(), bytes);
        assert!(read(b"", 0, ContentHash::of(b"")).unwrap().is_empty());
        assert!(matches!(read(b"", 0, hash), Err(ContentError::Damaged(h)) if h == hash));
        assert!(matches!(read(&bytes[1..], 99_999, hash), Err(ContentError::Damaged(_))));
        assert!(matches!(read(&bytes[1..], 100_000, hash), Err(ContentError::Damaged(_))));
    }

    #[test]
    fn a_damaged_content_never_yields_its_last_bytes() {
        let mut reader = VerifiedReader::new(&b"abcd"[..], 4, ContentHash::of(b"abce"));
        let mut buffer = [0; 3];
        assert_eq!(reader.read(&mut buffer).unwrap(), 3);
        assert!(reader.read(&mut buffer).is_err());
        assert!(reader.read(&mut buffer).is_err(), "it stays damaged");
    }
}
