//! The user's folder on disk. The projector touches it only through this module.
//!
//! Invariants: every path is opened through directory file descriptors, one part at a time, and no symbolic link is
//! ever followed, so nothing outside the root can be read or changed, even if the disk changes at the same time. A
//! file is never changed in place: it is written in the scratch folder and renamed. Nothing is durable before
//! [`Workspace::sync`]. This module knows paths and nodes, but no events and no database.

mod error;
mod expected;
mod folder;
mod hash;
mod place;
mod remove;
mod scratch;
mod stat;
mod swap;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, statat, syncfs};
use rustix::io::Errno;
use shared_types::FilePath;

pub use error::{DiskError, OpenError};
pub use expected::Expected;
pub(crate) use folder::open_for_reading;
pub use hash::hash_file;
pub use stat::{Observed, ObservedKind, Stat};

use folder::{ATTEMPTS, Missing};

/// An open workspace. It stays the same folder, even if the folder is renamed.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    scratch: OwnedFd,
    device: u64,
}

impl Workspace {
    /// Opens the folder `root`, which must exist, and `scratch`, which is made if it does not exist; both must be on
    /// the same file system. `scratch` may be inside `root`, under its reserved name.
    pub fn open(root: &Path, scratch: &Path) -> Result<Self, OpenError> {
        let failed = |errno: Errno| OpenError::Root { path: root.to_owned(), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, root, flags, Mode::empty()).map_err(failed)?;
        let device = fstat(&top).map_err(failed)?.st_dev;

        let failed = |source| OpenError::Scratch { path: scratch.to_owned(), source };
        let drafts = scratch::open(&top, root, scratch).map_err(failed)?;
        if fstat(&drafts).map_err(|errno| failed(errno.into()))?.st_dev != device {
            return Err(OpenError::OtherFileSystem { root: root.to_owned(), scratch: scratch.to_owned() });
        }
        Ok(Self { root: top, scratch: drafts, device })
    }

    /// What is at a path, if anything.
    pub fn observe(&self, path: &FilePath) -> Result<Option<Observed>, DiskError> {
        let Some(above) = self.above(path, Missing::Stop)? else { return Ok(None) };
        for _ in 0..ATTEMPTS {
            let raw = match statat(&above, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(raw) => raw,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(DiskError::of(path, errno)),
            };
            let stat = Stat::of(&raw);
            if stat.file_type() != FileType::Symlink {
                return Ok(Some(Observed { stat, kind: stat.kind() }));
            }
            match readlinkat(&above, path.name(), Vec::new()) {
                Ok(target) => return Ok(Some(Observed { stat, kind: link_kind(target.as_bytes()) })),
                // It is not a link any more.
                Err(Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
        }
        Err(DiskError::Busy { path: path.clone() })
    }

    /// Opens a regular file for reading. Anything else is refused without blocking.
    pub fn open_file(&self, path: &FilePath) -> Result<File, DiskError> {
        let missing = || DiskError::Missing { path: path.clone() };
        let above = self.above(path, Missing::Stop)?.ok_or_else(missing)?;
        let failed = |errno| match errno {
            Errno::LOOP | Errno::NXIO => DiskError::NotAFile { path: path.clone() },
            errno => DiskError::of(path, errno),
        };
        let is_file = |raw: &rustix::fs::Stat| Stat::of(raw).file_type() == FileType::RegularFile;
        // Opening some devices has effects, so the type is checked first, and again on the opened file.
        let seen = statat(&above, path.name(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if !is_file(&seen) {
            return Err(DiskError::NotAFile { path: path.clone() });
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&above, path.name(), flags, Mode::empty()).map_err(failed)?;
        if !is_file(&fstat(&file).map_err(failed)?) {
            return Err(DiskError::NotAFile { path: path.clone() });
        }
        Ok(File::from(file))
    }

    /// Makes all changes so far durable, with one call.
    pub fn sync(&self) -> Result<(), DiskError> {
        syncfs(&self.root).map_err(|errno| DiskError::Sync { source: errno.into() })
    }

    /// The workspace's own folder, opened for reading its entries.
    pub(crate) fn open_root(&self) -> Result<OwnedFd, Errno> {
        open_for_reading(self.root.as_fd(), ".")
    }

    /// The device of the workspace; a folder with another device is a mount.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }
}

/// A link with this target, if the target is text.
pub(crate) fn link_kind(target: &[u8]) -> ObservedKind {
    match std::str::from_utf8(target) {
        Ok(target) => ObservedKind::Symlink { target: target.into() },
        Err(_) => ObservedKind::Other,
    }
}
