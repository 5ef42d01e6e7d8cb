//! Opens an archive: reads its directory and its manifest, and checks that they agree.
//!
//! Nothing here is trusted: [`verify`](super::verify) and every import check sizes against the unpacked bytes, and
//! contents against their hashes, again.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};
use shared_types::{ContentHash, INLINE_LIMIT};
use zip::read::{ArchiveOffset, Config, ZipFile, ZipFileEntry};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::entry::Entry;
use super::reading::{drain, hash_of};
use super::source::SourceReader;
use super::{ContentsSummary, EntryFault, ImportError, Limits, Manifest, Source};

pub(super) type Zip = ZipArchive<SourceReader>;

/// An archive with only allowed entries. Their bytes are not checked yet.
#[derive(Debug)]
pub struct Archive {
    zip: Zip,
    events: usize,
    contents: BTreeMap<ContentHash, ContentEntry>,
    manifest: Manifest,
    limits: Limits,
    size: u64,
}

/// The index of a content in the zip's directory, and its declared size.
#[derive(Debug, Clone, Copy)]
struct ContentEntry {
    index: usize,
    size: u64,
}

impl Archive {
    /// Reads the directory and the manifest.
    pub fn open(source: impl Source + 'static, limits: Limits) -> Result<Self, ImportError> {
        let unreadable = |e| ImportError::Zip(ZipError::Io(e));
        let reader = SourceReader::start(Arc::new(source), limits.directory).map_err(unreadable)?;
        let (size, budget) = (reader.size(), reader.budget());
        // A fixed offset avoids a search, and rejects bytes before the first entry.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut zip = ZipArchive::with_config(config, reader).map_err(ImportError::Zip)?;
        budget.store(u64::MAX, Ordering::Relaxed);
        if zip.has_duplicate_names() {
            return Err(ImportError::Duplicate);
        }
        if !zip.comment().is_empty() {
            return Err(ImportError::Stray("a comment"));
        }
        let mut directory = DirectoryIndex::default();
        for index in 0..zip.len() {
            directory.add(index, &zip.by_index_data(index).map_err(ImportError::Zip)?)?;
        }
        zip.validate_header_consistency().map_err(ImportError::Zip)?;

        let manifest = directory.manifest.ok_or(ImportError::NoEntry(Entry::MANIFEST))?;
        let events = directory.events.ok_or(ImportError::NoEntry(Entry::EVENTS))?;
        let manifest = Manifest::parse(&read_manifest(&mut zip, manifest, &limits)?)?;
        let archive = Self { zip, events, contents: directory.contents, manifest, limits, size };
        archive.check_totals()?;
        Ok(archive)
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of the file itself.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// An independent reader, to be used while another one is open.
    pub(super) fn zip(&self) -> Zip {
        self.zip.clone()
    }

    /// The contents that the archive holds, sorted.
    pub(super) fn contents(&self) -> impl Iterator<Item = ContentHash> {
        self.contents.keys().copied()
    }

    pub(super) fn content_size(&self, hash: &ContentHash) -> Option<u64> {
        self.contents.get(hash).map(|entry| entry.size)
    }

    pub(super) fn open_events<'z>(&self, zip: &'z mut Zip) -> Result<ZipFile<'z, SourceReader>, ImportError> {
        zip.by_index(self.events).map_err(ImportError::Zip)
    }

    pub(super) fn open_content<'z>(
        &self,
        zip: &'z mut Zip,
        hash: ContentHash,
    ) -> Result<ZipFile<'z, SourceReader>, ImportError> {
        let entry = self.contents.get(&hash).ok_or(ImportError::WrongContent(hash))?;
        zip.by_index(entry.index).map_err(ImportError::Zip)
    }

    /// A complete content, checked against its hash. Only for contents of limited size.
    pub(super) fn read_content(&self, zip: &mut Zip, hash: ContentHash) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        self.check_content(zip, hash, &mut |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    /// Reads a content to its end and checks its size and its hash.
    pub(super) fn check_content(
        &self,
        zip: &mut Zip,
        hash: ContentHash,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ImportError> {
        let name = || Entry::Content(hash).to_string();
        let mut hasher = Sha256::new();
        let mut reader = self.open_content(zip, hash)?;
        let declared = reader.size();
        let found = drain(&mut reader, &mut |piece| {
            hasher.update(piece);
            visit(piece);
        })
        .map_err(|source| ImportError::Unreadable { name: name(), source })?;
        if found != declared {
            return Err(ImportError::Size { name: name(), declared, found });
        }
        if hash_of(hasher) == hash { Ok(()) } else { Err(ImportError::WrongContent(hash)) }
    }

    fn check_totals(&self) -> Result<(), ImportError> {
        let declared = self.manifest.contents;
        let size = self.contents.values().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        let found = ContentsSummary { count: self.contents.len() as u64, size };
        let sum = |what, declared, found| match declared == found {
            true => Ok(()),
            false => Err(ImportError::Sum { what, declared, found }),
        };
        sum("the number of contents", declared.count, found.count)?;
        sum("the size of all contents", declared.size, found.size)?;
        let events = self.zip.by_index_data(self.events).map_err(ImportError::Zip)?;
        sum("the size of log/events.jsonl", self.manifest.events.size, events.size())?;
        let limit = self.limits.unpacked(events.compressed_size());
        if events.size() > limit {
            let what = format!("{}, unpacked,", Entry::EVENTS);
            return Err(ImportError::TooLarge { what, size: events.size(), limit });
        }
        match self.manifest.absent().find(|hash| self.contents.contains_key(hash)) {
            Some(hash) => Err(ImportError::NotAbsent(hash)),
            None => Ok(()),
        }
    }
}

/// The entries of the directory, by kind.
#[derive(Default)]
struct DirectoryIndex {
    events: Option<usize>,
    manifest: Option<usize>,
    contents: BTreeMap<ContentHash, ContentEntry>,
}

impl DirectoryIndex {
    fn add(&mut self, index: usize, found: &ZipFileEntry<'_>) -> Result<(), ImportError> {
        let refuse = |fault| {
            let name = found.name_raw().escape_ascii().to_string().chars().take(200).collect();
            Err(ImportError::Entry { name, fault })
        };
        let Some(entry) = Entry::parse(found.name_raw()) else { return refuse(EntryFault::Name) };
        if found.encrypted() {
            return refuse(EntryFault::Encrypted);
        }
        if found.is_dir() || found.is_symlink() {
            return refuse(EntryFault::Kind);
        }
        if !found.comment().is_empty() {
            return refuse(EntryFault::Comment);
        }
        let (method, size) = (found.compression(), found.size());
        if method == CompressionMethod::Stored {
            if found.compressed_size() != size {
                return refuse(EntryFault::Stored);
            }
        } else if method != CompressionMethod::Deflated {
            return refuse(EntryFault::Method);
        } else if matches!(entry, Entry::Content(_)) && size > INLINE_LIMIT as u64 {
            return refuse(EntryFault::Deflated);
        }
        match entry {
            Entry::Events => self.events = Some(index),
            Entry::Manifest => self.manifest = Some(index),
            Entry::Content(hash) => {
                self.contents.insert(hash, ContentEntry { index, size });
            }
        }
        Ok(())
    }
}

fn read_manifest(zip: &mut Zip, index: usize, limits: &Limits) -> Result<Vec<u8>, ImportError> {
    let too_large =
        |size| ImportError::TooLarge { what: Entry::MANIFEST.into(), size, limit: limits.manifest };
    let file = zip.by_index(index).map_err(ImportError::Zip)?;
    let declared = file.size();
    if declared > limits.manifest {
        return Err(too_large(declared));
    }
    let mut bytes = Vec::new();
    file.take(limits.manifest + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| ImportError::Unreadable { name: Entry::MANIFEST.into(), source })?;
    match bytes.len() as u64 {
        found if found == declared => Ok(bytes),
        found => Err(ImportError::Size { name: Entry::MANIFEST.into(), declared, found }),
    }
}
