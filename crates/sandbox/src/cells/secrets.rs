//! Files that an agent may not read without being asked: its commands find their names, and cannot open them.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::Rules;
use agents::ground::Sight;
use agents::roles::ROLES;
use agents::rules::{Judged, Verdict};
use agents::tools::Use;
use shared_types::{FilePath, Taint};

use crate::place::STATE;

/// All files of a workspace that are out of an agent's sight, relative to it. Those that the log ignores are on disk
/// only, so it is the disk that is looked at. Links are passed over: what one leads to is looked at under its own name.
pub(super) fn out_of_sight(workspace: &Path, sight: &Sight) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let entries = match open(&workspace.join(&folder)) {
            Ok(entries) => entries,
            // Somebody else may take it away at any time.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", folder.display()))),
        };
        for entry in entries {
            let entry = entry?;
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() && path != Path::new(STATE) {
                folders.push(path);
            } else if kind.is_file() {
                // What has a name that the log cannot hold is judged by what can be read of it.
                let text = FilePath::from_bytes(path.as_os_str().as_bytes());
                let text = text.or_else(|_| FilePath::parse(&path.to_string_lossy()));
                // Whatever no rule can be asked about is not shown.
                if !text.is_ok_and(|text| sight.may_read(&text)) {
                    found.push(path);
                }
            }
        }
    }
    Ok(found)
}

/// Files that are out of sight, each with what tells it from another that stands in its place later. A cover goes with the
/// file under it, so whoever stays for long has to look again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Covers(BTreeMap<PathBuf, Stamp>);

/// A file's number, and when it was last changed: numbers are used again.
type Stamp = (u64, i64, i64);

impl Covers {
    pub(super) fn of(workspace: &Path, sight: &Sight) -> io::Result<Self> {
        let mut covers = BTreeMap::new();
        for path in out_of_sight(workspace, sight)? {
            match std::fs::symlink_metadata(workspace.join(&path)) {
                Ok(found) => drop(covers.insert(path, (found.ino(), found.ctime(), found.ctime_nsec()))),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Self(covers))
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.0.keys().cloned().collect()
    }
}

/// What every agent may read without being asked, also one that has read untrusted words. No grant counts.
pub(super) fn common_sight(rules: &Arc<Rules>) -> Sight {
    let rules = Arc::clone(rules);
    Sight::new(move |path| {
        let call = Use::Read { path: path.clone() };
        let allows = |role: &str, taint: &[Taint]| {
            let judged = Judged { role, call: &call, taint, run: None, grants: &[], is_made_up: false };
            rules.judge(&judged) == Verdict::Allow
        };
        ROLES.iter().all(|role| allows(role.name(), &[]) && allows(role.name(), &[Taint::MCP]))
    })
}

/// Reads a folder. One that its owner closed is opened first: a command could do so as well, and look.
fn open(folder: &Path) -> io::Result<std::fs::ReadDir> {
    match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
            std::fs::read_dir(folder)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_wherever_they_lie_and_whether_or_not_they_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [(".env", "a"), (".gitignore", ".env"), ("app/.env", "b"), (".choir/.env", "c")] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink(".env", folder.path().join("link")).unwrap();
        let sight = Sight::new(|path| path.name() != ".env");
        let mut found = out_of_sight(folder.path(), &sight).unwrap();
        found.sort();
        assert_eq!(found, [Path::new(".env"), Path::new("app/.env")]);
    }

    #[test]
    fn a_secret_that_comes_goes_or_is_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Arc::new(Rules::built_in().unwrap());
        let covers = || Covers::of(folder.path(), &common_sight(&rules)).unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "a").unwrap();
        write("notes.md");
        let none = covers();
        assert!(none.paths().is_empty());
        write(".env");
        let one = covers();
        assert_eq!(one.paths(), [Path::new(".env")]);
        write("notes.md");
        assert_eq!(covers(), one);
        write("new");
        std::fs::rename(folder.path().join("new"), folder.path().join(".env")).unwrap();
        assert_ne!(covers(), one);
        std::fs::remove_file(folder.path().join(".env")).unwrap();
        assert_eq!(covers(), none);
    }
}
