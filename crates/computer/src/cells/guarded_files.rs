//! Guarded files, which an agent may not read without approval: its commands see their names but cannot open them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::ReadPolicy;
use rustix::fs::{AtFlags, CWD, Statx, StatxAttributes, StatxFlags, statfs, statx};
use shared_types::FilePath;

use crate::paths::STATE;

/// Timestamps have the resolution of the file system's clock, so a folder that changed less than this long ago may
/// change again without a new timestamp.
const MIN_STAMP_AGE: Duration = Duration::from_secs(3);

/// File systems that update the timestamp of a folder whenever an entry is added or removed: ext, XFS, btrfs, F2FS,
/// bcachefs, ZFS, tmpfs and overlays of them. On others, such as network file systems, nothing is cached.
const RELIABLE_FILE_SYSTEMS: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630];

/// The files of a workspace that not every agent may read. Ignored files are on disk only, so this reads the disk; a
/// folder that has not changed is not read again.
#[derive(Debug)]
pub struct GuardedFiles {
    workspace: PathBuf,
    known: Mutex<HashMap<PathBuf, FolderCache>>,
}

/// The entries of a folder.
#[derive(Debug, Default)]
struct FolderCache {
    /// Its identity when it was read; absent if it may have changed unnoticed since then.
    identity: Option<FileIdentity>,
    below: Vec<OsString>,
    guarded: Vec<OsString>,
    /// Links whose names are guarded: no agent may read through them without approval.
    links: Vec<OsString>,
}

/// Distinguishes a file or folder from a later one at the same path: its device, its inode number, and when it last
/// changed, because inode numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: (u32, u32),
    number: u64,
    changed: (i64, u32),
}

impl GuardedFiles {
    pub fn new(workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), known: Mutex::default() }
    }

    /// All files that an agent may not read, relative to the workspace.
    pub fn unreadable_files(&self, read_policy: &ReadPolicy) -> io::Result<BTreeSet<PathBuf>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        let device = self.reliable_device()?;
        let (mut found, mut folders) = (BTreeSet::new(), vec![PathBuf::new()]);
        // A path to which no rule can be applied is unreadable.
        let is_out = |path: &PathBuf| !path_for_rules(path).is_some_and(|path| read_policy.may_read(&path));
        while let Some(path) = folders.pop() {
            let folder = match self.folder(&path, before.remove(&path), device, read_policy) {
                Ok(folder) => folder,
                // Another program may have removed it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
            };
            let inside = |name: &OsString| path.join(name);
            folders.extend(folder.below.iter().map(inside));
            found.extend(folder.guarded.iter().map(inside).filter(is_out));
            let links = folder.links.iter().map(inside).filter(is_out);
            found.extend(links.filter_map(|link| self.link_target(&link)));
            known.insert(path, folder);
        }
        Ok(found)
    }

    /// The device of the workspace, if its timestamps are reliable.
    fn reliable_device(&self) -> io::Result<Option<(u32, u32)>> {
        let stamps = RELIABLE_FILE_SYSTEMS.contains(&(statfs(&self.workspace)?.f_type as u64));
        let device = stamps.then(|| stat(&self.workspace.join("")).map(|found| identity(&found).device));
        device.transpose()
    }

    /// Reads a folder, unless it is as before.
    fn folder(
        &self,
        path: &Path,
        before: Option<FolderCache>,
        device: Option<(u32, u32)>,
        read_policy: &ReadPolicy,
    ) -> io::Result<FolderCache> {
        let full_path = self.workspace.join(path);
        let now = SystemTime::now();
        let found = stat(&full_path)?;
        let identity = identity(&found);
        if let Some(before) = before.filter(|before| before.identity == Some(identity)) {
            return Ok(before);
        }
        // The names in a folder that is locked are others when it is unlocked.
        let is_plain = !found.stx_attributes.contains(StatxAttributes::ENCRYPTED);
        let is_known = Some(identity.device) == device && is_plain && is_old_enough(identity.changed.0, now);
        let mut folder = FolderCache { identity: is_known.then_some(identity), ..FolderCache::default() };
        for entry in open(&full_path)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let path = path.join(&name);
            let is_guarded =
                || !path_for_rules(&path).is_some_and(|path| read_policy.may_every_agent_read(&path));
            if kind.is_dir() {
                folder.below.extend((path != Path::new(STATE)).then_some(name));
            } else if kind.is_file() && is_guarded() {
                folder.guarded.push(name);
            } else if kind.is_symlink() && is_guarded() {
                folder.links.push(name);
            }
        }
        Ok(folder)
    }

    /// The file of the workspace that a link leads to. A link that leads elsewhere leads nowhere in a cell.
    fn link_target(&self, link: &Path) -> Option<PathBuf> {
        let target = self.workspace.join(link).canonicalize().ok()?;
        let inside = target.strip_prefix(self.workspace.canonicalize().ok()?).ok()?;
        (target.is_file() && !inside.starts_with(STATE)).then(|| inside.to_owned())
    }
}

/// What the file system says of a place, without following a link there.
fn stat(full_path: &Path) -> io::Result<Statx> {
    Ok(statx(CWD, full_path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?)
}

fn identity(found: &Statx) -> FileIdentity {
    FileIdentity {
        device: (found.stx_dev_major, found.stx_dev_minor),
        number: found.stx_ino,
        changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
    }
}

fn is_old_enough(changed: i64, now: SystemTime) -> bool {
    let changed = u64::try_from(changed).map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|passed| passed > MIN_STAMP_AGE))
}

/// The path of a file for the rules. A path that the log cannot store is converted with replacement characters.
fn path_for_rules(path: &Path) -> Option<FilePath> {
    let text = FilePath::from_bytes(path.as_os_str().as_bytes());
    text.or_else(|_| FilePath::parse(&path.to_string_lossy())).ok()
}

/// Files that an agent may not read, each with its identity. A cover disappears with the file under it, so a cell that
/// stays open must be checked again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoveredFiles(BTreeMap<PathBuf, FileIdentity>);

impl CoveredFiles {
    pub fn of(guarded: &GuardedFiles, read_policy: &ReadPolicy) -> io::Result<Self> {
        let mut covers = BTreeMap::new();
        for path in guarded.unreadable_files(read_policy)? {
            match stat(&guarded.workspace.join(&path)) {
                Ok(found) => drop(covers.insert(path, identity(&found))),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Self(covers))
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.keys().cloned().collect()
    }
}

/// Reads a folder. An unreadable one is made readable first, because a command could do the same.
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

    fn is_secret(path: &FilePath) -> bool {
        path.name() == ".env" || path.name().starts_with(".env.")
    }

    fn everyone() -> ReadPolicy {
        ReadPolicy::for_every_agent(|path| !is_secret(path))
    }

    fn write(folder: &Path, path: &str) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "a").unwrap();
    }

    fn unreadable_files(guarded: &GuardedFiles, read_policy: &ReadPolicy) -> Vec<String> {
        guarded.unreadable_files(read_policy).unwrap().iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn secrets_are_found_wherever_they_lie_and_whether_or_not_they_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        for path in [".env", "notes.md", "app/.env", ".choir/.env"] {
            write(folder.path(), path);
        }
        std::fs::write(folder.path().join(".gitignore"), ".env").unwrap();
        std::os::unix::fs::symlink(".env", folder.path().join("link")).unwrap();
        assert_eq!(unreadable_files(&GuardedFiles::new(folder.path()), &everyone()), [".env", "app/.env"]);
    }

    #[test]
    fn what_a_link_with_the_name_of_a_secret_leads_to_is_out_of_sight() {
        let folder = tempfile::tempdir().unwrap();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, folder.path().join(at)).unwrap();
        for path in ["config/dev", "config/other", "app/notes.md", ".choir/key"] {
            write(folder.path(), path);
        }
        for (to, at) in [("config/dev", ".env"), ("/etc/passwd", "config/.env"), ("nowhere", "app/.env")] {
            link(to, at);
        }
        link("../.choir/key", "app/.env.local");
        let guarded = GuardedFiles::new(folder.path());
        assert_eq!(unreadable_files(&guarded, &everyone()), ["config/dev"]);
        std::fs::remove_file(folder.path().join(".env")).unwrap();
        link("config/other", ".env");
        assert_eq!(unreadable_files(&guarded, &everyone()), ["config/other"]);
    }

    #[test]
    fn only_a_folder_that_has_been_at_rest_is_remembered() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (changed, is_at_rest) in
            [(999_996, true), (999_997, false), (999_999, false), (1_000_001, false), (-5, false)]
        {
            assert_eq!(is_old_enough(changed, now), is_at_rest, "{changed}");
        }
    }

    #[test]
    fn an_agent_that_was_allowed_one_secret_sees_that_one() {
        let folder = tempfile::tempdir().unwrap();
        for path in [".env", "app/.env"] {
            write(folder.path(), path);
        }
        let one =
            ReadPolicy::new(|path| !is_secret(path) || path.as_str() == ".env", |path| !is_secret(path));
        let guarded = GuardedFiles::new(folder.path());
        assert_eq!(unreadable_files(&guarded, &one), ["app/.env"]);
        assert_eq!(unreadable_files(&guarded, &everyone()), [".env", "app/.env"]);
    }

    #[test]
    fn a_folder_is_read_again_when_anything_in_it_came_or_went() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["old/notes.md", "old/deep/notes.md", "plain/notes.md"] {
            write(folder.path(), path);
        }
        let guarded = GuardedFiles::new(folder.path());
        // As if all of it had been there for long.
        let is_known = || {
            guarded.unreadable_files(&everyone()).unwrap();
            let mut known = guarded.known.lock().unwrap();
            for (path, folder_now) in known.iter_mut() {
                folder_now.identity = Some(identity(&stat(&folder.path().join(path)).unwrap()));
            }
            // Older kernels stamp by the tick of their clock.
            std::thread::sleep(Duration::from_millis(30));
            known.len()
        };
        assert_eq!(is_known(), 4);
        write(folder.path(), "old/deep/.env");
        assert_eq!(unreadable_files(&guarded, &everyone()), ["old/deep/.env"]);
        is_known();
        std::fs::rename(folder.path().join("old"), folder.path().join("new")).unwrap();
        assert_eq!(unreadable_files(&guarded, &everyone()), ["new/deep/.env"]);
        is_known();
        std::fs::rename(folder.path().join("new/deep/.env"), folder.path().join("plain/.env")).unwrap();
        assert_eq!(unreadable_files(&guarded, &everyone()), ["plain/.env"]);
        is_known();
        std::fs::remove_dir_all(folder.path().join("plain")).unwrap();
        assert_eq!(unreadable_files(&guarded, &everyone()), [""; 0]);
    }

    #[test]
    fn a_folder_that_is_as_before_is_not_read_again_and_one_that_just_changed_is() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "notes.md");
        let guarded = GuardedFiles::new(folder.path());
        guarded.unreadable_files(&everyone()).unwrap();
        let top = |change: &dyn Fn(&mut FolderCache)| {
            change(guarded.known.lock().unwrap().get_mut(Path::new("")).unwrap());
        };
        let invent = |folder: &mut FolderCache| folder.guarded = vec![".env".into()];
        // It was written a moment ago, so nothing is taken from memory.
        top(&invent);
        assert_eq!(unreadable_files(&guarded, &everyone()), [""; 0]);
        let found = stat(folder.path()).unwrap();
        top(&|folder: &mut FolderCache| folder.identity = Some(identity(&found)));
        top(&invent);
        assert_eq!(unreadable_files(&guarded, &everyone()), [".env"]);
    }

    #[test]
    fn a_secret_that_comes_goes_or_is_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let guarded = GuardedFiles::new(folder.path());
        let covers = || CoveredFiles::of(&guarded, &everyone()).unwrap();
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
