//! Placing a node at a path. A file is complete before it gets its name: other processes see the old bytes or the new
//! ones, and a process that has the old file open keeps it.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, fchmod, fstat, mkdirat, renameat, statat, unlinkat};
use rustix::io::Errno;
use shared_types::FilePath;
use shared_types::path::link_stays_inside;
use shared_types::payload::file::FileNode;

use super::folder::{ATTEMPTS, Missing};
use super::scratch::Draft;
use super::swap::{Swapped, keep_both};
use super::{DiskError, Expected, Observed, ObservedKind, Stat, Workspace};

const CHUNK: usize = 64 * 1024;

impl Workspace {
    /// Places a node at a path, replacing the file, link or empty folder that is expected there, and makes the folders
    /// above it. Durable only after [`Workspace::sync`].
    pub fn place(
        &self,
        path: &FilePath,
        node: &FileNode,
        content: Option<&mut dyn Read>,
        over: Expected,
    ) -> Result<Observed, DiskError> {
        match node {
            FileNode::File { size, mode, .. } => {
                let content = content.ok_or_else(|| DiskError::NoContent { path: path.clone() })?;
                self.place_file(path, *size, *mode, content, over)
            }
            FileNode::Symlink { target } => self.place_link(path, target, over),
            FileNode::Folder => self.place_folder(path, over),
        }
    }

    fn place_file(
        &self,
        path: &FilePath,
        size: u64,
        mode: u16,
        content: &mut dyn Read,
        over: Expected,
    ) -> Result<Observed, DiskError> {
        let failed = |errno| DiskError::of(path, errno);
        let (draft, mut file) = Draft::file(self.scratch.as_fd()).map_err(failed)?;
        let written = copy(path, size, content, &mut file)?;
        if written != size {
            return Err(DiskError::WrongSize { path: path.clone(), expected: size, found: written });
        }
        fchmod(&file, Mode::from_raw_mode(u32::from(mode & 0o777))).map_err(failed)?;
        let before = Stat::of(&fstat(&file).map_err(failed)?);
        self.rename_into_place(path, draft, &before, over)?;
        let after = Stat::of(&fstat(&file).map_err(failed)?);
        let stat = settled(before, after);
        Ok(Observed { stat, kind: stat.kind() })
    }

    fn place_link(&self, path: &FilePath, target: &str, over: Expected) -> Result<Observed, DiskError> {
        if !link_stays_inside(path, target) {
            return Err(DiskError::LinkLeaves { path: path.clone(), target: target.into() });
        }
        let failed = |errno| DiskError::of(path, errno);
        let draft = Draft::link(self.scratch.as_fd(), target).map_err(failed)?;
        let before = statat(&self.scratch, draft.name(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let before = Stat::of(&before);
        self.rename_into_place(path, draft, &before, over)?;
        let after = self.observe(path)?.map_or(before, |seen| seen.stat);
        Ok(Observed { stat: settled(before, after), kind: ObservedKind::Symlink { target: target.into() } })
    }

    fn place_folder(&self, path: &FilePath, over: Expected) -> Result<Observed, DiskError> {
        for _ in 0..ATTEMPTS {
            let Some(above) = self.above(path, Missing::Create)? else { continue };
            match mkdirat(&above, path.name(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                // The parent folder was removed after it was opened.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
            let raw = match statat(&above, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(raw) => raw,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(DiskError::of(path, errno)),
            };
            if FileType::from_raw_mode(raw.st_mode) == FileType::Directory {
                return Ok(Observed { stat: Stat::of(&raw), kind: ObservedKind::Folder });
            }
            over.check(above.as_fd(), path)?;
            match unlinkat(&above, path.name(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
        }
        Err(DiskError::Busy { path: path.clone() })
    }

    fn rename_into_place(
        &self,
        path: &FilePath,
        draft: Draft<'_>,
        own: &Stat,
        over: Expected,
    ) -> Result<(), DiskError> {
        let scratch = self.scratch.as_fd();
        for _ in 0..ATTEMPTS {
            let Some(above) = self.above(path, Missing::Create)? else { continue };
            let now = over.check(above.as_fd(), path)?;
            let renamed = match (over, now) {
                (Expected::Seen(seen), Some(now)) if now.file_type() != FileType::Directory => {
                    match self.swap_in(&draft, own, above.as_fd(), path.name(), &seen) {
                        Ok(Swapped::Done) => return Ok(()),
                        Ok(Swapped::Changed) => return Err(DiskError::Changed { path: path.clone() }),
                        Err(errno) => Err(errno),
                    }
                }
                (Expected::Anything, _) => renameat(scratch, draft.name(), &above, path.name()),
                (Expected::Nothing | Expected::Seen(_), _) => {
                    keep_both(scratch, draft.name(), above.as_fd(), path.name())
                }
            };
            match renamed {
                Ok(()) => {
                    draft.moved();
                    return Ok(());
                }
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => clear_folder(above.as_fd(), path)?,
                // The parent folder, or the node to be replaced, was removed after it was checked.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
        }
        Err(DiskError::Busy { path: path.clone() })
    }
}

/// Removes the empty folder at a path that a file should get.
fn clear_folder(above: BorrowedFd<'_>, path: &FilePath) -> Result<(), DiskError> {
    match unlinkat(above, path.name(), AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(DiskError::FolderInTheWay { path: path.clone() }),
        Err(errno) => Err(DiskError::of(path, errno)),
    }
}

/// The stat to record. A rename changes only the ctime; if anything else differs, the file was written to since, and
/// the older stat makes the next scan read the content.
fn settled(before: Stat, after: Stat) -> Stat {
    if before.is_same_but_moved(&after) { after } else { before }
}

fn copy(path: &FilePath, size: u64, from: &mut dyn Read, to: &mut impl Write) -> Result<u64, DiskError> {
    let room = usize::try_from(size).unwrap_or(CHUNK).saturating_add(1).min(CHUNK);
    let mut buffer = vec![0; room];
    let mut written = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(written),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(source) => return Err(DiskError::Content { path: path.clone(), source }),
        };
        to.write_all(&buffer[..count]).map_err(|error| DiskError::of_io(path, error))?;
        written += count as u64;
        if written > size {
            return Ok(written);
        }
    }
}
