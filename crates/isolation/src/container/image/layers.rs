//! Unpacks one layer over the previous ones. The archive is untrusted: no path may lead out of the root, through any
//! link, and it creates no devices and no set-uid programs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tar::{Archive, Entry};

use super::ImageError;

/// The prefix of a whiteout, which deletes a file of earlier layers.
const WHITEOUT: &[u8] = b".wh.";
/// Deletes everything that earlier layers have in this folder.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// An image with more than this is treated as an attack.
const MAX_BYTES: u64 = 64 << 30;
const MAX_ENTRIES: usize = 4_000_000;

pub(super) fn apply(layer: impl Read, root: &Path) -> Result<(), ImageError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, root, flags, Mode::empty()).map_err(io::Error::from)?;
    let mut unpacking = Unpacking { root, made: BTreeSet::new(), bytes: 0 };
    for (index, entry) in Archive::new(layer).entries()?.enumerate() {
        let entry = entry?;
        let path = PathBuf::from(OsString::from_vec(entry.path_bytes().into_owned()));
        let taken = if index < MAX_ENTRIES {
            unpacking.take(entry, &path)
        } else {
            Err(invalid("the image is too large"))
        };
        taken.map_err(|e| ImageError::Entry { path: path.display().to_string(), reason: e.to_string() })?;
    }
    Ok(())
}

struct Unpacking {
    root: OwnedFd,
    /// Paths that this layer created. Its own whiteouts do not apply to them.
    made: BTreeSet<PathBuf>,
    bytes: u64,
}

impl Unpacking {
    fn take(&mut self, entry: Entry<'_, impl Read>, path: &Path) -> io::Result<()> {
        let path = relative_path(path)?;
        let (Some(name), Some(above)) = (path.file_name(), path.parent()) else {
            // The root itself, which already exists.
            return Ok(());
        };
        let folder = self.folder(above)?;
        if name.as_bytes() == OPAQUE {
            return self.clear(folder.as_fd(), above);
        }
        if let Some(gone) = name.as_bytes().strip_prefix(WHITEOUT) {
            let gone = OsStr::from_bytes(gone);
            let is_name = !gone.is_empty() && gone != "." && gone != "..";
            return if is_name {
                self.remove_lower(folder.as_fd(), above, gone)
            } else {
                Err(invalid("the whiteout names no file"))
            };
        }
        self.make(entry, folder.as_fd(), name)?;
        self.made.insert(path);
        Ok(())
    }

    fn make(&mut self, entry: Entry<'_, impl Read>, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        let kind = entry.header().entry_type();
        let mode = Mode::from_raw_mode(entry.header().mode().unwrap_or(0o644) & 0o777);
        let link = || entry.link_name_bytes().ok_or_else(|| invalid("a link has no target"));
        if kind.is_dir() {
            make_folder(folder, name, mode)
        } else if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
            self.make_file(entry, folder, name, mode)
        } else if kind.is_symlink() {
            remove(folder, name)?;
            Ok(rustix::fs::symlinkat(&*link()?, folder, name)?)
        } else if kind.is_hard_link() {
            self.make_link(Path::new(OsStr::from_bytes(&link()?)), folder, name)
        } else {
            // The runtime creates devices and pipes; the remaining types are archive metadata.
            Ok(())
        }
    }

    fn make_file(
        &mut self,
        mut entry: Entry<'_, impl Read>,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        mode: Mode,
    ) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(entry.size());
        if self.bytes > MAX_BYTES {
            return Err(invalid("the image is too large"));
        }
        remove(folder, name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        io::copy(&mut entry, &mut file)?;
        Ok(rustix::fs::fchmod(file, mode)?)
    }

    /// Creates a hard link to a file of the image.
    fn make_link(&self, target: &Path, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        let target = relative_path(target)?;
        let (Some(old), Some(above)) = (target.file_name(), target.parent()) else {
            return Err(invalid("a link has no target"));
        };
        let from = self.folder(above)?;
        remove(folder, name)?;
        Ok(rustix::fs::linkat(from, old, folder, name, AtFlags::empty())?)
    }

    /// Opens a folder, and creates it if missing. Symbolic links are resolved inside the image's root.
    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let open = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            rustix::fs::openat2(&self.root, path, flags, Mode::empty(), within)
        };
        match (open(path), path.parent(), path.file_name()) {
            (Err(Errno::NOENT), Some(above), Some(name)) => {
                let above = self.folder(above)?;
                rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755))?;
                Ok(open(path)?)
            }
            (opened, ..) => Ok(opened?),
        }
    }

    /// Removes what earlier layers have in a folder.
    fn clear(&self, folder: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        names(folder)?.into_iter().try_for_each(|name| self.remove_lower(folder, path, &name))
    }

    fn remove_lower(&self, folder: BorrowedFd<'_>, above: &Path, name: &OsStr) -> io::Result<()> {
        let path = above.join(name);
        let has_own_entries =
            self.made.range(path.clone()..).next().is_some_and(|made| made.starts_with(&path));
        if !has_own_entries {
            return remove(folder, name);
        }
        if kind(folder, name)? == Some(FileType::Directory) {
            let below = rustix::fs::openat(
                folder,
                name,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            return self.clear(below.as_fd(), &path);
        }
        Ok(())
    }
}

/// A path of an archive, relative to the root. It must not contain `..`.
fn relative_path(path: &Path) -> io::Result<PathBuf> {
    let mut relative_path = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => relative_path.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(invalid("it leads out of the image")),
        }
    }
    Ok(relative_path)
}

fn make_folder(above: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> io::Result<()> {
    if kind(above, name)? != Some(FileType::Directory) {
        remove(above, name)?;
        rustix::fs::mkdirat(above, name, Mode::RWXU)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(above, name, flags, Mode::empty())?;
    // Keep the folder writable for the owner, so that unpacking can continue and it can be removed later.
    Ok(rustix::fs::fchmod(made, mode | Mode::RWXU)?)
}

fn kind(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<FileType>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Removes an entry by name, without following links.
fn remove(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match kind(folder, name)? {
        None => Ok(()),
        Some(FileType::Directory) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = rustix::fs::openat(folder, name, flags, Mode::empty())?;
            names(below.as_fd())?.iter().try_for_each(|name| remove(below.as_fd(), name))?;
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
        }
        Some(_) => Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?),
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
