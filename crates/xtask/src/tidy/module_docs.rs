//! Rule: every module begins with a `//!` that says its job, in at least one real sentence.
//!
//! It is for sources and tests of the crates. Twenty characters cannot prove a good sentence; they do catch
//! the empty one, the title, and the one that was to be written later.

use super::finding::Finding;
use crate::workspace::TextFile;

const SHORTER_THAN_A_SENTENCE: usize = 20;

pub(super) fn check(file: &TextFile) -> Option<Finding> {
    if !applies(&file.path) {
        return None;
    }
    let message = match first_paragraph(&file.text) {
        None => "no `//!` at the start; open the file with what this module is for".to_owned(),
        Some(text) if text.chars().count() <= SHORTER_THAN_A_SENTENCE => {
            format!("`//! {text}` is too short; write a sentence on what this module is for")
        }
        Some(_) => return None,
    };
    Some(Finding::error(&file.path, 1, message))
}

fn applies(path: &str) -> bool {
    let mut parts = path.split('/');
    path.ends_with(".rs")
        && parts.next() == Some("crates")
        && parts.next().is_some()
        && matches!(parts.next(), Some("src" | "tests"))
}

fn first_paragraph(text: &str) -> Option<String> {
    let doc: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let paragraph = doc.split(|line| line.is_empty()).next()?;
    (!doc.is_empty()).then(|| paragraph.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, text: &str) -> Option<String> {
        check(&TextFile { path: path.into(), text: text.into() }).map(|finding| finding.to_string())
    }

    #[test]
    fn a_module_without_a_doc_or_with_a_mere_title_is_found() {
        let path = "crates/kernel/src/undo.rs";
        for bad in
            ["", "use std::fmt;\n", "\n//! Below a blank line, where it does not count.\n", "/// Item doc."]
        {
            assert!(finding(path, bad).is_some_and(|f| f.contains("no `//!`")), "{bad:?}");
        }
        for short in ["//! x\n", "//! Undo.\n//!\n//! A second paragraph does not save the first.\n", "//!\n"]
        {
            assert!(finding(path, short).is_some_and(|f| f.contains("is too short")), "{short:?}");
        }
    }

    #[test]
    fn a_sentence_passes_even_over_two_lines() {
        assert_eq!(finding("crates/kernel/src/undo.rs", "//! Inverts an operation.\n"), None);
        assert_eq!(
            finding("crates/kernel/tests/undo.rs", "//! Undo, then redo,\n//! is identity.\nfn f() {}\n"),
            None
        );
    }

    #[test]
    fn it_is_a_rule_for_sources_and_tests_of_the_crates() {
        assert_eq!(finding("crates/kernel/examples/show.rs", ""), None);
        assert_eq!(finding("crates/kernel/src/notes.md", ""), None);
        assert!(finding("crates/kernel/tests/law/undo.rs", "").is_some());
    }
}
