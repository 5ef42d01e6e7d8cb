//! The end of a command's standard error, in whole lines. A truncated first line could hold part of a secret, which
//! redaction would not recognise.

/// Bytes kept.
const MAX_BYTES: usize = 2 << 10;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct StderrTail {
    bytes: Vec<u8>,
    /// True if earlier bytes were dropped.
    is_truncated: bool,
}

impl StderrTail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(MAX_BYTES);
        self.bytes.drain(..excess);
        self.is_truncated |= excess > 0;
    }

    pub(crate) fn text(&self) -> String {
        let first_line = || self.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(self.bytes.len());
        let start = if self.is_truncated { first_line() } else { 0 };
        String::from_utf8_lossy(&self.bytes[start..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_begins_with_a_whole_line() {
        let mut tail = StderrTail::default();
        tail.push(b"starting\n");
        assert_eq!(tail.text(), "starting");
        for _ in 0..MAX_BYTES {
            tail.push(b"token=s3cret\n");
        }
        assert!(tail.text().lines().all(|line| line == "token=s3cret"), "{}", tail.text());
        assert!(tail.text().len() > MAX_BYTES - 30);
    }

    #[test]
    fn a_truncated_line_is_left_out() {
        let mut tail = StderrTail::default();
        tail.push(&[b'x'; MAX_BYTES + 1]);
        tail.push(b"end of it");
        assert_eq!(tail.text(), "");
        tail.push(b"\nit broke");
        assert_eq!(tail.text(), "it broke");
    }
}
