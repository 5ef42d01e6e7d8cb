//! Reading ahead: a thread scans the log, which checks the chain, while the caller decodes and applies the events.
//!
//! Events are passed in chunks that keep their texts in one buffer, and the buffers are reused, so that a long log
//! costs no allocation per event and no more memory than a few chunks.

use std::borrow::Cow;
use std::mem;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, Builder};

use shared_types::{Seq, StoredEvent};

use crate::{EventLog, ReadError};

/// A chunk is full when it holds this many events or this much text.
const CHUNK_EVENTS: usize = 64;
const CHUNK_TEXT: usize = 64 * 1024;
/// Chunks that may wait for the caller.
const AHEAD: usize = 16;

/// Visits the events of a range in order, until one cannot be decoded or the log breaks or ends.
pub(super) fn each_event(
    log: &dyn EventLog,
    from: Seq,
    to: Seq,
    mut visit: impl FnMut(&StoredEvent<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    thread::scope(|scope| {
        let (full, chunks) = mpsc::sync_channel(AHEAD);
        let (used, spare) = mpsc::channel();
        let reader =
            Builder::new().name("replay".into()).spawn_scoped(scope, || read(log, from, to, full, spare));
        let Ok(reader) = reader else {
            return Err(ReadError::Broken {
                seq: from,
                reason: "no thread could be started to read the log".into(),
            });
        };
        visit_chunks(chunks, &used, &mut visit)?;
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The reader's side. It stops early if the caller has stopped.
fn read(
    log: &dyn EventLog,
    from: Seq,
    to: Seq,
    full: SyncSender<Chunk>,
    spare: Receiver<Chunk>,
) -> Result<(), ReadError> {
    let mut chunk = Chunk::default();
    let scanned = log.scan(from, &mut |stored| {
        if stored.seq > to {
            return ControlFlow::Break(());
        }
        chunk.push(stored);
        if !chunk.is_full() {
            return ControlFlow::Continue(());
        }
        let next = spare.try_recv().unwrap_or_default();
        match full.send(mem::replace(&mut chunk, next)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    // The caller gets the events before a break before it gets the error.
    let _ = full.send(chunk);
    scanned
}

fn visit_chunks(
    chunks: Receiver<Chunk>,
    used: &Sender<Chunk>,
    visit: &mut dyn FnMut(&StoredEvent<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    for mut chunk in chunks {
        chunk.events().try_for_each(|stored| visit(&stored))?;
        chunk.clear();
        let _ = used.send(chunk);
    }
    Ok(())
}

/// Stored events with all their texts in a single buffer.
#[derive(Default)]
struct Chunk {
    texts: String,
    events: Vec<Packed>,
}

/// An event without its texts, and the end of each text in the buffer.
struct Packed {
    event: StoredEvent<'static>,
    name: usize,
    actor: usize,
    taint: usize,
    payload: usize,
}

const NO_TEXT: Cow<'static, str> = Cow::Borrowed("");

impl Chunk {
    fn push(&mut self, stored: &StoredEvent<'_>) {
        let mut end_of = |text: &str| {
            self.texts.push_str(text);
            self.texts.len()
        };
        self.events.push(Packed {
            name: end_of(&stored.name),
            actor: end_of(&stored.actor),
            taint: end_of(&stored.taint),
            payload: end_of(&stored.payload),
            event: StoredEvent {
                seq: stored.seq,
                id: stored.id,
                ts: stored.ts,
                source: stored.source,
                name: NO_TEXT,
                version: stored.version,
                op: stored.op,
                actor: NO_TEXT,
                run_id: stored.run_id,
                cause: stored.cause,
                taint: NO_TEXT,
                payload: NO_TEXT,
                hash: stored.hash,
            },
        });
    }

    fn is_full(&self) -> bool {
        self.events.len() >= CHUNK_EVENTS || self.texts.len() >= CHUNK_TEXT
    }

    fn events(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        let mut start = 0;
        self.events.iter().map(move |packed| {
            let mut text = |end: usize| Cow::Borrowed(&self.texts[mem::replace(&mut start, end)..end]);
            StoredEvent {
                name: text(packed.name),
                actor: text(packed.actor),
                taint: text(packed.taint),
                payload: text(packed.payload),
                ..packed.event.clone()
            }
        })
    }

    fn clear(&mut self) {
        self.texts.clear();
        self.events.clear();
    }
}
