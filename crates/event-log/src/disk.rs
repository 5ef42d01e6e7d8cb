//! Durable changes to folders and files, with errors that name the path.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failed action on a path.
#[derive(Debug, Error)]
#[error("cannot {action} {}", .path.display())]
pub(crate) struct DiskError {
    action: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Adds the action and the path to an I/O error.
pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    let path = path.to_owned();
    move |source| DiskError { action, path, source }
}

/// Flushes a folder. A new or renamed entry survives a power cut only after that.
pub(crate) fn sync_folder(path: &Path) -> Result<(), DiskError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(at("flush", path))
}

/// Makes a folder and its parents, accessible to the owner only.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), DiskError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at("make", path))
}

/// Removes a file if it exists. Returns whether it did.
pub(crate) fn remove_file(path: &Path) -> Result<bool, DiskError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(at("remove", path)(e)),
    }
}
