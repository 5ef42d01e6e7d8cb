//! Replacing a file without a moment in which an outside edit could get lost.
//!
//! A check before the change always leaves a gap. So the draft and the file are exchanged in one atomic step, and the
//! file that came out is compared with what was seen; if it differs, the two are exchanged back. Where the file system
//! cannot do that, the check right before the change has to be enough.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, statat};
use rustix::io::Errno;
use shared_types::FilePath;

use super::scratch::Draft;
use super::{DiskError, Stat, Workspace};

/// The result of a swap that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swapped {
    Done,
    /// The path holds something else than what was seen, and is unchanged.
    Changed,
}

impl Workspace {
    /// Exchanges a draft with the file or link that was seen; the draft then holds the old one.
    pub(super) fn swap_in(
        &self,
        draft: &Draft<'_>,
        own: &Stat,
        above: BorrowedFd<'_>,
        name: &str,
        seen: &Stat,
    ) -> Result<Swapped, Errno> {
        let scratch = self.scratch.as_fd();
        let exchange = || renameat_with(scratch, draft.name(), above, name, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) => {}
            Err(errno) if cannot(errno) => {
                return renameat(scratch, draft.name(), above, name).map(|()| Swapped::Done);
            }
            Err(errno) => return Err(errno),
        }
        let out = || statat(scratch, draft.name(), AtFlags::SYMLINK_NOFOLLOW).map(|raw| Stat::of(&raw));
        if seen.is_same_but_moved(&out()?) {
            return Ok(Swapped::Done);
        }
        exchange()?;
        if out()?.ino != own.ino {
            // It was saved once more during the swap: the newer version wins.
            exchange()?;
        }
        Ok(Swapped::Changed)
    }

    /// Moves the file or link that was seen into a draft, which is returned.
    pub(super) fn swap_out(
        &self,
        above: BorrowedFd<'_>,
        path: &FilePath,
        seen: &Stat,
    ) -> Result<Swapped, DiskError> {
        let failed = |errno| DiskError::of(path, errno);
        let scratch = self.scratch.as_fd();
        let taken = Draft::taken(scratch, above, path.name()).map_err(failed)?;
        let out = statat(scratch, taken.name(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if seen.is_same_but_moved(&Stat::of(&out)) {
            return Ok(Swapped::Done);
        }
        match keep_both(scratch, taken.name(), above, path.name()) {
            Ok(()) => taken.moved(),
            // It was saved once more during the swap: the newer version wins.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        Ok(Swapped::Changed)
    }
}

/// Renames without replacing anything, if the file system supports that.
pub(super) fn keep_both(
    from: BorrowedFd<'_>,
    name: &str,
    to: BorrowedFd<'_>,
    new_name: &str,
) -> Result<(), Errno> {
    match renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        Err(errno) if cannot(errno) => renameat(from, name, to, new_name),
        outcome => outcome,
    }
}

fn cannot(errno: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].contains(&errno)
}
