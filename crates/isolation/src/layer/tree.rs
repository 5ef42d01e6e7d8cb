//! Walks and removes a folder tree that an untrusted command made and may still be changing. Symbolic links are never
//! followed, the number of open descriptors is bounded at any depth, nothing recurses, and entries that vanish during
//! the walk are skipped: a walk that an attacker could abort would find nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::{EntryKind, OPAQUE, Visit};

/// Folders kept open at once; folders above are reopened on the way back.
const MAX_OPEN: usize = 48;
/// The maximum depth. No path is longer than that.
pub(super) const MAX_DEPTH: usize = 2_048;
/// The permissions needed to read a folder.
const READ_FOLDER: Mode = Mode::RUSR.union(Mode::XUSR);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How to treat a folder that its owner cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnreadableFolders {
    /// Make it readable and leave it so.
    Open,
    /// Make it readable for the walk and then restore its mode, because its command still runs.
    OpenTemporarily,
}

/// An entry during the walk.
pub(super) struct Visited<'a> {
    /// Relative to the top.
    pub(super) path: &'a Path,
    pub(super) stat: &'a Stat,
    pub(super) kind: EntryKind,
}

/// How much of a tree was walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    /// All of it, or as much as the visitor wanted.
    Complete,
    /// All but what is below the maximum depth.
    DepthLimited,
}

struct Level {
    fd: Option<OwnedFd>,
    remaining: std::vec::IntoIter<OsString>,
    /// The device and inode number.
    identity: (u64, u64),
    /// The mode to restore afterwards, if it was changed.
    restore: Option<Mode>,
}

/// Visits every entry below a folder, each folder before its contents.
pub(super) fn visit(
    top: &Path,
    unreadable: UnreadableFolders,
    visit: &mut dyn FnMut(&Visited<'_>) -> io::Result<Visit>,
) -> io::Result<Coverage> {
    let fd = rustix::fs::openat(CWD, top, FOLDER, Mode::empty())?;
    let remaining = names(fd.as_fd())?.into_iter();
    // The top folder is never closed early, so its identity is not needed.
    let mut levels = vec![Level { fd: Some(fd), remaining, identity: (0, 0), restore: None }];
    let mut path = PathBuf::new();
    let mut coverage = Coverage::Complete;
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.remaining.next() else {
            leave(&mut levels, &mut path);
            continue;
        };
        let Some(folder) = &level.fd else { continue };
        let Some(stat) =
            ignoring_races(rustix::fs::statat(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW))?
        else {
            continue;
        };
        path.push(&name);
        let opened = match kind(&stat) {
            Some(kind) => Err(kind),
            None => match ignoring_races(open(folder.as_fd(), &name, &stat, READ_FOLDER))? {
                Some((fd, was)) => Ok((fd, was.filter(|_| unreadable == UnreadableFolders::OpenTemporarily))),
                None => {
                    path.pop();
                    continue;
                }
            },
        };
        let kind = match &opened {
            Err(kind) => *kind,
            Ok((fd, _)) if is_opaque(fd) => EntryKind::OpaqueFolder,
            Ok(_) => EntryKind::Folder,
        };
        let next = visit(&Visited { path: &path, stat: &stat, kind })?;
        match opened {
            Ok((fd, was)) if next == Visit::Enter && levels.len() <= MAX_DEPTH => {
                let remaining = names(fd.as_fd())?.into_iter();
                levels.push(Level {
                    fd: Some(fd),
                    remaining,
                    identity: (stat.st_dev, stat.st_ino),
                    restore: was,
                });
                let furthest = levels.len().saturating_sub(MAX_OPEN);
                if furthest > 0 {
                    levels[furthest].fd = None;
                }
                continue;
            }
            Ok((fd, was)) => {
                if next == Visit::Enter {
                    coverage = Coverage::DepthLimited;
                }
                close(&fd, was);
            }
            Err(_) => {}
        }
        path.pop();
        if next == Visit::End {
            while levels.len() > 1 {
                leave(&mut levels, &mut path);
            }
            return Ok(coverage);
        }
    }
    Ok(coverage)
}

/// Returns to the parent folder and reopens it if it was closed. If this folder was moved meanwhile, `..` is a
/// different folder, and the parent's remaining entries are skipped.
fn leave(levels: &mut Vec<Level>, path: &mut PathBuf) {
    path.pop();
    let Some(level) = levels.pop() else { return };
    let Some(fd) = &level.fd else { return };
    if let Some(above) = levels.last_mut()
        && above.fd.is_none()
    {
        let opened = rustix::fs::openat(fd, "..", FOLDER, Mode::empty()).ok();
        above.fd = opened.filter(|fd| {
            rustix::fs::fstat(fd).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == above.identity)
        });
    }
    close(fd, level.restore);
}

fn close(fd: &OwnedFd, was: Option<Mode>) {
    if let Some(mode) = was {
        let _ = rustix::fs::fchmod(fd, mode);
    }
}

/// Turns errors that concurrent changes can cause at any moment into `None`.
fn ignoring_races<T>(result: Result<T, Errno>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The kind of an entry; `None` for a folder.
fn kind(stat: &Stat) -> Option<EntryKind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => None,
        FileType::RegularFile => Some(EntryKind::File),
        FileType::Symlink => Some(EntryKind::Symlink),
        FileType::CharacterDevice if stat.st_rdev == 0 => Some(EntryKind::Whiteout),
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Some(EntryKind::Special),
    }
}

/// Opens a folder. If its owner lacks the permissions, grants them first and returns the previous mode.
fn open(
    above: BorrowedFd<'_>,
    name: &OsStr,
    stat: &Stat,
    rights: Mode,
) -> Result<(OwnedFd, Option<Mode>), Errno> {
    if Mode::from_raw_mode(stat.st_mode).contains(rights) || rustix::process::geteuid().is_root() {
        return Ok((rustix::fs::openat(above, name.as_bytes(), FOLDER, Mode::empty())?, None));
    }
    // Use the handle, because the name may refer to something else by now.
    let handle = rustix::fs::openat(above, name.as_bytes(), FOLDER | OFlags::PATH, Mode::empty())?;
    let was = Mode::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
    let known = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(&known, was | rights)?;
    let opened = rustix::fs::open(&known, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
    Ok((opened, Some(was)))
}

/// Opens a folder and leaves it readable.
pub(super) fn open_folder(above: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    open_for(above, name, READ_FOLDER)
}

fn open_for(above: BorrowedFd<'_>, name: &OsStr, rights: Mode) -> io::Result<OwnedFd> {
    let stat = rustix::fs::statat(above, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(open(above, name, &stat, rights)?.0)
}

pub(super) fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let Some(entry) = ignoring_races(entry)? else { break };
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

pub(super) fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0; 1];
    rustix::fs::fgetxattr(folder, OPAQUE, &mut value[..]).is_ok_and(|length| length == 1 && value == *b"y")
}

/// Removes a folder and its contents, at any depth and with any permissions. Nothing may change it meanwhile. Does
/// nothing if the folder does not exist.
///
/// Deep folders are first moved to the top, so that depth needs no extra descriptors and no recursion.
pub fn remove(folder: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a folder without a name cannot be removed"));
    };
    let above = match rustix::fs::open(above, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let top = match open_for(above.as_fd(), name, Mode::RWXU) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut next = 0u64;
    loop {
        let inside = names(top.as_fd())?;
        if inside.is_empty() {
            break;
        }
        for name in inside {
            if unlink(&top, &name)? {
                continue;
            }
            let deeper = open_for(top.as_fd(), &name, Mode::RWXU)?;
            for below in names(deeper.as_fd())? {
                if !unlink(&deeper, &below)? {
                    // A folder without write permission cannot be moved.
                    drop(open_for(deeper.as_fd(), &below, Mode::RWXU)?);
                    move_up(&deeper, &below, &top, &mut next)?;
                }
            }
            rustix::fs::unlinkat(&top, name.as_bytes(), AtFlags::REMOVEDIR)?;
        }
    }
    Ok(rustix::fs::unlinkat(&above, name.as_bytes(), AtFlags::REMOVEDIR)?)
}

/// Removes an entry; returns false if it is a non-empty folder.
fn unlink(folder: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(folder, name.as_bytes(), AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR) => match rustix::fs::unlinkat(folder, name.as_bytes(), AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY) => Ok(false),
            Err(errno) => Err(errno.into()),
        },
        Err(errno) => Err(errno.into()),
    }
}

fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, next: &mut u64) -> io::Result<()> {
    loop {
        let free = format!(".removed-{next}");
        *next += 1;
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(from, name.as_bytes(), top, free.as_str(), flags) {
            Err(Errno::EXIST) => {}
            other => return Ok(other?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn deep(top: &Path, depth: usize) {
        let mut folder = rustix::fs::open(top, FOLDER, Mode::empty()).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            // A sibling of the path down, so that the way back up is tested too.
            rustix::fs::mkdirat(&folder, "e", Mode::RWXU).unwrap();
            folder = rustix::fs::openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn a_deep_tree_is_walked_and_removed() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("top");
        for (depth, seen) in [(300, Coverage::Complete), (MAX_DEPTH + 500, Coverage::DepthLimited)] {
            std::fs::create_dir(&top).unwrap();
            deep(&top, depth);
            let mut paths = BTreeSet::new();
            let result = visit(&top, UnreadableFolders::Open, &mut |found| {
                assert!(paths.insert(found.path.to_owned()));
                Ok(Visit::Enter)
            });
            assert_eq!(result.unwrap(), seen);
            assert_eq!(paths.len(), 2 * depth.min(MAX_DEPTH + 1));
            remove(&top).unwrap();
            assert!(!top.exists());
        }
        remove(&top).unwrap();
    }

    #[test]
    fn a_folder_replaced_by_a_link_is_not_opened() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let (folder, target) = (base.path().join("folder"), base.path().join("target"));
        std::fs::create_dir(&target).unwrap();
        std::fs::set_permissions(&target, PermissionsExt::from_mode(0o500)).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o000)).unwrap();
        let above = rustix::fs::open(base.path(), FOLDER, Mode::empty()).unwrap();
        let stat = rustix::fs::statat(&above, "folder", AtFlags::SYMLINK_NOFOLLOW).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&target, &folder).unwrap();
        assert!(open(above.as_fd(), OsStr::new("folder"), &stat, Mode::RWXU).is_err());
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o500);
    }

    #[test]
    fn a_visitor_can_end_the_walk() {
        let base = tempfile::tempdir().unwrap();
        deep(base.path(), 100);
        let mut count = 0;
        let seen = visit(base.path(), UnreadableFolders::Open, &mut |_| {
            count += 1;
            Ok(if count == 60 { Visit::End } else { Visit::Enter })
        });
        assert_eq!((seen.unwrap(), count), (Coverage::Complete, 60));
    }
}
