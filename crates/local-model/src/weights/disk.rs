//! A partial download. The file only grows at its end, so its content is always a prefix of the complete file.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

use super::FetchError;

/// Free space to leave for other programs and for unpacking a package.
const SPARE: u64 = 128 << 20;

pub(super) fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// The downloaded part of a file, locked against other processes.
#[derive(Debug)]
pub(super) struct PartialFile {
    file: File,
    folder: PathBuf,
    path: PathBuf,
    whole: PathBuf,
    done: u64,
    total: u64,
}

impl PartialFile {
    pub(super) fn open(folder: &Path, whole: &Path, total: u64) -> Result<Self, FetchError> {
        let path = partial_path(whole);
        let failed = |error| FetchError::Disk(path.clone(), error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| FetchError::Busy)?;
        let done = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut partial =
            Self { file, folder: folder.into(), path: path.clone(), whole: whole.into(), done, total };
        if done > total {
            partial.truncate(0).map_err(failed)?;
        }
        Ok(partial)
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that the rest fits on the disk.
    pub(super) fn check_space(&self) -> Result<(), FetchError> {
        let Ok(room) = rustix::fs::statvfs(&self.folder) else { return Ok(()) };
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let needed = (self.total - self.done).saturating_add(SPARE);
        if self.done < self.total && free < needed {
            return Err(FetchError::NoSpace { folder: self.folder.clone(), needed, free });
        }
        Ok(())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)?;
        self.done += bytes.len() as u64;
        Ok(())
    }

    /// Truncates the file to this many bytes.
    pub(super) fn truncate(&mut self, to: u64) -> std::io::Result<()> {
        self.file.set_len(to)?;
        self.file.seek(SeekFrom::Start(to))?;
        self.done = to;
        Ok(())
    }

    /// Verifies the hash and renames the file; deletes it if the hash is wrong.
    pub(super) async fn finish(
        self,
        sha256: &str,
        progress: impl Fn(u64) + Send + 'static,
    ) -> Result<PathBuf, FetchError> {
        let failed = |error| FetchError::Disk(self.path.clone(), error);
        let mut file = self.file.try_clone().map_err(failed)?;
        let hash = tokio::task::spawn_blocking(move || {
            file.sync_data()?;
            hash(&mut file, &progress)
        });
        let found = hash.await.map_err(std::io::Error::other).and_then(|found| found).map_err(failed)?;
        if found != sha256 {
            std::fs::remove_file(&self.path).map_err(failed)?;
            return Err(FetchError::WrongHash { expected: sha256.into(), found });
        }
        std::fs::rename(&self.path, &self.whole).map_err(failed)?;
        // Sync the folder so that the rename survives a power failure.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(self.whole)
    }
}

fn hash(file: &mut File, progress: &dyn Fn(u64)) -> std::io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut done) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        done += count as u64;
        progress(done);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
