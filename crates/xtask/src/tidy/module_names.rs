//! Rule: a module is named for what it is about, and `foo.rs` is beside `foo/`.
//!
//! A module called `utils` has no subject, so it collects unrelated code. Editor tabs that all read `mod.rs` cannot be told
//! apart.

use super::finding::Finding;
use crate::workspace::TextFile;

const NO_SUBJECT: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "manager", "managers"];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let Some(inside) = file.path.strip_prefix("crates/").filter(|path| path.ends_with(".rs")) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if inside.ends_with("/mod.rs") {
        findings.push(Finding::error(&file.path, 1, mod_rs(inside)));
    }
    let files =
        inside.split('/').skip(1).map(|part| part.strip_suffix(".rs").unwrap_or(part)).map(|n| (1, n));
    let inline = file.text.lines().enumerate().filter_map(|(i, line)| Some((i + 1, inline_module(line)?)));
    for (line, name) in files.chain(inline).filter(|(_, name)| NO_SUBJECT.contains(name)) {
        let message = format!("a module named `{name}` has no subject; name it for what it is about");
        findings.push(Finding::error(&file.path, line, message));
    }
    findings
}

fn mod_rs(path: &str) -> String {
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    if path.split('/').nth(1) == Some("tests") {
        // `tests/foo.rs` would be a test program of its own.
        format!(
            "`{folder}/mod.rs` hides its name; make the suite tests/<suite>/main.rs with {folder}.rs beside it"
        )
    } else {
        format!("`{folder}/mod.rs` hides its name; move it to `{folder}.rs` beside the folder")
    }
}

/// The name of a module written out in the file. One in a file of its own is seen by its path.
fn inline_module(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let keyword = words.by_ref().find(|word| !word.starts_with("pub"))?;
    let name = words.next()?;
    (keyword == "mod" && line.trim_end().ends_with('{')).then_some(name.trim_end_matches('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&TextFile { path: path.into(), text: text.into() }).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mod_rs_is_found_with_the_way_out() {
        let found = findings("crates/kernel/src/undo/mod.rs", "");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("move it to `undo.rs`"), "{found:?}");
        assert!(findings("crates/kernel/tests/support/mod.rs", "")[0].contains("main.rs"));
    }

    #[test]
    fn names_without_a_subject_are_found_as_file_as_folder_and_inline() {
        assert_eq!(findings("crates/kernel/src/utils.rs", "").len(), 1);
        assert_eq!(findings("crates/kernel/src/common/path.rs", "").len(), 1);
        let inline = findings("crates/kernel/src/undo.rs", "//! x\npub(crate) mod helpers {\n}\n");
        assert_eq!(inline.len(), 1);
        assert!(inline[0].starts_with("crates/kernel/src/undo.rs:2: "), "{inline:?}");
    }

    #[test]
    fn names_with_a_subject_pass() {
        let text = "mod window_manager_protocol {\n}\n// a mod utils { in a comment\nmod undo;\n";
        assert_eq!(findings("crates/kernel/src/undo/merge.rs", text), [""; 0]);
        assert_eq!(findings("docs/utils.rs", ""), [""; 0]);
    }
}
