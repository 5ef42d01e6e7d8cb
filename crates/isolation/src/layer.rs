//! The folder in which an overlay keeps what was written: reading it tells what a command changed, at the cost of
//! what it changed. Everything in it was written by an untrusted command, so no link in it is ever followed.

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
    Whiteout,
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
    let mut each = |found: &Visited<'_>| Ok(visit(&Entry { path: found.path.to_owned(), kind: found.kind }));
    tree::visit(upper, UnreadableFolders::Open, &mut each).map(drop)
}

/// Marks a name of the lower folder as gone.
pub(crate) fn write_whiteout(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0)?)
}

/// What layers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LayerUsage {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    pub(crate) is_disk_full: bool,
    /// There are folders deeper than any path reaches, and nobody knows what is in them.
    pub(crate) is_too_deep: bool,
}

/// Adds layers up, and stops when it is too much. Their commands may be running.
pub(crate) fn measure(uppers: &[PathBuf], bytes: u64, files: u64) -> io::Result<LayerUsage> {
    let mut used = LayerUsage::default();
    for upper in uppers {
        let room = rustix::fs::statvfs(upper)?;
        used.is_disk_full |= room.f_bavail.saturating_mul(room.f_frsize) < RESERVE;
        let coverage = tree::visit(upper, UnreadableFolders::OpenTemporarily, &mut |found| {
            used.files += 1;
            let number = |value: i64| u64::try_from(value).unwrap_or_default();
            let (blocks, length) = (number(found.stat.st_blocks), number(found.stat.st_size));
            // A file of holes takes no room here, but it would in the log.
            used.bytes = used.bytes.saturating_add(blocks.saturating_mul(512).max(length));
            Ok(if used.bytes > bytes || used.files > files { Visit::End } else { Visit::Enter })
        })?;
        used.is_too_deep |= coverage == Coverage::DepthLimited;
    }
    Ok(used)
}
