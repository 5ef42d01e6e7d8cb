//! Rule: nothing that is committed names a directory of the machine it was written on.
//!
//! Such a path works on one machine and fails on every other.

use super::finding::Finding;
use crate::workspace::TextFile;

/// The first part of absolute paths that belong to one person or machine.
const PERSONAL: [&str; 4] = ["home", "root", "work", "Users"];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    // There, a leading slash means the folder of the file.
    if file.path.ends_with(".gitignore") {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(finding(&file.path, index + 1, machine_path(line)?))).collect()
}

fn finding(path: &str, line: usize, top: &str) -> Finding {
    let message = format!(
        "names a path under /{top} of one machine; write it relative to the repository or take it as input"
    );
    Finding::error(path, line, message)
}

/// The first part of an absolute path in a personal directory, if the line has one.
fn machine_path(line: &str) -> Option<&'static str> {
    PERSONAL.into_iter().find(|top| {
        let pattern = format!("/{top}/");
        line.match_indices(&pattern).any(|(at, _)| starts_a_path(&line[..at]))
    })
}

/// Whether a slash after this text begins an absolute path, and does not continue a relative one or a URL.
fn starts_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '}' | ')' | '>' | '*')
    }) || before.ends_with("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> bool {
        let file = TextFile { path: "docs/a.md".into(), text: line.into() };
        !check(&file).is_empty()
    }

    /// The bad examples are put together here, since this file is committed too.
    fn under(top: &str, rest: &str) -> String {
        format!("/{top}/{rest}")
    }

    #[test]
    fn a_path_of_one_machine_is_found_wherever_it_starts() {
        for top in PERSONAL {
            let path = under(top, "choir/data");
            for line in [path.clone(), format!("cd {path}"), format!("\"{path}\""), format!("file://{path}")]
            {
                assert!(found(&line), "{line}");
            }
        }
    }

    #[test]
    fn the_line_is_given() {
        let text = format!("first\nDATA={}\n", under("root", "data"));
        let findings = check(&TextFile { path: "a.sh".into(), text });
        assert!(findings[0].to_string().starts_with("a.sh:2: "), "{findings:?}");
    }

    #[test]
    fn relative_paths_urls_and_system_paths_pass() {
        for line in [
            "docs/work/plan.md",
            "https://example.org/work/1",
            "~/work/choir",
            "{data}/root/x",
            "/usr/bin/env",
            "/workspace/a",
            "the root/leaf distinction",
        ] {
            assert!(!found(line), "{line}");
        }
    }

    #[test]
    fn a_gitignore_means_its_own_folder() {
        let file = TextFile { path: ".gitignore".into(), text: under("work", "") };
        assert!(check(&file).is_empty());
    }
}
