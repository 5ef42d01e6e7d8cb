//! The hash of a file on disk, of one state of it: a file that changes while it is read is read again, and one that
//! keeps changing is refused.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::thread;
use std::time::Duration;

use rustix::fs::fstat;
use sha2::{Digest, Sha256};
use shared_types::{ContentHash, ContentRef, FilePath};

use super::{DiskError, Stat, Workspace};

const CHUNK: usize = 256 * 1024;
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(5);

/// The hash and size of the file at a path, and the stat for which they are valid. For a stat cache, read the clock
/// before the call, so that a later change is not missed.
pub fn hash_file(workspace: &Workspace, path: &FilePath) -> Result<(ContentRef, Stat), DiskError> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE * attempt);
        }
        let file = workspace.open_file(path)?;
        if let Some(found) = hash_once(path, file)? {
            return Ok(found);
        }
    }
    Err(DiskError::Busy { path: path.clone() })
}

fn hash_once(path: &FilePath, mut file: File) -> Result<Option<(ContentRef, Stat)>, DiskError> {
    let before = Stat::of(&fstat(&file).map_err(|errno| DiskError::of(path, errno))?);
    let room = usize::try_from(before.size).unwrap_or(CHUNK).saturating_add(1).min(CHUNK);
    let mut buffer = vec![0; room];
    let mut hasher = Sha256::new();
    let mut size = 0;
    // A file that grows faster than it is read must not keep the reader for ever.
    while size <= before.size {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(DiskError::of_io(path, error)),
        }
    }
    let after = Stat::of(&fstat(&file).map_err(|errno| DiskError::of(path, errno))?);
    if before != after || size != after.size {
        return Ok(None);
    }
    let hash = ContentHash(hasher.finalize().into());
    Ok(Some((ContentRef { hash, size }, after)))
}
