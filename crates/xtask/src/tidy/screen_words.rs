//! Rule: the texts that a person reads on the desktop are in `crates/dioxus-desktop/src/words`.
//!
//! There they can be read as a whole, and one style holds. Texts are in sentence case, and names of classes, ids and
//! routes begin with no capital, so a literal with a capital and a space is a text, and so is the label of a control that
//! begins with a capital. Names of keys are no texts.

use super::finding::Finding;
use crate::workspace::TextFile;

const SOURCES: &str = "crates/dioxus-desktop/src/";
const WORDS: [&str; 2] = ["words.rs", "words/"];
const KEYS: [&str; 2] = ["Ctrl ", "Alt "];
/// What stands before the text of a control.
const LABELS: [&str; 4] = ["title: ", "placeholder: ", "label: ", "\"aria-label\": "];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let is_checked = |inside: &str| {
        inside.ends_with(".rs")
            && !WORDS.iter().any(|words| inside.starts_with(words))
            && !super::is_test_source(inside)
    };
    if !file.path.strip_prefix(SOURCES).is_some_and(is_checked) {
        return Vec::new();
    }
    let product = file.text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut findings = Vec::new();
    for (index, line) in product.lines().enumerate() {
        for text in literals(line).filter(|(before, text)| is_text(before, text)).map(|(_, text)| text) {
            let message = format!(
                "{text:?} is read on the screen; move it to {SOURCES}words, where all texts can be read as a whole"
            );
            findings.push(Finding::error(&file.path, index + 1, message));
        }
    }
    findings
}

fn is_text(before: &str, text: &str) -> bool {
    let is_key = KEYS.iter().any(|key| text.starts_with(key));
    let is_label = LABELS.iter().any(|label| before.ends_with(label));
    // The path of an icon has a number after its first letter.
    let is_word = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == ' ');
    is_word && !is_key && (is_label || text.contains(' '))
}

/// The string literals that begin and end on a line, each with the code before it. A comment ends the line.
fn literals(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &line[at..];
        let start = at + rest.find('"')?;
        if line[at..start].contains("//") {
            return None;
        }
        let mut escaped = false;
        let length = line[start + 1..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        let end = start + 1 + length;
        at = end + 1;
        Some((&line[..start], &line[start + 1..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> bool {
        !check(&TextFile { path: format!("{SOURCES}{path}"), text: line.into() }).is_empty()
    }

    #[test]
    fn a_text_outside_words_is_found() {
        for line in [
            r#"p { "No file is called that." }"#,
            r#"toast("Key kept", false)"#,
            r#"format!("Moved {} into {into}", name)"#,
            r#"IconButton { icon: "x", label: "Dismiss" }"#,
            r#"nav { class: "a", "aria-label": "Path" }"#,
        ] {
            assert!(found("apps/files.rs", line), "{line}");
        }
    }

    #[test]
    fn names_keys_comments_tests_and_the_words_pass() {
        for line in [
            r#"div { class: "row head", id: "list-{window}" }"#,
            r#"label: words::CLOSE, "aria-label": "{title}""#,
            r#".key("Ctrl C")"#,
            r#""x" => "M18 6 6 18M6 6l12 12","#,
            r#""ArrowDown" | "Enter" => {}"#,
            r#"// It says "Not now" then."#,
            "#[cfg(test)]\nassert!(\"No file\")",
        ] {
            assert!(!found("apps/files.rs", line), "{line}");
        }
        assert!(!found("words/files.rs", r#"const A: &str = "New file";"#));
    }
}
