//! Three-way merge of text, line by line.
//!
//! Two changes that overlap or touch are a conflict unless they are equal: a merge never guesses.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Larger texts are not merged; the person decides.
pub const MERGE_LIMIT: u64 = 4 * 1024 * 1024;

/// A section of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Lines that no side changed, only one side changed, or both changed in the same way.
    Merged(Vec<u8>),
    /// Lines that the two sides changed differently.
    Clash { base: Vec<u8>, ours: Vec<u8>, theirs: Vec<u8> },
}

/// The merged text, or nothing if the two sides changed the same lines or one of them is not text.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if ours == theirs || base == theirs {
        return Some(ours.to_vec());
    }
    if base == ours {
        return Some(theirs.to_vec());
    }
    let mut merged = Vec::with_capacity(ours.len().max(theirs.len()));
    for piece in pieces(base, ours, theirs)? {
        let Piece::Merged(lines) = piece else { return None };
        // A line without a newline is allowed only at the end; elsewhere it would be joined with the next line, so the
        // merge fails.
        if !lines.is_empty() && merged.last().is_some_and(|byte| *byte != b'\n') {
            return None;
        }
        merged.extend_from_slice(&lines);
    }
    Some(merged)
}

/// The sections of a merge in the order of the text; none if one of the three is not text.
pub fn pieces(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<Piece>> {
    if ![base, ours, theirs].into_iter().all(is_text) {
        return None;
    }
    let lines: Vec<&[u8]> = imara_diff::sources::byte_lines(base).collect();
    let mut ours = Side::new(base, ours);
    let mut theirs = Side::new(base, theirs);
    let mut pieces = Vec::new();
    let mut done = 0;
    while let Some(start) = [&ours, &theirs].into_iter().filter_map(Side::next).min() {
        // All changes that overlap or touch each other, directly or through another.
        let mut place = start..start;
        let (first_ours, first_theirs) = (ours.at, theirs.at);
        while ours.extend_over(&mut place) || theirs.extend_over(&mut place) {}
        push_merged(&mut pieces, &lines[done..place.start]);
        let (mine, other) = (ours.lines(first_ours, &place), theirs.lines(first_theirs, &place));
        match (mine, other) {
            (Some(mine), Some(other)) if mine != other => pieces.push(Piece::Clash {
                base: lines[place.clone()].concat(),
                ours: mine.concat(),
                theirs: other.concat(),
            }),
            (Some(lines), _) | (None, Some(lines)) => push_merged(&mut pieces, lines),
            (None, None) => {}
        }
        done = place.end;
    }
    push_merged(&mut pieces, &lines[done..]);
    Some(pieces)
}

/// Adds merged lines, to the last section if that is merged too.
fn push_merged(pieces: &mut Vec<Piece>, lines: &[&[u8]]) {
    match pieces.last_mut() {
        _ if lines.is_empty() => {}
        Some(Piece::Merged(before)) if before.ends_with(b"\n") => before.extend(lines.concat()),
        Some(Piece::Merged(_) | Piece::Clash { .. }) | None => pieces.push(Piece::Merged(lines.concat())),
    }
}

/// The lines of one side, its hunks against the base, and the next hunk to merge.
struct Side<'a> {
    lines: Vec<&'a [u8]>,
    hunks: Vec<Hunk>,
    at: usize,
}

impl<'a> Side<'a> {
    fn new(base: &[u8], side: &'a [u8]) -> Self {
        Self { lines: imara_diff::sources::byte_lines(side).collect(), hunks: hunks(base, side), at: 0 }
    }

    /// The start of the next hunk.
    fn next(&self) -> Option<usize> {
        Some(self.hunks.get(self.at)?.before.start)
    }

    /// Extends the range over the next hunk, if that touches it.
    fn extend_over(&mut self, place: &mut Range<usize>) -> bool {
        let Some(hunk) = self.hunks.get(self.at).filter(|hunk| touches(&hunk.before, place)) else {
            return false;
        };
        *place = place.start.min(hunk.before.start)..place.end.max(hunk.before.end);
        self.at += 1;
        true
    }

    /// This side's lines for a range of the base, if it changed the range: its hunks since `first`, and the lines
    /// between.
    fn lines(&self, first: usize, place: &Range<usize>) -> Option<&[&'a [u8]]> {
        let drawn = &self.hunks[first..self.at];
        let (first, last) = (drawn.first()?, drawn.last()?);
        let start = first.after.start - (first.before.start - place.start);
        Some(&self.lines[start..last.after.end + (place.end - last.before.end)])
    }
}

/// UTF-8 without NUL.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

struct Hunk {
    before: Range<usize>,
    after: Range<usize>,
}

fn touches(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start <= b.end && b.start <= a.end
}

fn hunks(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let range = |r: Range<u32>| r.start as usize..r.end as usize;
    diff.hunks().map(|hunk| Hunk { before: range(hunk.before), after: range(hunk.after) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, ours: &str, theirs: &str, expected: Option<&str>) {
        let merged = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        assert_eq!(
            merged.as_deref().map(|m| std::str::from_utf8(m).unwrap()),
            expected,
            "{base:?} {ours:?} {theirs:?}"
        );
        let other = merge(base.as_bytes(), theirs.as_bytes(), ours.as_bytes());
        assert_eq!(merged, other, "a merge does not depend on which side is called ours");
    }

    #[test]
    fn changes_to_different_lines_are_joined() {
        check("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", Some("A\nb\nc\nd\nE\n"));
        check("a\nb\nc\n", "a\nb\nc\nd\n", "x\na\nb\nc\n", Some("x\na\nb\nc\nd\n"));
        check("a\nb\nc\nd\ne\n", "a\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n", Some("a\nc\nd\ne\nf\n"));
    }

    #[test]
    fn the_same_change_on_both_sides_is_no_conflict() {
        check("a\n", "b\n", "b\n", Some("b\n"));
        check("a\nb\nc\nd\n", "A\nb\nc\nD\n", "A\nb\nc\nd\n", Some("A\nb\nc\nD\n"));
    }

    #[test]
    fn changes_that_overlap_or_touch_are_a_conflict() {
        check("a\n", "b\n", "c\n", None);
        check("a\nb\n", "A\nb\n", "a\nB\n", None);
        check("a\n", "a\nx\n", "a\ny\n", None);
        check("", "x\n", "y\n", None);
    }

    #[test]
    fn clashes_are_separate_from_merged_lines() {
        let (base, ours, theirs) = ("a\nb\nc\nd\ne\n", "A\nb\nmine\nd\ne\n", "a\nb\nyours\nd\nE\n");
        let merged = |text: &str| Piece::Merged(text.into());
        let clash = |base: &str, ours: &str, theirs: &str| Piece::Clash {
            base: base.into(),
            ours: ours.into(),
            theirs: theirs.into(),
        };
        assert_eq!(
            pieces(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()),
            Some(vec![merged("A\nb\n"), clash("c\n", "mine\n", "yours\n"), merged("d\nE\n")])
        );
        // A large change includes every smaller one that it touches.
        assert_eq!(
            pieces(b"a\nb\nc\nd\n", b"A\nb\nC\nd\n", b"x\ny\nz\nd\n"),
            Some(vec![clash("a\nb\nc\n", "A\nb\nC\n", "x\ny\nz\n"), merged("d\n")])
        );
        assert_eq!(pieces(b"", b"x\n", b"y"), Some(vec![clash("", "x\n", "y")]));
    }

    #[test]
    fn binary_files_are_never_merged() {
        assert_eq!(merge(b"a\0\nb\nc\n", b"A\0\nb\nc\n", b"a\0\nb\nC\n"), None);
        assert_eq!(merge(b"a\nb\nc\xff\n", b"A\nb\nc\xff\n", b"a\nb\nC\n"), None);
    }

    #[test]
    fn a_missing_last_newline_joins_no_lines() {
        check("a\nb\nc", "A\nb\nc", "a\nb\nc\nd\n", Some("A\nb\nc\nd\n"));
        check("a\nb\nc\nd", "a\nb\nc\nd", "x\nb\nc\nd", Some("x\nb\nc\nd"));
    }
}
