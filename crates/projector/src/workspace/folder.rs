//! Descending to a path, one folder at a time. Every step opens the next folder relative to the last and refuses links,
//! so that no change on disk, at any time, leads out of the workspace.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, mkdirat, openat, statat};
use rustix::io::Errno;
use shared_types::FilePath;

use super::{DiskError, Workspace};

/// How often a step is retried while the same path is being changed.
pub(super) const ATTEMPTS: usize = 8;

/// The parent folder of a path: the workspace itself, or a folder below it.
#[derive(Debug)]
pub(super) struct ParentFolder<'w> {
    top: BorrowedFd<'w>,
    below: Option<OwnedFd>,
}

impl AsFd for ParentFolder<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.below.as_ref().map_or(self.top, AsFd::as_fd)
    }
}

/// What to do if a folder on the way does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Stop,
    Create,
}

impl Workspace {
    /// The parent folder of `path`, or `None` if it does not exist and should not be made.
    pub(super) fn above(
        &self,
        path: &FilePath,
        missing: Missing,
    ) -> Result<Option<ParentFolder<'_>>, DiskError> {
        let mut above = ParentFolder { top: self.root.as_fd(), below: None };
        let Some((folders, _)) = path.as_str().rsplit_once('/') else { return Ok(Some(above)) };
        let mut end = 0;
        for part in folders.split('/') {
            end += part.len();
            let step = match step(above.as_fd(), part) {
                Err(Errno::NOENT) if missing == Missing::Create => make(above.as_fd(), part),
                other => other,
            };
            match step {
                Ok(next) => above.below = Some(next),
                Err(Errno::NOENT) if missing == Missing::Stop => return Ok(None),
                Err(errno) => return Err(refusal(above.as_fd(), path, &path.as_str()[..end], part, errno)),
            }
            end += 1;
        }
        Ok(Some(above))
    }

    /// The UTF-8 names in a folder; none if there is no folder.
    pub fn names(&self, path: &FilePath) -> Result<Vec<String>, DiskError> {
        let failed = |errno| DiskError::of(path, errno);
        let Some(folder) = self.open_folder(path)? else { return Ok(Vec::new()) };
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            if let Ok(name) = entry.map_err(failed)?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// A folder opened for reading its entries; `None` if it does not exist.
    pub(crate) fn open_folder(&self, path: &FilePath) -> Result<Option<OwnedFd>, DiskError> {
        let Some(above) = self.above(path, Missing::Stop)? else { return Ok(None) };
        match open_for_reading(above.as_fd(), path.name()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refusal(above.as_fd(), path, path.as_str(), path.name(), errno)),
        }
    }
}

/// Opens a folder for reading its entries, never through a link.
pub(crate) fn open_for_reading<P: rustix::path::Arg>(
    above: BorrowedFd<'_>,
    name: P,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

/// One step down. `O_PATH` needs only the permission to pass through.
fn step(above: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

/// Makes a folder and opens it, also if another process made or removed it in between.
pub(super) fn make(above: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    for _ in 0..ATTEMPTS {
        match mkdirat(above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        match step(above, name) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// The typed reason why a step failed.
fn refusal(above: BorrowedFd<'_>, path: &FilePath, at: &str, name: &str, errno: Errno) -> DiskError {
    if errno == Errno::AGAIN {
        return DiskError::Busy { path: path.clone() };
    }
    if errno != Errno::LOOP && errno != Errno::NOTDIR {
        return DiskError::of(path, errno);
    }
    let at = FilePath::parse(at).unwrap_or_else(|_| path.clone());
    match statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(raw) => match FileType::from_raw_mode(raw.st_mode) {
            FileType::Symlink => DiskError::LinkInPath { path: path.clone(), at },
            // It was something else a moment ago.
            FileType::Directory => DiskError::Busy { path: path.clone() },
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => DiskError::NotAFolder { path: path.clone(), at },
        },
        Err(Errno::NOENT) => DiskError::Busy { path: path.clone() },
        Err(errno) => DiskError::of(path, errno),
    }
}
