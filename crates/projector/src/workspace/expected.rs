//! The node that must still be at a path when it is replaced. The projector reads the disk before it decides to change
//! it; this is the second check, right before the change, so that an edit in between is not overwritten.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use shared_types::FilePath;

use super::{DiskError, Stat};

/// What was seen at a path before the decision to change it. A path that disappeared, or an empty folder at a free
/// path, never counts as an edit, because nothing is lost. A folder that is not empty is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anything may be replaced.
    Anything,
    Nothing,
    Seen(Stat),
}

impl Expected {
    /// The current stat, or an error if it differs from what was seen.
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
