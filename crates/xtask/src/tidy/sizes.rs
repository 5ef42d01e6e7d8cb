//! Rule: a source file is short enough to be read at once. Past 500 lines it should be split, past 800 it must be.

use super::finding::Finding;
use crate::workspace::TextFile;

const SHOULD_BE_SPLIT: usize = 500;
const TOO_LONG: usize = 800;

pub(super) fn check(file: &TextFile) -> Option<Finding> {
    if !file.path.ends_with(".rs") {
        return None;
    }
    let lines = file.text.lines().count();
    if lines > TOO_LONG {
        let message =
            format!("{lines} lines, at most {TOO_LONG} are allowed; split it by what its parts are about");
        Some(Finding::error(&file.path, lines, message))
    } else if lines > SHOULD_BE_SPLIT {
        let message =
            format!("{lines} lines, past {SHOULD_BE_SPLIT}; look for a part that can be a module of its own");
        Some(Finding::warning(&file.path, lines, message))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::Severity;

    fn severity(path: &str, lines: usize) -> Option<Severity> {
        let file = TextFile { path: path.into(), text: "let x = 1;\n".repeat(lines) };
        check(&file).map(|finding| finding.severity)
    }

    #[test]
    fn long_files_warn_and_longer_ones_fail() {
        assert_eq!(severity("crates/a/src/lib.rs", 500), None);
        assert_eq!(severity("crates/a/src/lib.rs", 501), Some(Severity::Warning));
        assert_eq!(severity("crates/a/src/lib.rs", 800), Some(Severity::Warning));
        assert_eq!(severity("crates/a/src/lib.rs", 801), Some(Severity::Error));
    }

    #[test]
    fn only_rust_is_measured() {
        assert_eq!(severity("Cargo.lock", 9000), None);
    }
}
