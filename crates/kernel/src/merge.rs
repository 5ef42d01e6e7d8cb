//! Three-way merge of text, line by line.
//!
//! Two changes that overlap or touch are a conflict unless they are the same change: nothing is woven together that
//! the two sides did not clearly mean.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Larger texts are not merged: the person decides.
pub const MERGE_LIMIT: u64 = 4 * 1024 * 1024;

/// The merged text, or nothing if the two sides changed the same lines or one of them is not text.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if ours == theirs || base == theirs {
        return Some(ours.to_vec());
    }
    if base == ours {
        return Some(theirs.to_vec());
    }
    if ![base, ours, theirs].into_iter().all(is_text) {
        return None;
    }
    let lines: Vec<&[u8]> = imara_diff::sources::byte_lines(base).collect();
    let our_lines: Vec<&[u8]> = imara_diff::sources::byte_lines(ours).collect();
    let their_lines: Vec<&[u8]> = imara_diff::sources::byte_lines(theirs).collect();
    let our_hunks = hunks(base, ours);
    let their_hunks = hunks(base, theirs);

    let mut merged = Vec::with_capacity(ours.len().max(theirs.len()));
    let (mut done, mut i, mut j) = (0, 0, 0);
    while i < our_hunks.len() || j < their_hunks.len() {
        let (hunk, side) = match (our_hunks.get(i), their_hunks.get(j)) {
            (Some(a), Some(b)) if touches(&a.before, &b.before) => {
                let same = a.before == b.before && our_lines[a.after.clone()] == their_lines[b.after.clone()];
                if !same {
                    return None;
                }
                (i, j) = (i + 1, j + 1);
                (a, &our_lines)
            }
            (Some(a), Some(b)) if a.before.start < b.before.start => (take(a, &mut i), &our_lines),
            (Some(_), Some(b)) => (take(b, &mut j), &their_lines),
            (Some(a), None) => (take(a, &mut i), &our_lines),
            (None, Some(b)) => (take(b, &mut j), &their_lines),
            (None, None) => break,
        };
        push(&mut merged, &lines[done..hunk.before.start])?;
        push(&mut merged, &side[hunk.after.clone()])?;
        done = hunk.before.end;
    }
    push(&mut merged, &lines[done..])?;
    Some(merged)
}

/// UTF-8 without NUL.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

struct Hunk {
    before: Range<usize>,
    after: Range<usize>,
}

fn take<'a>(hunk: &'a Hunk, index: &mut usize) -> &'a Hunk {
    *index += 1;
    hunk
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

/// Appends lines. A last line without its newline may only stand at the very end; elsewhere it would swallow the
/// line after it, so that the merge is given up.
fn push(merged: &mut Vec<u8>, lines: &[&[u8]]) -> Option<()> {
    for line in lines {
        if merged.last().is_some_and(|byte| *byte != b'\n') {
            return None;
        }
        merged.extend_from_slice(line);
    }
    Some(())
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
    fn what_is_not_text_is_never_merged() {
        assert_eq!(merge(b"a\0\nb\nc\n", b"A\0\nb\nc\n", b"a\0\nb\nC\n"), None);
        assert_eq!(merge(b"a\nb\nc\xff\n", b"A\nb\nc\xff\n", b"a\nb\nC\n"), None);
    }

    #[test]
    fn a_missing_last_newline_swallows_nothing() {
        check("a\nb\nc", "A\nb\nc", "a\nb\nc\nd\n", Some("A\nb\nc\nd\n"));
        check("a\nb\nc\nd", "a\nb\nc\nd", "x\nb\nc\nd", Some("x\nb\nc\nd"));
    }
}
