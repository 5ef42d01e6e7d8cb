//! Errors between the projector and the disk, with the path in every message.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use shared_types::FilePath;
use thiserror::Error;

/// Why a workspace cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("the workspace folder {path} cannot be opened")]
    Root { path: PathBuf, source: io::Error },
    #[error("the scratch folder {path} cannot be made or opened")]
    Scratch { path: PathBuf, source: io::Error },
    #[error("{root} and {scratch} are on different file systems; files could not be renamed into place")]
    OtherFileSystem { root: PathBuf, scratch: PathBuf },
}

/// Why a path in the workspace could not be read or changed.
#[derive(Debug, Error)]
pub enum DiskError {
    #[error("{path}: '{at}' is a symbolic link, and links are never followed")]
    LinkInPath { path: FilePath, at: FilePath },
    #[error("{path}: '{at}' is not a folder")]
    NotAFolder { path: FilePath, at: FilePath },
    #[error("{path}: not a regular file")]
    NotAFile { path: FilePath },
    #[error("{path}: there is nothing here")]
    Missing { path: FilePath },
    #[error("{path}: a folder that is not empty is here")]
    FolderInTheWay { path: FilePath },
    #[error("{path}: the link's target '{target}' leaves the workspace")]
    LinkLeaves { path: FilePath, target: Box<str> },
    #[error("{path}: a file should be written, but its content was not given")]
    NoContent { path: FilePath },
    #[error("{path}: the content has {found} bytes instead of {expected}")]
    WrongSize { path: FilePath, expected: u64, found: u64 },
    #[error("{path}: the content to be written cannot be read")]
    Content { path: FilePath, source: io::Error },
    #[error("{path}: it was changed a moment ago")]
    Changed { path: FilePath },
    #[error("{path}: it keeps changing; try again when it is no longer being written")]
    Busy { path: FilePath },
    #[error("{path}: the disk is full, or its quota is used up")]
    Full { path: FilePath },
    #[error("{path}: the disk is read-only")]
    ReadOnly { path: FilePath },
    #[error("{path}: permission denied")]
    Denied { path: FilePath },
    #[error("{path}: it is on another file system than the workspace")]
    OtherFileSystem { path: FilePath },
    #[error("{path}: the disk reports an error")]
    Io { path: FilePath, source: io::Error },
    #[error("the scratch folder cannot be cleaned")]
    Scratch { source: io::Error },
    #[error("the workspace's file system cannot be synced")]
    Sync { source: io::Error },
}

impl DiskError {
    /// The error of a system call on a path.
    pub(crate) fn of(path: &FilePath, errno: Errno) -> Self {
        let path = path.clone();
        match errno {
            Errno::NOSPC | Errno::DQUOT => Self::Full { path },
            Errno::ROFS => Self::ReadOnly { path },
            Errno::ACCESS | Errno::PERM => Self::Denied { path },
            Errno::XDEV => Self::OtherFileSystem { path },
            Errno::NOENT => Self::Missing { path },
            other => Self::Io { path, source: other.into() },
        }
    }

    /// The same for an error of the standard library.
    pub(crate) fn of_io(path: &FilePath, error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::of(path, errno),
            None => Self::Io { path: path.clone(), source: error },
        }
    }

    /// Whether the path cannot exist, because something above it is not a folder.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::LinkInPath { .. } | Self::NotAFolder { .. } | Self::Missing { .. })
    }
}
