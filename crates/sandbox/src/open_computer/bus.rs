//! The newest events as text, read from the log once and shared by all tabs.
//!
//! Nothing here waits for a tab: each tab asks for the events after the last one that it was sent, and reads from the
//! log what the bus no longer has. So a slow tab never slows the writer or another tab.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event_log::{EventLog, ReadError};
use shared_types::{Seq, StoredEvent};
use tokio::sync::watch;

/// How many events are kept, and how many bytes of them.
const MAX_EVENTS: usize = 1024;
const MAX_BYTES: usize = 4 << 20;
/// How many events a tab gets at once.
const CHUNK: usize = 256;

/// The newest events, and the positions of the log and the projector.
#[derive(Debug)]
pub struct EventBus {
    newest: Mutex<EventBuffer>,
    head: watch::Sender<Seq>,
    /// The newest event of a run.
    runs: watch::Sender<Seq>,
    projected: watch::Sender<Seq>,
}

#[derive(Debug, Default)]
struct EventBuffer {
    events: VecDeque<(Seq, Arc<str>)>,
    bytes: usize,
}

/// Events in a row, with the seq of the last.
pub type Backlog = Vec<(Seq, Arc<str>)>;

impl EventBus {
    pub(super) fn new(head: Seq) -> Self {
        Self {
            newest: Mutex::default(),
            head: watch::Sender::new(head),
            runs: watch::Sender::new(head),
            projected: watch::Sender::new(Seq::ZERO),
        }
    }

    /// Changes whenever there are new events.
    pub fn head(&self) -> watch::Receiver<Seq> {
        self.head.subscribe()
    }

    /// Changes whenever there are new events of runs.
    pub(super) fn runs(&self) -> watch::Receiver<Seq> {
        self.runs.subscribe()
    }

    pub(super) fn projected(&self) -> watch::Receiver<Seq> {
        self.projected.subscribe()
    }

    pub(super) fn set_projected(&self, seq: Seq) {
        self.projected.send_if_modified(|known| std::mem::replace(known, seq.max(*known)) != seq);
    }

    fn newest(&self) -> MutexGuard<'_, EventBuffer> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads new events from the log and notifies all tabs.
    pub(super) fn fill(&self, log: &dyn EventLog) -> Result<(), ReadError> {
        let from = self.head.borrow().next();
        let mut of_run = None;
        let read = read_after(log, from, usize::MAX, |stored| {
            if stored.run_id.is_some() {
                of_run = Some(stored.seq);
            }
        })?;
        let Some((last, _)) = read.last() else { return Ok(()) };
        let last = *last;
        let mut newest = self.newest();
        for (seq, text) in read {
            newest.bytes += text.len();
            newest.events.push_back((seq, text));
            while newest.events.len() > MAX_EVENTS || newest.bytes > MAX_BYTES {
                let Some((_, old)) = newest.events.pop_front() else { break };
                newest.bytes -= old.len();
            }
        }
        drop(newest);
        self.head.send_replace(last);
        if let Some(seq) = of_run {
            self.runs.send_replace(seq);
        }
        Ok(())
    }

    /// A chunk of the events after a seq, from memory if they are there, otherwise from the log. This may block.
    pub fn after(&self, log: &dyn EventLog, seq: Seq) -> Result<Backlog, ReadError> {
        let head = *self.head.borrow();
        if seq >= head {
            return Ok(Backlog::new());
        }
        let newest = self.newest();
        if let Some((first, _)) = newest.events.front()
            && *first <= seq.next()
        {
            let skip = usize::try_from(seq.next().0 - first.0).unwrap_or(usize::MAX);
            return Ok(newest.events.iter().skip(skip).take(CHUNK).cloned().collect());
        }
        drop(newest);
        let mut read = read_after(log, seq.next(), CHUNK, |_| ())?;
        read.retain(|(seq, _)| *seq <= head);
        Ok(read)
    }
}

fn read_after(
    log: &dyn EventLog,
    from: Seq,
    count: usize,
    mut visit: impl FnMut(&StoredEvent<'_>),
) -> Result<Backlog, ReadError> {
    let mut read = Backlog::new();
    log.scan(from, &mut |stored| {
        visit(stored);
        // A stored event always has a JSON form.
        let text = serde_json::to_string(stored).unwrap_or_default();
        read.push((stored.seq, text.into()));
        if read.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(read)
}
