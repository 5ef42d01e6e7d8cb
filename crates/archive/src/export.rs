//! Writing an archive: events, contents, manifest, in one go and without going back.
//!
//! The events are replayed on their way out, so the manifest's root is the one that an import will reach, whatever
//! snapshots say. Bytes that a purge is still to drop are left out as if it had happened.

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
use super::naming::{each_needed, names_lists};
use super::reading::hash_of;
use super::{ContentsSummary, EventsSummary, ExportError, Limits, Manifest, Progress};

const CHUNK: usize = 256 * 1024;

type Zip<W> = ZipWriter<StreamWriter<Gate<W>>>;

/// Writes the computer as it was at a seq. If it fails, what was written is incomplete and no archive.
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
    let shut = Rc::new(Cell::new(false));
    let mut zip = ZipWriter::new_stream(Gate { out, shut: Rc::clone(&shut) });
    match write_entries(log, at, created, &mut zip, progress) {
        Ok(manifest) => {
            zip.finish()?.into_inner().flush().map_err(ExportError::Write)?;
            Ok(manifest)
        }
        Err(error) => {
            shut.set(true);
            Err(error)
        }
    }
}

/// Lets nothing through any more once it is shut: a zip writer that is dropped would else make a whole zip out of half
/// an export.
struct Gate<W> {
    out: W,
    shut: Rc<Cell<bool>>,
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shut.get() { Ok(bytes.len()) } else { self.out.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.shut.get() { Ok(()) } else { self.out.flush() }
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
    let mut here = HashSet::new();
    log.each_content(&mut |hash, _| {
        here.insert(hash);
    })
    .map_err(ExportError::Contents)?;
    let mut pass = Pass { here, ..Pass::default() };

    zip.start_file(Entry::EVENTS, options(Deflated, true))?;
    let mut failure = None;
    if at > Seq::ZERO {
        log.scan(Seq(1), &mut |stored| {
            progress(stored.seq.0, at.0 + pass.wanted.len() as u64);
            match pass.take(log, stored, zip) {
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

    let root = pass.view.root();
    let doomed = pass.doomed(log)?;
    let mut manifest = Manifest {
        format: Manifest::FORMAT.to_owned(),
        version: Manifest::VERSION,
        user: log.user().clone(),
        seq: at,
        hash: pass.hash,
        root,
        view: VIEW_VERSION,
        created,
        events: EventsSummary { sha256: hash_of(pass.hasher), size: pass.size },
        contents: ContentsSummary::default(),
        purged: Vec::new(),
        missing: Vec::new(),
    };
    let wanted = &pass.wanted | &pass.absent;
    let total = at.0 + wanted.len() as u64;
    for (hash, done) in wanted.iter().zip(at.0 + 1..) {
        let needed = pass.needed.contains(hash);
        let written = match doomed.contains(hash) {
            true => Err(ContentError::Purged(*hash)),
            false => write_content(log, hash, zip)?,
        };
        match written {
            Ok(size) => {
                manifest.contents.count += 1;
                manifest.contents.size += size;
            }
            Err(ContentError::Purged(_)) if needed => manifest.purged.push(*hash),
            Err(_) if needed => manifest.missing.push(*hash),
            Err(_) => {}
        }
        progress(done, total);
    }

    zip.start_file(Entry::MANIFEST, options(Deflated, false))?;
    serde_json::to_writer_pretty(&mut *zip, &manifest).map_err(|e| ExportError::Write(e.into()))?;
    zip.write_all(b"\n").map_err(ExportError::Write)?;
    Ok(manifest)
}

/// What is gathered while the events go by.
#[derive(Default)]
struct Pass {
    here: HashSet<ContentHash>,
    /// Contents that are here and named.
    wanted: BTreeSet<ContentHash>,
    /// Contents that an event cannot do without, and those of them that are not here.
    needed: BTreeSet<ContentHash>,
    absent: BTreeSet<ContentHash>,
    view: View,
    hash: ChainHash,
    hasher: Sha256,
    size: u64,
}

impl Pass {
    fn take<W: Write>(
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

        let mut named = Vec::new();
        find_hashes(stored.payload.as_bytes(), &mut |hash| named.push(hash));
        named.retain(|hash| self.here.contains(hash));
        if names_lists(stored) {
            for hash in named.clone() {
                let list =
                    read_content(log, &hash).map_err(|source| ExportError::Content { hash, source })?;
                find_hashes(&list, &mut |hash| named.push(hash));
            }
        }
        self.wanted.extend(named.iter().filter(|hash| self.here.contains(*hash)));

        let event = decode_event(log, stored)?;
        each_needed(&event, &mut |hash| {
            self.needed.insert(hash);
            if !self.here.contains(&hash) {
                self.absent.insert(hash);
            }
        });
        evolve(&mut self.view, &event);
        Ok(())
    }

    /// Contents that are to be dropped and may still be here.
    fn doomed(&mut self, log: &dyn EventLog) -> Result<BTreeSet<ContentHash>, ExportError> {
        advance(log, &mut self.view, log.head().seq)?;
        let mut doomed = BTreeSet::new();
        for (_, kind) in self.view.pending.iter() {
            match kind {
                EffectKind::DropContents { hashes } => doomed.extend(hashes),
                EffectKind::MakeCheckpoint { .. } => {}
            }
        }
        Ok(doomed)
    }
}

/// The line of an event, proven to give the same event back.
fn line_of(stored: &StoredEvent<'_>) -> Result<Vec<u8>, ExportError> {
    let failed = |reason: String| ExportError::Event { seq: stored.seq, reason };
    let line = serde_json::to_vec(stored).map_err(|e| failed(e.to_string()))?;
    let limit = Limits::default().line;
    if line.len() as u64 >= limit {
        return Err(failed(format!("it is {} bytes, the limit is {limit}", line.len())));
    }
    let back: StoredEvent<'static> = serde_json::from_slice(&line).map_err(|e| failed(e.to_string()))?;
    if line.contains(&b'\n') || back != *stored {
        return Err(failed("its stored form is not the one that travels".into()));
    }
    Ok(line)
}

/// Writes one content, or says why it is not here.
fn write_content<W: Write>(
    log: &dyn EventLog,
    hash: &ContentHash,
    zip: &mut Zip<W>,
) -> Result<Result<u64, ContentError>, ExportError> {
    let failed = |source| ExportError::Content { hash: *hash, source };
    let mut reader = match log.content(hash) {
        Ok(reader) => reader,
        Err(absent @ (ContentError::Missing(_) | ContentError::Purged(_))) => return Ok(Err(absent)),
        Err(other) => return Err(failed(other)),
    };
    let read = |e| failed(ContentError::from_read(e));
    let mut start = Vec::new();
    reader.by_ref().take(INLINE_LIMIT as u64 + 1).read_to_end(&mut start).map_err(read)?;
    let small = start.len() <= INLINE_LIMIT;
    let method = if small && is_compressible(&start) { Deflated } else { Stored };
    // How large a blob is shows only at its end, so each may become a wide one.
    zip.start_file(Entry::Content(*hash).to_string(), options(method, !small))?;
    if small {
        // All of it was read: the reader has reached its end.
        zip.write_all(&start).map_err(ExportError::Write)?;
        return Ok(Ok(start.len() as u64));
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
    Ok(Ok(size))
}

fn read_some(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A guess by how evenly the byte values are spread; images and archives are even.
fn is_compressible(bytes: &[u8]) -> bool {
    if bytes.len() < 64 {
        return false;
    }
    let mut counts = [0_u64; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let likeness: u64 = counts.iter().map(|count| count * count).sum();
    // Even bytes come to n²/256 + n; text comes to ten times that and more.
    let (n, even) = (bytes.len() as u64, bytes.len() as u64 * bytes.len() as u64 / 256);
    likeness > even * 3 / 2 + n
}
