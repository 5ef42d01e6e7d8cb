//! Writes an archive in one streaming pass: events, contents, manifest.
//!
//! Events are replayed while they are written, so the manifest's root is what an import will compute, independent of
//! snapshots. Contents with a pending purge are omitted.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::rc::Rc;

use event_log::replay::advance;
use event_log::{ContentError, EventLog, decode_event, find_hashes, read_content};
use kernel::{EffectKind, VIEW_VERSION, View, evolve};
use sha2::{Digest, Sha256};
use shared_types::{ChainHash, ContentHash, INLINE_LIMIT, Seq, StoredEvent, Timestamp};
use zip::CompressionMethod::{Deflated, Stored};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::entry::Entry;
use super::reading::hash_of;
use super::references::{each_required_content, refers_to_lists};
use super::{ContentsSummary, EventsSummary, ExportError, Limits, Manifest, Progress};

const CHUNK: usize = 256 * 1024;

type Zip<W> = ZipWriter<StreamWriter<StoppableWriter<W>>>;

/// Writes the computer as it was at a seq. After an error the output is incomplete and not a valid archive.
pub fn export(
    log: &dyn EventLog,
    at: Seq,
    created: Timestamp,
    out: impl Write,
    progress: Progress<'_>,
) -> Result<Manifest, ExportError> {
    let head = log.head().seq;
    if at > head {
        return Err(ExportError::NotYet { at, head });
    }
    let is_stopped = Rc::new(Cell::new(false));
    let mut zip = ZipWriter::new_stream(StoppableWriter { out, is_stopped: Rc::clone(&is_stopped) });
    match write_entries(log, at, created, &mut zip, progress) {
        Ok(manifest) => {
            zip.finish()?.into_inner().flush().map_err(ExportError::Write)?;
            Ok(manifest)
        }
        Err(error) => {
            is_stopped.set(true);
            Err(error)
        }
    }
}

/// Discards all output once stopped. Otherwise dropping the zip writer after an error would turn half an export into
/// a valid zip.
struct StoppableWriter<W> {
    out: W,
    is_stopped: Rc<Cell<bool>>,
}

impl<W: Write> Write for StoppableWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_stopped.get() { Ok(bytes.len()) } else { self.out.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_stopped.get() { Ok(()) } else { self.out.flush() }
    }
}

fn options(method: CompressionMethod, wide: bool) -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(method).large_file(wide).unix_permissions(0o644)
}

fn write_entries<W: Write>(
    log: &dyn EventLog,
    at: Seq,
    created: Timestamp,
    zip: &mut Zip<W>,
    progress: Progress<'_>,
) -> Result<Manifest, ExportError> {
    let mut available = HashSet::new();
    log.each_content(&mut |hash, _| {
        available.insert(hash);
    })
    .map_err(ExportError::Contents)?;
    let mut state = ExportState { available, ..ExportState::default() };

    zip.start_file(Entry::EVENTS, options(Deflated, true))?;
    let mut failure = None;
    if at > Seq::ZERO {
        log.scan(Seq(1), &mut |stored| {
            progress(stored.seq.0, at.0 + state.wanted.len() as u64);
            match state.add_event(log, stored, zip) {
                Ok(()) if stored.seq < at => ControlFlow::Continue(()),
                Ok(()) => ControlFlow::Break(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
    }
    failure.map_or(Ok(()), Err)?;

    let root = state.view.root();
    let purge_pending = state.purge_pending(log)?;
    let mut manifest = Manifest {
        format: Manifest::FORMAT.to_owned(),
        version: Manifest::VERSION,
        user: log.user().clone(),
        seq: at,
        hash: state.hash,
        root,
        view: VIEW_VERSION,
        created,
        events: EventsSummary { sha256: hash_of(state.hasher), size: state.size },
        contents: ContentsSummary::default(),
        purged: Vec::new(),
        missing: Vec::new(),
    };
    let wanted = &state.wanted | &state.absent;
    let total = at.0 + wanted.len() as u64;
    for (hash, done) in wanted.iter().zip(at.0 + 1..) {
        let required = state.required.contains(hash);
        let written = match purge_pending.contains(hash) {
            true => WrittenContent::Purged,
            false => write_content(log, hash, zip)?,
        };
        match written {
            WrittenContent::Bytes(size) => {
                manifest.contents.count += 1;
                manifest.contents.size += size;
            }
            WrittenContent::Purged if required => manifest.purged.push(*hash),
            WrittenContent::Missing if required => manifest.missing.push(*hash),
            WrittenContent::Purged | WrittenContent::Missing => {}
        }
        progress(done, total);
    }

    zip.start_file(Entry::MANIFEST, options(Deflated, false))?;
    serde_json::to_writer_pretty(&mut *zip, &manifest).map_err(|e| ExportError::Write(e.into()))?;
    zip.write_all(b"\n").map_err(ExportError::Write)?;
    Ok(manifest)
}

/// Collected while the events are written.
#[derive(Default)]
struct ExportState {
    available: HashSet<ContentHash>,
    /// Available contents that an event refers to.
    wanted: BTreeSet<ContentHash>,
    /// Contents that an event requires, and those of them that are not available.
    required: BTreeSet<ContentHash>,
    absent: BTreeSet<ContentHash>,
    view: View,
    hash: ChainHash,
    hasher: Sha256,
    size: u64,
}

impl ExportState {
    fn add_event<W: Write>(
        &mut self,
        log: &dyn EventLog,
        stored: &StoredEvent<'_>,
        zip: &mut Zip<W>,
    ) -> Result<(), ExportError> {
        let mut line = line_of(stored)?;
        line.push(b'\n');
        zip.write_all(&line).map_err(ExportError::Write)?;
        self.hasher.update(&line);
        self.size += line.len() as u64;
        self.hash = stored.hash;

        let mut referenced = Vec::new();
        find_hashes(stored.payload.as_bytes(), &mut |hash| referenced.push(hash));
        referenced.retain(|hash| self.available.contains(hash));
        if refers_to_lists(stored) {
            for hash in referenced.clone() {
                let list =
                    read_content(log, &hash).map_err(|source| ExportError::Content { hash, source })?;
                find_hashes(&list, &mut |hash| referenced.push(hash));
            }
        }
        self.wanted.extend(referenced.iter().filter(|hash| self.available.contains(*hash)));

        let event = decode_event(log, stored)?;
        each_required_content(&event, &mut |hash| {
            self.required.insert(hash);
            if !self.available.contains(&hash) {
                self.absent.insert(hash);
            }
        });
        evolve(&mut self.view, &event);
        Ok(())
    }

    /// Contents with a pending purge, which may still be stored.
    fn purge_pending(&mut self, log: &dyn EventLog) -> Result<BTreeSet<ContentHash>, ExportError> {
        advance(log, &mut self.view, log.head().seq)?;
        let mut purge_pending = BTreeSet::new();
        for (_, kind) in self.view.pending.iter() {
            match kind {
                EffectKind::DropContents { hashes } => purge_pending.extend(hashes),
                EffectKind::MakeCheckpoint { .. } => {}
            }
        }
        Ok(purge_pending)
    }
}

/// The line of an event, checked to decode to the same event.
fn line_of(stored: &StoredEvent<'_>) -> Result<Vec<u8>, ExportError> {
    let failed = |reason: String| ExportError::Event { seq: stored.seq, reason };
    let line = serde_json::to_vec(stored).map_err(|e| failed(e.to_string()))?;
    let limit = Limits::default().line;
    if line.len() as u64 >= limit {
        return Err(failed(format!("it is {} bytes, but the limit is {limit}", line.len())));
    }
    let back: StoredEvent<'static> = serde_json::from_slice(&line).map_err(|e| failed(e.to_string()))?;
    if line.contains(&b'\n') || back != *stored {
        return Err(failed("its stored form differs from its exported form".into()));
    }
    Ok(line)
}

/// What became of a content that should be written.
enum WrittenContent {
    Bytes(u64),
    Purged,
    Missing,
}

/// Writes one content, unless it is missing or purged.
fn write_content<W: Write>(
    log: &dyn EventLog,
    hash: &ContentHash,
    zip: &mut Zip<W>,
) -> Result<WrittenContent, ExportError> {
    let failed = |source| ExportError::Content { hash: *hash, source };
    let mut reader = match log.content(hash) {
        Ok(reader) => reader,
        Err(ContentError::Purged(_)) => return Ok(WrittenContent::Purged),
        Err(ContentError::Missing(_)) => return Ok(WrittenContent::Missing),
        Err(other) => return Err(failed(other)),
    };
    let read = |e| failed(ContentError::from_read(e));
    let mut start = Vec::new();
    reader.by_ref().take(INLINE_LIMIT as u64 + 1).read_to_end(&mut start).map_err(read)?;
    let small = start.len() <= INLINE_LIMIT;
    let method = if small && is_compressible(&start) { Deflated } else { Stored };
    // The size of a blob is known only at its end, so each entry must allow for a large file.
    zip.start_file(Entry::Content(*hash).to_string(), options(method, !small))?;
    if small {
        // The content is complete: the reader has reached its end.
        zip.write_all(&start).map_err(ExportError::Write)?;
        return Ok(WrittenContent::Bytes(start.len() as u64));
    }
    let mut size = 0;
    let mut chunk = start;
    let mut count = chunk.len();
    while count > 0 {
        zip.write_all(&chunk[..count]).map_err(ExportError::Write)?;
        size += count as u64;
        chunk.resize(CHUNK, 0);
        count = read_some(&mut reader, &mut chunk).map_err(read)?;
    }
    Ok(WrittenContent::Bytes(size))
}

fn read_some(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Guesses from the distribution of byte values: in images and archives it is even.
fn is_compressible(bytes: &[u8]) -> bool {
    if bytes.len() < 64 {
        return false;
    }
    let mut counts = [0_u64; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let sum_of_squares: u64 = counts.iter().map(|count| count * count).sum();
    // Evenly distributed bytes give n²/256 + n; text gives ten times that and more.
    let (n, even) = (bytes.len() as u64, bytes.len() as u64 * bytes.len() as u64 / 256);
    sum_of_squares > even * 3 / 2 + n
}
