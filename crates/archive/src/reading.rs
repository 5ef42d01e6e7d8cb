//! Reads entries to their end and hashes them.

use std::io::{self, Read};

use sha2::{Digest, Sha256};
use shared_types::{ContentHash, INLINE_LIMIT};

pub(super) fn hash_of(hasher: Sha256) -> ContentHash {
    ContentHash(hasher.finalize().into())
}

/// Reads to the end and returns the number of bytes; `visit` receives them chunk by chunk.
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
