//! Drafts: files and links made in the scratch folder before they are renamed into place. A draft that is not renamed
//! is removed when it is dropped; `clean_scratch` removes those that a crash left at the next start.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::folder::open_for_reading;
use super::swap::keep_both;
use super::{DiskError, Workspace};

const PREFIX: &str = "place-";

/// A file or a link in the scratch folder, removed on drop unless it was renamed.
#[derive(Debug)]
pub(super) struct Draft<'w> {
    scratch: BorrowedFd<'w>,
    name: String,
    in_place: bool,
}

impl<'w> Draft<'w> {
    /// A new empty file that only its owner can read until its mode is set.
    pub(super) fn file(scratch: BorrowedFd<'w>) -> Result<(Self, File), Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Self::make(scratch, |name| openat(scratch, name, flags, Mode::RUSR | Mode::WUSR).map(File::from))
    }

    pub(super) fn link(scratch: BorrowedFd<'w>, target: &str) -> Result<Self, Errno> {
        Self::make(scratch, |name| symlinkat(target, scratch, name)).map(|(draft, ())| draft)
    }

    /// The node at a path, moved into the scratch folder.
    pub(super) fn taken(scratch: BorrowedFd<'w>, above: BorrowedFd<'_>, from: &str) -> Result<Self, Errno> {
        Self::make(scratch, |name| keep_both(above, from, scratch, name)).map(|(draft, ())| draft)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// To be called after the rename.
    pub(super) fn moved(mut self) {
        self.in_place = true;
    }

    fn make<T>(
        scratch: BorrowedFd<'w>,
        create: impl Fn(&str) -> Result<T, Errno>,
    ) -> Result<(Self, T), Errno> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{:x}-{number:x}", std::process::id());
            match create(&name) {
                Ok(made) => return Ok((Self { scratch, name, in_place: false }, made)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.in_place {
            // If this fails, the next start removes it.
            let _ = unlinkat(self.scratch, self.name.as_str(), AtFlags::empty());
        }
    }
}

impl Workspace {
    /// Removes the drafts that a crash left and returns how many. Only the process that owns the workspace may call
    /// this, before it places anything.
    pub fn clean_scratch(&self) -> Result<usize, DiskError> {
        let failed = |errno: Errno| DiskError::Scratch { source: errno.into() };
        let mut leftovers = Vec::new();
        for entry in Dir::read_from(&self.scratch).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_bytes().starts_with(PREFIX.as_bytes()) {
                leftovers.push(entry.file_name().to_owned());
            }
        }
        for name in &leftovers {
            match unlinkat(&self.scratch, name, AtFlags::empty()) {
                // No draft is a folder. This is a user's folder that was swapped out while it changed, before a crash
                // prevented moving it back. It stays here so that the user can find it.
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(leftovers.len())
    }
}

/// Opens the scratch folder and makes it if it is missing. Inside the workspace no link is followed.
pub(super) fn open(root: &OwnedFd, root_path: &Path, scratch: &Path) -> io::Result<OwnedFd> {
    let Ok(inside) = scratch.strip_prefix(root_path) else {
        DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
        return Ok(open_for_reading(CWD, scratch)?);
    };
    let mut folder = open_for_reading(root.as_fd(), ".")?;
    for part in inside.components() {
        let Component::Normal(name) = part else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path contains '.' or '..'"));
        };
        match mkdirat(&folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        folder = open_for_reading(folder.as_fd(), name)?;
    }
    Ok(folder)
}
