//! The lock that makes one process the writer of a log.
//!
//! It is an operating system lock on `.choir/lock`, so it ends with the process, even after a crash. The file holds the
//! owner's process id for error messages; a leftover file without the lock means nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::OpenError;
use crate::disk::at;

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct LogLock {
    _file: File,
}

impl LogLock {
    pub const FILE: &'static str = "lock";

    /// Takes the lock of a `.choir` folder, or returns the process that holds it.
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(Self::FILE);
        let storage = |e| OpenError::Storage(Box::new(at("lock", &path)(e)));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(storage)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { pid: owner(&mut file) }),
            Err(TryLockError::Error(e)) => return Err(storage(e)),
        }
        // The id is only for messages: a full disk must not prevent opening the log.
        let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
        Ok(Self { _file: file })
    }
}

fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
