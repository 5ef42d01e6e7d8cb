//! The folders of a computer: its workspace and its state. Code takes both paths and derives neither from the other.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use event_log::SqliteLog;
use shared_types::FilePath;

use crate::error::{ComputerError, ErrorCode};

/// The name of the state folder inside a workspace made by `choir init`.
pub const STATE: &str = ".choir";

/// The name of the workspace beside the state, where a server keeps computers.
pub const WORKSPACE: &str = "workspace";

/// The two folders of one computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputerPaths {
    pub workspace: PathBuf,
    pub state: PathBuf,
}

impl ComputerPaths {
    /// A folder that is itself the workspace, with its state in `.choir`.
    pub fn at(folder: &Path) -> Self {
        Self { workspace: folder.to_owned(), state: folder.join(STATE) }
    }

    /// The computer that a folder belongs to: the nearest one at or above it.
    pub fn find(start: Option<&Path>) -> Result<Self> {
        let start = match start {
            Some(folder) => {
                folder.canonicalize().with_context(|| format!("{} is not there", folder.display()))?
            }
            None => std::env::current_dir().context("the current folder cannot be read")?,
        };
        let served = |folder: &Path| {
            let home = folder.parent().filter(|_| folder.ends_with(WORKSPACE))?;
            Some(Self { workspace: folder.to_owned(), state: home.join(STATE) })
        };
        let candidates = start.ancestors().flat_map(|folder| [Some(Self::at(folder)), served(folder)]);
        match candidates.flatten().find(Self::exists) {
            Some(paths) => Ok(paths),
            None => bail!(ComputerError::new(
                ErrorCode::NoComputer,
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
    pub fn path(&self, typed: &Path) -> Result<FilePath> {
        let here = std::env::current_dir().context("the current folder cannot be read")?;
        // Outside of the workspace (with --dir) a relative path is one of the workspace.
        let base = if here.starts_with(&self.workspace) { &here } else { &self.workspace };
        let refuse =
            |why: String| ComputerError::new(ErrorCode::BadPath, format!("{}: {why}", typed.display()));
        let absolute = normalized(&base.join(typed));
        let Ok(inside) = absolute.strip_prefix(&self.workspace) else {
            return Err(refuse(format!("it is not in the workspace {}", self.workspace.display())).into());
        };
        if inside == Path::new("") {
            return Err(refuse("it is the workspace itself; name something in it".into()).into());
        }
        Ok(FilePath::from_bytes(inside.as_os_str().as_bytes()).map_err(|e| refuse(e.to_string()))?)
    }
}

/// The path without `.` and `..`, resolved by name only: links are not followed in a workspace.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normalized.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normalized.push(part),
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_path_is_settled_by_its_names_and_must_end_up_inside() {
        let paths = ComputerPaths::at(Path::new("/srv/ada/notes"));
        let path = |typed: &str| paths.path(Path::new(typed)).map(|path| path.to_string());
        for (typed, expected) in [
            ("a.txt", "a.txt"),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            ("/srv/ada/notes/a", "a"),
            ("../notes/a", "a"),
        ] {
            assert_eq!(path(typed).unwrap(), expected, "{typed}");
        }
        for hostile in
            ["..", "../x", "a/../../x", "/etc/passwd", "/srv/ada/notes/../x", ".", ".choir/lock", ".CHOIR"]
        {
            assert!(path(hostile).is_err(), "{hostile}");
        }
    }
}
