//! Unified diffs of two texts, for people to read.

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};

use crate::merge::is_text;

/// The difference of two contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextDiff {
    /// Hunks in unified form, with the number of added and removed lines.
    Lines { unified: String, added: u32, removed: u32 },
    /// At least one side is not text.
    Binary,
}

/// Compares two contents line by line.
pub fn diff(before: &[u8], after: &[u8]) -> TextDiff {
    let (true, true) = (is_text(before), is_text(after)) else { return TextDiff::Binary };
    let before = String::from_utf8_lossy(before);
    let after = String::from_utf8_lossy(after);
    let input = InternedInput::new(before.as_ref(), after.as_ref());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    TextDiff::Lines {
        unified: diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input).to_string(),
        added: diff.count_additions(),
        removed: diff.count_removals(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_and_counted() {
        let TextDiff::Lines { unified, added, removed } = diff(b"a\nb\nc\n", b"a\nB\nc\nd\n") else {
            panic!()
        };
        assert_eq!((added, removed), (2, 1));
        assert!(unified.contains("-b\n+B\n c\n+d\n"), "{unified}");
        assert_eq!(diff(b"\0", b"x"), TextDiff::Binary);
    }
}
