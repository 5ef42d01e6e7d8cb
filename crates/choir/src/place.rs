//! Where a computer is: its workspace and its state. Code takes both paths and derives neither from the other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use event_log::SqliteLog;

/// The name of the state folder inside a workspace made by `choir init`.
pub const STATE: &str = ".choir";

/// The two folders of one computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub workspace: PathBuf,
    pub state: PathBuf,
}

impl Place {
    /// A folder that is itself the workspace, with its state in `.choir`.
    pub fn at(folder: &Path) -> Self {
        Self { workspace: folder.to_owned(), state: folder.join(STATE) }
    }

    /// The computer that a folder belongs to: the nearest one at or above it.
    pub fn find(start: Option<&Path>) -> Result<Self> {
        let start = match start {
            Some(folder) => folder.canonicalize().with_context(|| format!("{} is not there", folder.display()))?,
            None => std::env::current_dir().context("the current folder cannot be read")?,
        };
        match start.ancestors().map(Self::at).find(Self::exists) {
            Some(place) => Ok(place),
            None => bail!(crate::failure::Failure::new(
                crate::failure::Code::NoComputer,
                format!(
                    "there is no computer at {} or above it; make one with: choir init {}",
                    start.display(),
                    start.display()
                ),
            )),
        }
    }

    pub fn exists(&self) -> bool {
        self.state.join(SqliteLog::FILE).exists()
    }

    pub fn socket(&self) -> PathBuf {
        self.state.join("choir.sock")
    }

    /// A path as the person typed it, relative to the current folder, as a path of the workspace.
    pub fn path(&self, typed: &Path) -> Result<shared_types::FilePath> {
        let absolute = if typed.is_absolute() {
            typed.to_owned()
        } else {
            let here = std::env::current_dir().context("the current folder cannot be read")?;
            // Outside of the workspace (with --dir) a relative path is one of the workspace.
            if here.starts_with(&self.workspace) { here.join(typed) } else { self.workspace.join(typed) }
        };
        let refuse = |e: shared_types::PathError| {
            crate::failure::Failure::new(crate::failure::Code::BadPath, format!("{}: {e}", typed.display()))
        };
        let inside = absolute
            .strip_prefix(&self.workspace)
            .map_err(|_| refuse(shared_types::PathError::Absolute))?;
        use std::os::unix::ffi::OsStrExt;
        Ok(shared_types::FilePath::from_bytes(&plain(inside.as_os_str().as_bytes())).map_err(refuse)?)
    }
}

/// Drops a leading `./` and a trailing slash, which shells add; everything else is checked as it is.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes;
    while let Some(rest) = bytes.strip_prefix(b"./") {
        bytes = rest;
    }
    while bytes.len() > 1
        && let Some(rest) = bytes.strip_suffix(b"/")
    {
        bytes = rest;
    }
    bytes.to_vec()
}
