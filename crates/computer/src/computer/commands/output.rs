//! The stored output of a command: its beginning and its end, with a line between them that says how much is missing.

use std::collections::VecDeque;

const HEAD: usize = 256 << 10;
const TAIL: usize = 768 << 10;

#[derive(Debug, Default)]
pub(super) struct TruncatedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl TruncatedOutput {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.dropped > 0 {
            bytes.extend_from_slice(format!("\n[… {} bytes are left out here …]\n", self.dropped).as_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_as_it_is_and_long_output_at_both_ends() {
        let mut kept = TruncatedOutput::default();
        kept.add(b"one ");
        kept.add(b"two");
        assert_eq!(kept.into_bytes(), b"one two");

        let mut kept = TruncatedOutput::default();
        kept.add(b"first");
        for _ in 0..20 {
            kept.add(&[b'x'; 100_000]);
        }
        kept.add(b"last");
        let bytes = kept.into_bytes();
        assert!(bytes.starts_with(b"first") && bytes.ends_with(b"last"));
        assert!(bytes.len() < HEAD + TAIL + 100);
        assert!(String::from_utf8_lossy(&bytes).contains("bytes are left out here"));
    }
}
