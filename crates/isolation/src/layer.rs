//! The upper folder of an overlay mount. It holds exactly what a command changed, so reading it costs as much as the
//! change. An untrusted command wrote everything in it, so no symbolic link in it is ever followed.

mod adopt;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

pub use adopt::{FolderNames, adopt, folder_names, make_readable, make_writable, size};
pub use tree::remove;
use tree::{Coverage, UnreadableFolders, Visited};

use crate::policy::{Access, Policy};

/// The attribute by which the kernel marks an opaque folder. The overlay is mounted with `userxattr`, so that
/// unprivileged users can mount it too.
const OPAQUE: &str = "user.overlay.opaque";
/// A disk with fewer free bytes than this counts as full.
pub(crate) const RESERVE: u64 = 256 << 20;

/// The upper folders of a policy's layered mounts, in order.
pub(crate) fn uppers(policy: &Policy) -> Vec<PathBuf> {
    let layered = policy.mounts.iter().filter_map(|mount| match &mount.access {
        Access::Layered { upper, .. } => Some(upper.clone()),
        Access::ReadOnly | Access::Direct => None,
    });
    layered.collect()
}

/// Flushes the file system of a layer to disk. The overlay is mounted `volatile`, so a command's own fsync has no
/// effect.
pub fn flush(layer: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(layer)?)?)
}

/// An entry of a layer.
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
    /// A folder merged with the lower folder.
    Folder,
    /// A folder that hides the lower folder.
    OpaqueFolder,
    /// Marks an entry of the lower folder as deleted.
    Whiteout,
    /// A fifo, a socket or a device.
    Special,
}

/// How to continue after visiting an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Descend, if the entry is a folder.
    Enter,
    Skip,
    End,
}

/// Visits every entry of a layer, each folder before its contents, in no particular order. Folders that are not
/// readable by their owner are made readable; folders below the maximum depth are skipped.
pub fn walk(upper: &Path, visit: &mut dyn FnMut(&Entry) -> Visit) -> io::Result<()> {
    let mut each = |found: &Visited<'_>| Ok(visit(&Entry { path: found.path.to_owned(), kind: found.kind }));
    tree::visit(upper, UnreadableFolders::Open, &mut each).map(drop)
}

/// Creates a whiteout, which hides an entry of the lower folder.
pub(crate) fn write_whiteout(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0)?)
}

/// The space that layers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LayerUsage {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    pub(crate) is_disk_full: bool,
    /// Some folders are below the maximum depth and were not measured.
    pub(crate) is_too_deep: bool,
}

/// Measures layers while their commands may be running; stops early once a limit is exceeded.
pub(crate) fn measure(uppers: &[PathBuf], bytes: u64, files: u64) -> io::Result<LayerUsage> {
    let mut used = LayerUsage::default();
    for upper in uppers {
        let room = rustix::fs::statvfs(upper)?;
        used.is_disk_full |= room.f_bavail.saturating_mul(room.f_frsize) < RESERVE;
        let coverage = tree::visit(upper, UnreadableFolders::OpenTemporarily, &mut |found| {
            used.files += 1;
            let number = |value: i64| u64::try_from(value).unwrap_or_default();
            let (blocks, length) = (number(found.stat.st_blocks), number(found.stat.st_size));
            // A sparse file uses little disk space, but its full length would go into the log.
            used.bytes = used.bytes.saturating_add(blocks.saturating_mul(512).max(length));
            Ok(if used.bytes > bytes || used.files > files { Visit::End } else { Visit::Enter })
        })?;
        used.is_too_deep |= coverage == Coverage::DepthLimited;
    }
    Ok(used)
}
