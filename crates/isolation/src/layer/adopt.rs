//! Handling a layer once its cell is gone: nobody changes it any more, so its own folders can be trusted as far as
//! the walk reported them.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::tree::{is_opaque, names, open_folder};
use super::{Entry, EntryKind, Visit, walk};

/// What stands directly in a folder of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderNames {
    /// How many things are there.
    pub kept: usize,
    /// Names of the lower folder that are gone.
    pub whiteouts: BTreeSet<String>,
    /// True if nothing of the lower folder shows through.
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

/// Lets its owner read a file that the command closed to everybody.
pub fn make_readable(file: &Path) {
    if let Ok(found) = fs::symlink_metadata(file)
        && found.is_file()
        && found.mode() & 0o400 == 0
    {
        let _ = fs::set_permissions(file, Permissions::from_mode((found.mode() & 0o777) | 0o400));
    }
}

/// Lets its owner change a folder that the command closed to everybody.
pub fn make_writable(folder: &Path) {
    if let Ok(found) = fs::symlink_metadata(folder)
        && found.is_dir()
        && found.mode() & 0o700 != 0o700
    {
        let _ = fs::set_permissions(folder, Permissions::from_mode((found.mode() & 0o777) | 0o700));
    }
}

/// Makes a part of a layer fit for the workspace: owned by whoever owns that, without devices, marks or special bits.
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
