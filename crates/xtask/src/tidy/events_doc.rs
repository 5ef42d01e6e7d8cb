//! Rule: `docs/events.md` is what the types say today.
//!
//! An example of `shared-types` prints the document from the types; this module compares it, or writes it with `--fix`.

use std::{fs, io::ErrorKind, path::Path, process::Command};

use anyhow::{Context, Result};

use super::finding::Finding;
use crate::{process, workspace::Workspace};

const PATH: &str = "docs/events.md";

/// Compares the document with the types.
pub(super) fn compare(workspace: &Workspace) -> Result<Option<Finding>> {
    let written = match fs::read_to_string(workspace.root.join(PATH)) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        other => other.with_context(|| format!("cannot read {PATH}"))?,
    };
    Ok(match generate(workspace) {
        Ok(generated) => difference(&written, &generated),
        Err(error) => Some(cannot_generate(&error)),
    })
}

/// Writes the document; the only finding left is that it cannot be generated.
pub(super) fn rewrite(workspace: &Workspace) -> Result<Option<Finding>> {
    match generate(workspace) {
        Ok(generated) => {
            let path = workspace.root.join(PATH);
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            fs::write(&path, generated).with_context(|| format!("cannot write {PATH}"))?;
            Ok(None)
        }
        Err(error) => Ok(Some(cannot_generate(&error))),
    }
}

fn generate(workspace: &Workspace) -> Result<String> {
    workspace.build(&["--example", "events_md"])?;
    process::capture(&mut Command::new(workspace.example("events_md")))
}

fn cannot_generate(error: &anyhow::Error) -> Finding {
    Finding::error(PATH, 1, format!("cannot be generated: {error:#}; make that command work"))
}

fn difference(written: &str, generated: &str) -> Option<Finding> {
    if written == generated {
        return None;
    }
    let same = written.lines().zip(generated.lines()).take_while(|(a, b)| a == b).count();
    let message =
        "differs from the types in shared-types; run `cargo xtask tidy --fix` and commit the result";
    Some(Finding::error(PATH, same + 1, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let found = |written, generated| difference(written, generated).map(|finding| finding.to_string());
        assert_eq!(found("# Events\na\n", "# Events\na\n"), None);
        for (written, generated) in [("# Events\na\n", "# Events\nb\n"), ("# Events\n", "# Events\nb\n")] {
            let finding = found(written, generated).unwrap();
            assert!(finding.starts_with("docs/events.md:2: differs"), "{finding}");
        }
    }

    #[test]
    fn a_document_that_is_missing_or_lacks_the_last_newline_differs() {
        assert!(difference("", "# Events\n").is_some());
        assert!(difference("# Events", "# Events\n").is_some());
    }
}
