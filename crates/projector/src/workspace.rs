//! The user's folder on disk, and the only way by which the projector touches it.
//!
//! Invariants: everything is reached through directory file descriptors, one part at a time, and no symbolic link is
//! ever followed, so nothing outside the root can be read or changed, whatever happens on disk at the same time. A
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
pub use stat::{Kind, Observed, Stat};

use folder::{ATTEMPTS, Missing};

/// An open workspace. It stays the same folder, even if that is renamed meanwhile.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    scratch: OwnedFd,
    device: u64,
}

impl Workspace {
    /// Opens the folder `root`, which must exist, and `scratch`, which is made if it does not; both must be on one
    /// file system. `scratch` may be inside `root`, under its reserved name.
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

    /// What stands at a path, if anything.
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
                // It is no link any more.
                Err(Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
        }
        Err(DiskError::Busy { path: path.clone() })
    }

    /// Opens a regular file for reading; anything else is refused and cannot make the caller wait.
    pub fn open_file(&self, path: &FilePath) -> Result<File, DiskError> {
        let missing = || DiskError::Missing { path: path.clone() };
        let above = self.above(path, Missing::Stop)?.ok_or_else(missing)?;
        let failed = |errno| match errno {
            Errno::LOOP | Errno::NXIO => DiskError::NotAFile { path: path.clone() },
            errno => DiskError::of(path, errno),
        };
        let is_file = |raw: &rustix::fs::Stat| Stat::of(raw).file_type() == FileType::RegularFile;
        // To open some devices is to act on them, so look first; look again at what was really opened.
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

    /// Makes everything that was placed and removed so far durable, in one go.
    pub fn sync(&self) -> Result<(), DiskError> {
        syncfs(&self.root).map_err(|errno| DiskError::Sync { source: errno.into() })
    }

    /// The workspace's own folder, opened anew for reading its entries.
    pub(crate) fn open_root(&self) -> Result<OwnedFd, Errno> {
        open_for_reading(self.root.as_fd(), ".")
    }

    /// The device that the workspace is on; what has another is a mount inside it.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }
}

/// A link with this target, if the target is text.
pub(crate) fn link_kind(target: &[u8]) -> Kind {
    match std::str::from_utf8(target) {
        Ok(target) => Kind::Symlink { target: target.into() },
        Err(_) => Kind::Other,
    }
}
