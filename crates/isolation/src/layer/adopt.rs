//! Reading and taking over a layer after its cell has ended. The layer no longer changes, so paths that the walk
//! reported can be used safely.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::tree::{is_opaque, names, open_folder};
use super::{Entry, EntryKind, Visit, walk};

/// The direct entries of a layer's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderNames {
    /// The number of entries that are not whiteouts.
    pub kept: usize,
    /// Names of the lower folder that are deleted.
    pub whiteouts: BTreeSet<String>,
    /// True if the lower folder is hidden completely.
    pub opaque: bool,
}

pub fn folder_names(folder: &Path) -> io::Result<FolderNames> {
    use std::os::fd::AsFd;
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Ok(FolderNames::default());
    };
    let above = fs::File::open(above)?;
    let fd = open_folder(above.as_fd(), name)?;
    let mut found = FolderNames { opaque: is_opaque(&fd), ..FolderNames::default() };
    for name in names(fd.as_fd())? {
        let stat = fs::symlink_metadata(folder.join(&name))?;
        match name.into_string() {
            Ok(name) if is_whiteout(&stat) => drop(found.whiteouts.insert(name)),
            Ok(_) | Err(_) => found.kept += 1,
        }
    }
    Ok(found)
}

fn is_whiteout(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_char_device() && found.rdev() == 0
}

/// Makes a file readable by its owner.
pub fn make_readable(file: &Path) {
    if let Ok(found) = fs::symlink_metadata(file)
        && found.is_file()
        && found.mode() & 0o400 == 0
    {
        let _ = fs::set_permissions(file, Permissions::from_mode((found.mode() & 0o777) | 0o400));
    }
}

/// Makes a folder writable by its owner.
pub fn make_writable(folder: &Path) {
    if let Ok(found) = fs::symlink_metadata(folder)
        && found.is_dir()
        && found.mode() & 0o700 != 0o700
    {
        let _ = fs::set_permissions(folder, Permissions::from_mode((found.mode() & 0o777) | 0o700));
    }
}

/// Prepares part of a layer for the workspace: gives it the workspace's owner and removes devices, whiteouts, opaque
/// marks and set-uid bits.
pub fn adopt(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    adopt_entry(path, &found)?;
    if !found.is_dir() {
        return Ok(());
    }
    let mut inside: Vec<Entry> = Vec::new();
    walk(path, &mut |entry| {
        inside.push(entry.clone());
        Visit::Enter
    })?;
    for entry in inside {
        let below = path.join(&entry.path);
        match entry.kind {
            EntryKind::Whiteout | EntryKind::Special => fs::remove_file(&below)?,
            EntryKind::File | EntryKind::Symlink | EntryKind::Folder | EntryKind::OpaqueFolder => {
                adopt_entry(&below, &fs::symlink_metadata(&below)?)?;
            }
        }
    }
    Ok(())
}

fn adopt_entry(path: &Path, found: &fs::Metadata) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(0), Some(0))?;
    }
    if found.is_symlink() {
        return Ok(());
    }
    let needed = if found.is_dir() { 0o700 } else { 0 };
    fs::set_permissions(path, Permissions::from_mode((found.mode() & 0o777) | needed))?;
    if found.is_dir() {
        let _ = rustix::fs::removexattr(path, super::OPAQUE);
    }
    Ok(())
}

/// Bytes on disk at and below a path.
pub fn size(path: &Path) -> u64 {
    let mut total = 0;
    let _ = walk(path, &mut |entry| {
        total += fs::symlink_metadata(path.join(&entry.path)).map_or(0, |found| found.blocks() * 512);
        Visit::Enter
    });
    total
}
