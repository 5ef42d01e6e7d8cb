//! Removing a file, a link or an empty folder, and the empty folders that this leaves above it. A folder that is not
//! empty is never removed.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, unlinkat};
use rustix::io::Errno;
use shared_types::FilePath;

use super::folder::{ATTEMPTS, Missing};
use super::swap::Swapped;
use super::{DiskError, Expected, Workspace};

impl Workspace {
    /// Removes the file, link or empty folder that is expected at a path, if it exists.
    pub fn remove(&self, path: &FilePath, expected: Expected) -> Result<(), DiskError> {
        let Some(above) = self.above(path, Missing::Stop)? else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            let Some(now) = expected.check(above.as_fd(), path)? else { return Ok(()) };
            if let Expected::Seen(seen) = expected
                && now.file_type() != FileType::Directory
            {
                match self.swap_out(above.as_fd(), path, &seen) {
                    Ok(Swapped::Done) | Err(DiskError::Missing { .. }) => return Ok(()),
                    Ok(Swapped::Changed) => return Err(DiskError::Changed { path: path.clone() }),
                    Err(error) => return Err(error),
                }
            }
            match unlinkat(&above, path.name(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // POSIX returns EPERM for a folder, Linux EISDIR.
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
            match unlinkat(&above, path.name(), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    return Err(DiskError::FolderInTheWay { path: path.clone() });
                }
                // Not a folder: either it just changed, or the first error was about permission.
                Err(Errno::NOTDIR) => {}
                Err(errno) => return Err(DiskError::of(path, errno)),
            }
        }
        Err(DiskError::Denied { path: path.clone() })
    }

    /// Removes the empty folders above a path, nearest first, until one is not empty or must be kept.
    pub fn prune(&self, path: &FilePath, keep: &dyn Fn(&FilePath) -> bool) -> Result<(), DiskError> {
        for folder in path.ancestors() {
            if keep(&folder) {
                return Ok(());
            }
            let Some(above) = self.above(&folder, Missing::Stop)? else { continue };
            match unlinkat(&above, folder.name(), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                // It is not empty, or not a folder: it stays.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::BUSY) => return Ok(()),
                Err(errno) => return Err(DiskError::of(&folder, errno)),
            }
        }
        Ok(())
    }
}
