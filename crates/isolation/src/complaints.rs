//! The end of what a command complained of, in whole lines: one that begins in its middle could begin in the middle of a
//! secret, which nobody would know again.

/// Bytes that are kept.
const KEPT: usize = 2 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    bytes: Vec<u8>,
    /// Whether something before them is gone.
    is_torn: bool,
}

impl Complaints {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let old = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..old);
        self.is_torn |= old > 0;
    }

    pub(crate) fn text(&self) -> String {
        let first_line = || self.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(self.bytes.len());
        let start = if self.is_torn { first_line() } else { 0 };
        String::from_utf8_lossy(&self.bytes[start..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_begins_with_a_whole_line() {
        let mut said = Complaints::default();
        said.add(b"starting\n");
        assert_eq!(said.text(), "starting");
        for _ in 0..KEPT {
            said.add(b"token=s3cret\n");
        }
        assert!(said.text().lines().all(|line| line == "token=s3cret"), "{}", said.text());
        assert!(said.text().len() > KEPT - 30);
    }

    #[test]
    fn a_line_without_end_is_left_out() {
        let mut said = Complaints::default();
        said.add(&[b'x'; KEPT + 1]);
        said.add(b"end of it");
        assert_eq!(said.text(), "");
        said.add(b"\nit broke");
        assert_eq!(said.text(), "it broke");
    }
}
