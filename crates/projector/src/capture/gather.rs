//! Small contents that a capture collects for the log.

use std::collections::BTreeSet;

use event_log::{EventLog, Staged};
use shared_types::ContentHash;

use crate::error::ProjectError;

/// The contents are stored in the log when they reach this size, so that memory stays bounded.
const FLUSH_AT: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct GatheredContents {
    pub(super) contents: Vec<(ContentHash, Vec<u8>)>,
    hashes: BTreeSet<ContentHash>,
    bytes: usize,
}

impl GatheredContents {
    pub(super) fn has(&self, hash: &ContentHash) -> bool {
        self.hashes.contains(hash)
    }

    pub(super) fn add(&mut self, log: &dyn EventLog, staged: Staged) -> Result<(), ProjectError> {
        let Some((hash, bytes)) = staged.into_inline() else { return Ok(()) };
        if self.hashes.insert(hash) {
            self.bytes += bytes.len();
            self.contents.push((hash, bytes));
        }
        if self.bytes > FLUSH_AT {
            log.store(std::mem::take(&mut self.contents))?;
            self.bytes = 0;
            self.hashes.clear();
        }
        Ok(())
    }
}
