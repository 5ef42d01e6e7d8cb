//! Finds the marks that shells put between prompts and commands (OSC 133) in the output of a terminal.

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A command starts.
    Began,
    /// A command ended, or a prompt is shown.
    Finished,
}

const PREFIX: &[u8] = b"\x1b]133;";

/// Finds marks in output that arrives in pieces of any length.
#[derive(Debug, Default)]
pub(super) struct MarkParser {
    /// How much of the prefix was there at the end of the last piece.
    matched: usize,
}

impl MarkParser {
    /// The marks that are complete with this piece, in order.
    pub(super) fn find(&mut self, piece: &[u8]) -> impl Iterator<Item = Mark> {
        piece.iter().filter_map(|byte| self.feed(*byte))
    }

    fn feed(&mut self, byte: u8) -> Option<Mark> {
        let expected = PREFIX.get(self.matched);
        if expected == Some(&byte) {
            self.matched += 1;
            return None;
        }
        // Only the first byte of the prefix is an escape, so nothing else can begin a new one.
        self.matched = usize::from(byte == PREFIX[0]);
        match (expected, byte) {
            (None, b'C') => Some(Mark::Began),
            (None, b'A' | b'D') => Some(Mark::Finished),
            (None | Some(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pieces: &[&[u8]]) -> Vec<Mark> {
        let mut marks = MarkParser::default();
        pieces.iter().flat_map(|piece| marks.find(piece).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn marks_are_found_wherever_the_output_is_cut() {
        let output =
            b"$ \x1b]133;C\x07make\r\n\x1b\x1b]133;D;0\x1b\\\x1b]133;B\x07\x1b]1337;C\x07\x1b]0;133;C\x07";
        for at in 0..=output.len() {
            let (before, after) = output.split_at(at);
            assert_eq!(find(&[before, after]), [Mark::Began, Mark::Finished], "cut at {at}");
        }
        let single: Vec<&[u8]> = output.chunks(1).collect();
        assert_eq!(find(&single), [Mark::Began, Mark::Finished]);
    }
}
