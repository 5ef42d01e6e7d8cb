//! The folder in which an overlay keeps what was written: reading it tells what a command changed, at the cost of
//! what it changed. Everything in it was written by an untrusted command, so no link in it is ever followed.

mod care;
mod tree;

use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

pub use care::{FolderNames, folder_names, make_ours, make_readable, make_writable, size};
pub use tree::remove;
use tree::{Closed, Found, Seen};

use crate::policy::{Access, Policy};

/// How the kernel marks a folder that hides what was below it. The mount says `userxattr`, so that an ordinary user
/// can lay it, too.
const OPAQUE: &str = "user.overlay.opaque";
/// A disk with less room than this is full.
pub(crate) const RESERVE: u64 = 256 << 20;

/// The layered folders of a policy, in its order.
pub(crate) fn uppers(policy: &Policy) -> Vec<PathBuf> {
    let layered = policy.mounts.iter().filter_map(|mount| match &mount.access {
        Access::Layered { upper, .. } => Some(upper.clone()),
        Access::ReadOnly | Access::Direct => None,
    });
    layered.collect()
}

/// Makes a layer and what lies beside it durable. Nothing else does: its commands wait for no disk, whatever they ask for.
pub fn flush(layer: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(layer)?)?)
}

/// Something that stands in a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the layer.
    pub path: PathBuf,
    pub kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Symlink,
    /// A folder; what the lower one holds shows through.
    Folder,
    /// A folder that hides what the lower one holds.
    OpaqueFolder,
    /// What the lower folder holds here is gone.
    Gone,
    /// A fifo, a socket or a device.
    Special,
}

/// What to do after an entry was visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Go into it, if it is a folder.
    Enter,
    Skip,
    End,
}

/// Visits everything in a layer, a folder before what is in it. Names come as they are, in any order. Folders that are
/// closed to their owner are opened; those too deep for any path are passed over.
pub fn walk(upper: &Path, visit: &mut dyn FnMut(&Entry) -> Visit) -> io::Result<()> {
    let mut each = |found: &Found<'_>| Ok(visit(&Entry { path: found.path.to_owned(), kind: found.kind }));
    tree::visit(upper, Closed::Open, &mut each).map(drop)
}

/// Marks a name of the lower folder as gone.
pub(crate) fn mark_gone(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0)?)
}

/// What layers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Used {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    pub(crate) is_disk_full: bool,
    /// There are folders deeper than any path reaches, and nobody knows what is in them.
    pub(crate) is_too_deep: bool,
}

/// Adds layers up, and stops when it is too much. Their commands may be running.
pub(crate) fn measure(uppers: &[PathBuf], bytes: u64, files: u64) -> io::Result<Used> {
    let mut used = Used::default();
    for upper in uppers {
        let room = rustix::fs::statvfs(upper)?;
        used.is_disk_full |= room.f_bavail.saturating_mul(room.f_frsize) < RESERVE;
        let seen = tree::visit(upper, Closed::OpenAndClose, &mut |found| {
            used.files += 1;
            let number = |value: i64| u64::try_from(value).unwrap_or_default();
            let (blocks, length) = (number(found.stat.st_blocks), number(found.stat.st_size));
            // A file of holes takes no room here, but it would in the log.
            used.bytes = used.bytes.saturating_add(blocks.saturating_mul(512).max(length));
            Ok(if used.bytes > bytes || used.files > files { Visit::End } else { Visit::Enter })
        })?;
        used.is_too_deep |= seen == Seen::NotTheDepths;
    }
    Ok(used)
}

/// Copies layers into folders numbered in order.
pub(crate) fn copy_all(uppers: &[PathBuf], into: &Path) -> io::Result<()> {
    for (index, upper) in uppers.iter().enumerate() {
        let target = into.join(index.to_string());
        fs::create_dir_all(&target)?;
        copy(upper, &target)?;
    }
    Ok(())
}

/// Replaces what layers hold by what was copied. Their cell is gone.
pub(crate) fn put_back(from: &Path, uppers: &[PathBuf]) -> io::Result<()> {
    for (index, upper) in uppers.iter().enumerate() {
        for entry in fs::read_dir(upper)? {
            let path = entry?.path();
            if fs::symlink_metadata(&path)?.is_dir() { remove(&path)? } else { fs::remove_file(&path)? }
        }
        copy(&from.join(index.to_string()), upper)?;
    }
    Ok(())
}

/// Copies what is in a folder. A process that was left behind may change it meanwhile, so everything is taken from
/// the folder in which it was found, and never by its path.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut each = |found: &Found<'_>| copy_one(found, &to.join(found.path)).map(|()| Visit::Enter);
    tree::visit(from, Closed::OpenAndClose, &mut each).map(drop)
}

fn copy_one(found: &Found<'_>, to: &Path) -> io::Result<()> {
    match found.kind {
        EntryKind::File => drop(io::copy(&mut tree::open_file(found)?, &mut fs::File::create(to)?)?),
        EntryKind::Symlink => {
            let target = rustix::fs::readlinkat(found.folder, found.name, Vec::new())?;
            std::os::unix::fs::symlink(OsStr::from_bytes(target.to_bytes()), to)?;
        }
        EntryKind::Folder => fs::create_dir(to)?,
        EntryKind::OpaqueFolder => {
            fs::create_dir(to)?;
            rustix::fs::setxattr(to, OPAQUE, b"y", rustix::fs::XattrFlags::empty())?;
        }
        EntryKind::Gone => return mark_gone(to),
        EntryKind::Special => return Ok(()),
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(to, Some(found.stat.st_uid), Some(found.stat.st_gid))?;
    }
    let mode = found.stat.st_mode & 0o777;
    match found.kind {
        EntryKind::File => fs::set_permissions(to, Permissions::from_mode(mode)),
        // What comes into it has to get in.
        EntryKind::Folder | EntryKind::OpaqueFolder => {
            fs::set_permissions(to, Permissions::from_mode(mode | 0o700))
        }
        EntryKind::Symlink | EntryKind::Gone | EntryKind::Special => Ok(()),
    }
}

/// True if something is what the log cannot hold and no folder should.
pub fn is_special(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
}
