//! Texts that are kept beside the scenarios, and what is different now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set, it lets texts be written anew instead of compared, as it does for everything in `docs` that is generated.
const UPDATE: &str = "UPDATE_DOCS";
/// Equal lines that are told before a difference, and lines of a difference that are told at most.
const BEFORE: usize = 3;
const MOST: usize = 20;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios/transcripts")
}

/// The names of all that are kept in a folder.
pub(crate) fn kept(folder: &Path) -> BTreeSet<String> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = paths.filter(|path| path.extension().is_some_and(|end| end == "txt"));
    texts.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

/// Compares a text with the one that is kept, or keeps it.
pub(crate) fn check(name: &str, found: &str) -> Result<(), String> {
    let path = folder().join(name).with_extension("txt");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, found).unwrap();
        return Ok(());
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if kept == found {
        return Ok(());
    }
    Err(format!(
        "the transcript is another now; if that is meant, write it anew with \
         `{UPDATE}=1 cargo nextest run -p sandbox --test agents` and look at what changed\n{}",
        difference(&kept, found)
    ))
}

/// From the first line that differs to the last.
fn difference(kept: &str, found: &str) -> String {
    let (kept, found): (Vec<&str>, Vec<&str>) = (kept.lines().collect(), found.lines().collect());
    let start = kept.iter().zip(&found).take_while(|(kept, found)| kept == found).count();
    let (old, new) = (&kept[start..], &found[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(kept, found)| kept == found).count();
    let marked = |mark: &str, lines: &[&str]| -> Vec<String> {
        let left_out = lines.len().checked_sub(MOST).filter(|more| *more > 0);
        let lines = lines.iter().take(MOST).map(|line| format!("{mark} {line}"));
        lines.chain(left_out.map(|more| format!("{mark} … and {more} more lines"))).collect()
    };
    let before = marked(" ", &kept[start.saturating_sub(BEFORE)..start]);
    let (old, new) = (marked("-", &old[..old.len() - end]), marked("+", &new[..new.len() - end]));
    [before, old, new].concat().join("\n")
}

#[test]
fn a_difference_is_told_from_its_first_line_to_its_last() {
    let told = difference("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n");
    assert_eq!(told, "  b\n  c\n  d\n- e\n+ E");
    assert_eq!(difference("a\nb\n", "a\nx\nb\n"), "  a\n+ x");
    assert!(difference("", &"x\n".repeat(50)).ends_with("+ … and 30 more lines"));
}
