//! The text files that tidy reads: those that git tracks, and those that `git add .` would add.
//!
//! So a rule applies before the commit, and files that `.gitignore` excludes are excluded here as well.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};

use crate::{process, workspace::TextFile};

pub(super) fn committable(root: &Path) -> Result<Vec<TextFile>> {
    let mut git = Command::new("git");
    // A CI job is often another user than the one who checked out; git then refuses the
    // folder, although the job has built and run code from it already.
    git.current_dir(root).args(["-c", "safe.directory=*", "ls-files", "-z", "--deduplicate"]);
    let listing = process::capture(git.args(["--cached", "--others", "--exclude-standard"]))
        .context("tidy takes the list of files from git; run it in a git checkout")?;
    let files = listing.split('\0').filter(|path| !path.is_empty()).map(|path| read(root, path));
    Ok(files.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// `None` for what holds no text of its own: a link, a submodule, a binary, a file deleted since it was added.
fn read(root: &Path, path: &str) -> Result<Option<TextFile>> {
    let file = root.join(path);
    if !fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let bytes = fs::read(&file).with_context(|| format!("cannot read {path}"))?;
    Ok(text_of(bytes).map(|text| TextFile { path: path.to_owned(), text }))
}

/// As git decides it: a file with a zero byte is not text.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    (!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_not_text_and_latin_1_is() {
        assert_eq!(text_of(b"\x7fELF\0".to_vec()), None);
        assert!(text_of(b"caf\xe9 au lait".to_vec()).is_some_and(|text| text.ends_with("au lait")));
    }

    #[test]
    fn this_file_is_among_the_sources_and_build_output_is_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let files = committable(&root).unwrap();
        assert!(files.iter().any(|file| file.path == "crates/xtask/src/tidy/sources.rs"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    }
}
