//! Folders and files made durable, with errors that name the path.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What could not be done, and where.
#[derive(Debug, Error)]
#[error("cannot {action} {}", .path.display())]
pub(crate) struct DiskError {
    action: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Gives an I/O error its place.
pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    let path = path.to_owned();
    move |source| DiskError { action, path, source }
}

/// A new or renamed entry of a folder survives a power cut only when the folder itself is flushed.
pub(crate) fn sync_folder(path: &Path) -> Result<(), DiskError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(at("flush", path))
}

/// Makes a folder, and those above it, for its owner alone.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), DiskError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at("make", path))
}

/// Removes a file. That it is not there is no failure; the answer says whether it was.
pub(crate) fn remove_file(path: &Path) -> Result<bool, DiskError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(at("remove", path)(e)),
    }
}
