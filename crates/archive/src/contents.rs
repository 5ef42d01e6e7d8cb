//! Copies contents from an archive into a log.

use event_log::{ContentError, EventLog, Staged};
use shared_types::{ContentHash, INLINE_LIMIT};

use super::open::{Archive, Zip};
use super::{ImportError, Progress};

/// Small contents are stored in groups of at most this many contents and this many bytes.
const GROUP_CONTENTS: usize = 1000;
const GROUP_BYTES: usize = 8 << 20;

/// Copies contents of an archive into a log: small ones in groups, large ones as blobs. Each is checked against its
/// hash again. Returns the number of bytes copied.
pub(super) fn copy_into_log(
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
        if group.len() >= GROUP_CONTENTS || waiting >= GROUP_BYTES {
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
