//! One finding of tidy, in the form that editors and terminals make clickable.
//!
//! The message states what is wrong and then what to do about it.

use std::fmt;

/// Sorted by place, so that the output is the same in every run and reads file by file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    path: String,
    line: usize,
    message: String,
    pub(super) severity: Severity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Fails the run.
    Error,
    /// Is printed and fails nothing.
    Warning,
}

impl Finding {
    pub(super) fn error(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), severity: Severity::Error }
    }

    pub(super) fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(f, "{}:{}: {prefix}{}", self.path, self.line, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_by_path_then_by_line_as_a_number() {
        let at = |path, line| Finding::error(path, line, "x");
        let mut findings = [at("b.rs", 1), at("a.rs", 10), at("a.rs", 9)];
        findings.sort();
        let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a.rs:9: x", "a.rs:10: x", "b.rs:1: x"]);
    }

    #[test]
    fn a_warning_says_so() {
        assert_eq!(Finding::warning("a.rs", 1, "long").to_string(), "a.rs:1: warning: long");
    }
}
