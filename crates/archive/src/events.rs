//! Reads the events of an archive line by line, and checks their order and their hash chain.

use std::io::{BufRead, BufReader, Read};

use sha2::{Digest, Sha256};
use shared_types::{ChainHash, Seq, StoredEvent};
use zip::read::ZipFile;

use super::entry::Entry;
use super::open::{Archive, Zip};
use super::reading::hash_of;
use super::source::SourceReader;
use super::{ImportError, Manifest};

/// Yields every event, and an error at the end unless their size, hash and head match the manifest.
pub(super) struct Events<'a> {
    reader: BufReader<ZipFile<'a, SourceReader>>,
    manifest: &'a Manifest,
    limit: u64,
    line: Vec<u8>,
    buffer: Vec<u8>,
    seq: Seq,
    hash: ChainHash,
    hasher: Sha256,
    size: u64,
    ended: bool,
}

impl<'a> Events<'a> {
    pub(super) fn new(archive: &'a Archive, zip: &'a mut Zip) -> Result<Self, ImportError> {
        Ok(Self {
            reader: BufReader::with_capacity(64 * 1024, archive.open_events(zip)?),
            manifest: archive.manifest(),
            limit: archive.limits().line,
            line: Vec::new(),
            buffer: Vec::new(),
            seq: Seq::ZERO,
            hash: ChainHash::default(),
            hasher: Sha256::new(),
            size: 0,
            ended: false,
        })
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.size
    }

    fn advance(&mut self) -> Result<Option<StoredEvent<'static>>, ImportError> {
        let number = self.seq.next().0;
        self.line.clear();
        let read = self.reader.by_ref().take(self.limit).read_until(b'\n', &mut self.line);
        read.map_err(|source| ImportError::Unreadable { name: Entry::EVENTS.into(), source })?;
        if self.line.is_empty() {
            return self.finish().map(|()| None);
        }
        self.size += self.line.len() as u64;
        self.hasher.update(&self.line);
        let wrong = |reason: String| ImportError::Line { line: number, reason };
        let Some(line) = self.line.strip_suffix(b"\n") else {
            let (size, limit) = (self.line.len() as u64, self.limit);
            return Err(match size < limit {
                true => wrong("it has no line end".into()),
                false => ImportError::TooLarge { what: format!("line {number} of the events"), size, limit },
            });
        };
        let event: StoredEvent<'static> = serde_json::from_slice(line).map_err(|e| wrong(e.to_string()))?;
        // Unknown fields would be dropped silently, so the line must be exactly as we write it.
        if serde_json::to_vec(&event).map_err(|e| wrong(e.to_string()))? != line {
            return Err(wrong("it is not in the form that an export writes".into()));
        }
        if event.seq != self.seq.next() {
            return Err(ImportError::Misplaced { line: number, found: event.seq });
        }
        if event.link_into(&self.hash, &mut self.buffer) != event.hash {
            return Err(ImportError::Unlinked { seq: event.seq });
        }
        (self.seq, self.hash) = (event.seq, event.hash);
        Ok(Some(event))
    }

    fn finish(&mut self) -> Result<(), ImportError> {
        let Manifest { seq, hash, events, .. } = self.manifest;
        if self.size != events.size {
            let (declared, found) = (events.size, self.size);
            return Err(ImportError::Size { name: Entry::EVENTS.into(), declared, found });
        }
        if hash_of(std::mem::take(&mut self.hasher)) != events.sha256 {
            return Err(ImportError::EventsHash);
        }
        if self.seq != *seq {
            return Err(ImportError::End { declared: *seq, found: self.seq });
        }
        if self.hash != *hash {
            return Err(ImportError::Head { declared: *hash, found: self.hash });
        }
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<StoredEvent<'static>, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.advance().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}
