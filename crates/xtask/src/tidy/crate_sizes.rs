//! Rule: a crate stays small enough to be known by one person: at most 9,000 lines in `src`, without its tests.

use std::collections::BTreeMap;

use super::finding::Finding;
use crate::workspace::TextFile;

const MOST_LINES: usize = 9_000;

/// Crates that may be larger, each with the reason.
const LARGER: &[(&str, &str)] = &[("dioxus-desktop", "one module per app, and no app is used by another")];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        if let Some((name, lines)) = counted(file) {
            *crates.entry(name).or_default() += lines;
        }
    }
    let too_large = |(name, lines): (&str, usize)| {
        let message = format!(
            "{lines} lines in src without tests, at most {MOST_LINES} are allowed; split it by what its parts are about"
        );
        let allowed = lines <= MOST_LINES || LARGER.iter().any(|(larger, _)| *larger == name);
        (!allowed).then(|| Finding::error(&format!("crates/{name}/Cargo.toml"), 1, message))
    };
    crates.into_iter().filter_map(too_large).collect()
}

fn counted(file: &TextFile) -> Option<(&str, usize)> {
    let (name, inside) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
    let counts = inside.ends_with(".rs") && !super::is_test_source(inside);
    counts.then(|| (name, file.text.lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> TextFile {
        TextFile { path: path.into(), text: "let x = 1;\n".repeat(lines) }
    }

    #[test]
    fn the_files_of_a_crate_count_together_and_its_tests_do_not() {
        let mut files = vec![
            file("crates/a/src/lib.rs", 5_000),
            file("crates/a/src/b.rs", 4_000),
            file("crates/a/src/b/tests.rs", 500),
            file("crates/a/src/tests/c.rs", 500),
            file("crates/a/tests/d.rs", 500),
            file("crates/a/src/e.css", 500),
        ];
        assert_eq!(check(&files), []);
        files.push(file("crates/a/src/f.rs", 1));
        assert!(check(&files)[0].to_string().starts_with("crates/a/Cargo.toml:1: 9001 lines"));
    }
}
