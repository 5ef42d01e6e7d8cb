//! Files that an agent may not read without being asked: its commands find their names, and cannot open them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents::ground::Sight;
use shared_types::FilePath;

use crate::place::STATE;

/// A folder that was changed so shortly before it was read may be changed again and look the same: some file systems
/// stamp with pairs of seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// The files of a workspace that not every agent may read. Those that the log ignores are on disk only, so it is the disk
/// that is looked at; a folder that is as it was the last time is not read again.
#[derive(Debug)]
pub(super) struct Guarded {
    workspace: PathBuf,
    known: Mutex<HashMap<PathBuf, Folder>>,
}

/// What is directly in a folder.
#[derive(Debug, Default)]
struct Folder {
    /// As it was when it was read, unless it may have changed unseen since then.
    stamp: Option<Stamp>,
    below: Vec<OsString>,
    guarded: Vec<OsString>,
}

/// What tells a file or folder from another that stands in its place later: its number, and when it was last changed, since
/// numbers are used again.
type Stamp = (u64, i64, i64);

impl Guarded {
    pub(super) fn new(workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), known: Mutex::default() }
    }

    /// All files that are out of an agent's sight, relative to the workspace.
    pub(super) fn out_of_sight(&self, sight: &Sight) -> io::Result<Vec<PathBuf>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(path) = folders.pop() {
            let folder = match self.folder(&path, before.remove(&path), sight) {
                Ok(folder) => folder,
                // Somebody else may take it away at any time.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
            };
            folders.extend(folder.below.iter().map(|name| path.join(name)));
            let guarded = folder.guarded.iter().map(|name| path.join(name));
            // Whatever no rule can be asked about is not shown.
            found.extend(guarded.filter(|path| !named(path).is_some_and(|path| sight.may_read(&path))));
            known.insert(path, folder);
        }
        Ok(found)
    }

    /// Reads a folder, unless it is as before.
    fn folder(&self, path: &Path, before: Option<Folder>, sight: &Sight) -> io::Result<Folder> {
        let place = self.workspace.join(path);
        let now = SystemTime::now();
        let found = std::fs::symlink_metadata(&place)?;
        if let Some(before) = before.filter(|before| before.stamp == Some(stamp(&found))) {
            return Ok(before);
        }
        let mut folder =
            Folder { stamp: is_settled(&found, now).then(|| stamp(&found)), ..Folder::default() };
        for entry in open(&place)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let path = path.join(&name);
            // Links are passed over: what one leads to is looked at under its own name.
            if kind.is_dir() && path != Path::new(STATE) {
                folder.below.push(name);
            } else if kind.is_file() && !named(&path).is_some_and(|path| sight.may_everyone_read(&path)) {
                folder.guarded.push(name);
            }
        }
        Ok(folder)
    }
}

fn stamp(found: &Metadata) -> Stamp {
    (found.ino(), found.ctime(), found.ctime_nsec())
}

fn is_settled(found: &Metadata, now: SystemTime) -> bool {
    let changed = u64::try_from(found.ctime()).map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|passed| passed > SETTLED))
}

/// The name of a file by which rules know it. One that the log cannot hold goes by what can be read of it.
fn named(path: &Path) -> Option<FilePath> {
    let text = FilePath::from_bytes(path.as_os_str().as_bytes());
    text.or_else(|_| FilePath::parse(&path.to_string_lossy())).ok()
}

/// Files that are out of sight, each with what tells it from another that stands in its place later. A cover goes with the
/// file under it, so whoever stays for long has to look again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Covers(BTreeMap<PathBuf, Stamp>);

impl Covers {
    pub(super) fn of(guarded: &Guarded, sight: &Sight) -> io::Result<Self> {
        let mut covers = BTreeMap::new();
        for path in guarded.out_of_sight(sight)? {
            match std::fs::symlink_metadata(guarded.workspace.join(&path)) {
                Ok(found) => drop(covers.insert(path, stamp(&found))),
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
    use std::sync::Arc;

    use agents::Rules;

    use super::*;

    fn everyone() -> Sight {
        Sight::of_everyone(&Arc::new(Rules::built_in().unwrap()))
    }

    fn write(folder: &Path, path: &str) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "a").unwrap();
    }

    fn out_of_sight(guarded: &Guarded, sight: &Sight) -> Vec<String> {
        let mut found: Vec<String> =
            guarded.out_of_sight(sight).unwrap().iter().map(|path| path.display().to_string()).collect();
        found.sort();
        found
    }

    #[test]
    fn secrets_are_found_wherever_they_lie_and_whether_or_not_they_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        for path in [".env", "notes.md", "app/.env", ".choir/.env"] {
            write(folder.path(), path);
        }
        std::fs::write(folder.path().join(".gitignore"), ".env").unwrap();
        std::os::unix::fs::symlink(".env", folder.path().join("link")).unwrap();
        assert_eq!(out_of_sight(&Guarded::new(folder.path()), &everyone()), [".env", "app/.env"]);
    }

    #[test]
    fn an_agent_that_was_allowed_one_secret_sees_that_one() {
        let folder = tempfile::tempdir().unwrap();
        for path in [".env", "app/.env"] {
            write(folder.path(), path);
        }
        let rules = Arc::new(Rules::built_in().unwrap());
        let one = Sight::of_one(&rules, |path| path.as_str() == ".env");
        let guarded = Guarded::new(folder.path());
        assert_eq!(out_of_sight(&guarded, &one), ["app/.env"]);
        assert_eq!(out_of_sight(&guarded, &everyone()), [".env", "app/.env"]);
    }

    #[test]
    fn a_folder_is_read_again_when_anything_in_it_came_or_went() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["old/notes.md", "old/deep/notes.md", "plain/notes.md"] {
            write(folder.path(), path);
        }
        let guarded = Guarded::new(folder.path());
        // As if all of it had been there for long.
        let is_known = || {
            guarded.out_of_sight(&everyone()).unwrap();
            let mut known = guarded.known.lock().unwrap();
            for (path, folder_now) in known.iter_mut() {
                folder_now.stamp = Some(stamp(&std::fs::symlink_metadata(folder.path().join(path)).unwrap()));
            }
            known.len()
        };
        assert_eq!(is_known(), 4);
        write(folder.path(), "old/deep/.env");
        assert_eq!(out_of_sight(&guarded, &everyone()), ["old/deep/.env"]);
        is_known();
        std::fs::rename(folder.path().join("old"), folder.path().join("new")).unwrap();
        assert_eq!(out_of_sight(&guarded, &everyone()), ["new/deep/.env"]);
        is_known();
        std::fs::rename(folder.path().join("new/deep/.env"), folder.path().join("plain/.env")).unwrap();
        assert_eq!(out_of_sight(&guarded, &everyone()), ["plain/.env"]);
        is_known();
        std::fs::remove_dir_all(folder.path().join("plain")).unwrap();
        assert_eq!(out_of_sight(&guarded, &everyone()), [""; 0]);
    }

    #[test]
    fn a_folder_that_is_as_before_is_not_read_again_and_one_that_just_changed_is() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "notes.md");
        let guarded = Guarded::new(folder.path());
        guarded.out_of_sight(&everyone()).unwrap();
        let top = |change: &dyn Fn(&mut Folder)| {
            change(guarded.known.lock().unwrap().get_mut(Path::new("")).unwrap());
        };
        let invent = |folder: &mut Folder| folder.guarded = vec![".env".into()];
        // It was written a moment ago, so nothing is taken from memory.
        top(&invent);
        assert_eq!(out_of_sight(&guarded, &everyone()), [""; 0]);
        let found = std::fs::symlink_metadata(folder.path()).unwrap();
        top(&|folder: &mut Folder| folder.stamp = Some(stamp(&found)));
        top(&invent);
        assert_eq!(out_of_sight(&guarded, &everyone()), [".env"]);
    }

    #[test]
    fn a_secret_that_comes_goes_or_is_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let guarded = Guarded::new(folder.path());
        let covers = || Covers::of(&guarded, &everyone()).unwrap();
        let write = |name: &str| write(folder.path(), name);
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
