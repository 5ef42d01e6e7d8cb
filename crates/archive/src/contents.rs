//! Contents on their way between an archive and a log.

use std::io::{self, Read};

use event_log::{ContentError, EventLog, Staged};
use sha2::{Digest, Sha256};
use shared_types::{ContentHash, INLINE_LIMIT};

use super::open::{Archive, Zip};
use super::{ImportError, Progress};

/// Small contents are handed over in groups of at most this many, and this many bytes.
const GROUP: usize = 1000;
const GROUP_BYTES: usize = 8 << 20;

pub(super) fn hash_of(hasher: Sha256) -> ContentHash {
    ContentHash(hasher.finalize().into())
}

/// Reads to the end and returns how much it was; `visit` gets the bytes piece by piece.
pub(super) fn drain(reader: &mut dyn Read, visit: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
    let mut chunk = vec![0; INLINE_LIMIT];
    let mut size = 0;
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(size),
            Ok(count) => {
                visit(&chunk[..count]);
                size += count as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Takes contents of an archive into a log: small ones in groups, large ones as blobs. Every one is checked against
/// its hash again. Returns the bytes taken in.
pub(super) fn take_in(
    archive: &Archive,
    log: &dyn EventLog,
    hashes: impl Iterator<Item = ContentHash>,
    progress: Progress<'_>,
    total: u64,
) -> Result<u64, ImportError> {
    let mut zip = archive.zip();
    let mut group = Vec::new();
    let mut waiting = 0;
    let mut done = 0;
    for hash in hashes {
        let Some(size) = archive.content_size(&hash) else { continue };
        if size > INLINE_LIMIT as u64 {
            stage(archive, &mut zip, log, hash)?;
        } else {
            let bytes = archive.read_content(&mut zip, hash)?;
            waiting += bytes.len();
            group.push((hash, bytes));
        }
        if group.len() >= GROUP || waiting >= GROUP_BYTES {
            log.store(std::mem::take(&mut group)).map_err(ImportError::Contents)?;
            waiting = 0;
        }
        done += size;
        progress(done, total);
    }
    if !group.is_empty() {
        log.store(group).map_err(ImportError::Contents)?;
    }
    Ok(done)
}

fn stage(archive: &Archive, zip: &mut Zip, log: &dyn EventLog, hash: ContentHash) -> Result<(), ImportError> {
    let mut reader = archive.open_content(zip, hash)?;
    match log.stage(&mut reader) {
        Ok(Staged::Blob { content }) if content.hash == hash => Ok(()),
        Ok(_) => Err(ImportError::WrongContent(hash)),
        Err(source @ ContentError::Storage(_)) => Err(ImportError::Content { hash, source }),
        Err(_) => Err(ImportError::WrongContent(hash)),
    }
}
