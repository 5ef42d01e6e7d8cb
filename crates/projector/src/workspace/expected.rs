//! What has to stand at a path still when something else takes its place. Whoever changes the disk looked at it first;
//! this is the second look, right before the change, so that an edit made in between is not overwritten.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use shared_types::FilePath;

use super::{DiskError, Stat};

/// What was seen at a path before it was decided to change it. That it is gone, or that an empty folder took a free
/// place, never counts as an edit: nothing is lost with it. A folder that is not empty is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there may go.
    Anything,
    Nothing,
    Seen(Stat),
}

impl Expected {
    /// What is there now, or that it is something else than what was seen.
    pub(super) fn check(self, above: BorrowedFd<'_>, path: &FilePath) -> Result<Option<Stat>, DiskError> {
        let now = match statat(above, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(raw) => Some(Stat::of(&raw)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(DiskError::of(path, errno)),
        };
        if self.fits(now.as_ref()) { Ok(now) } else { Err(DiskError::Changed { path: path.clone() }) }
    }

    fn fits(self, now: Option<&Stat>) -> bool {
        let is_folder = |stat: &Stat| stat.file_type() == FileType::Directory;
        match (self, now) {
            (Self::Anything, _) | (Self::Nothing | Self::Seen(_), None) => true,
            (Self::Nothing, Some(now)) => is_folder(now),
            (Self::Seen(seen), Some(now)) => seen == *now || is_folder(&seen) && is_folder(now),
        }
    }
}
