//! From the log to a [`View`]: the newest usable snapshot, then the events after it.

mod read_ahead;

use std::ops::ControlFlow;

use kernel::{VIEW_VERSION, View, evolve};
use shared_types::{Seq, StoredEvent};

use crate::{EventLog, ReadError, SliceSnapshot, Snapshot, decode_event};

/// A snapshot is due after this many changes, or after a quarter of the view's entries if that is more.
const SNAPSHOT_EVERY: u64 = 1000;
const SNAPSHOT_SHARE: u64 = 4;
/// While commands wait, a snapshot is put off until this many times as many changes.
const OVERDUE_FACTOR: u64 = 10;
/// Fewer events than this are replayed faster than a thread is started.
const FEW_EVENTS: u64 = 200;

/// The view at a seq, or at the head if that is earlier.
pub fn view_at(log: &dyn EventLog, at: Seq) -> Result<View, ReadError> {
    // Snapshots are large, so only a suitable one is read; they are disposable, so one that cannot be read is skipped
    // for an earlier one.
    let mut candidates = log.snapshots().unwrap_or_default();
    candidates.retain(|snapshot| snapshot.version == VIEW_VERSION && snapshot.seq <= at);
    let mut view = View::default();
    while let Some(candidate) = candidates.pop() {
        let snapshot = log.snapshot(candidate.seq).ok().flatten();
        if let Some(restored) = snapshot.as_ref().and_then(restore) {
            view = restored;
            break;
        }
    }
    advance(log, &mut view, at)?;
    Ok(view)
}

/// The view replayed from the first event, without snapshots.
pub fn view_from_nothing(log: &dyn EventLog, at: Seq) -> Result<View, ReadError> {
    let mut view = View::default();
    advance(log, &mut view, at)?;
    Ok(view)
}

/// Applies the events after the view's seq, up to another seq.
pub fn advance(log: &dyn EventLog, view: &mut View, to: Seq) -> Result<(), ReadError> {
    let from = view.seq().next();
    let apply = |stored: &StoredEvent<'_>| decode_event(log, stored).map(|event| evolve(view, &event));
    match to.0.saturating_sub(from.0 - 1) {
        0 => Ok(()),
        1..FEW_EVENTS => each_event(log, from, to, apply),
        FEW_EVENTS.. => read_ahead::each_event(log, from, to, apply),
    }
}

/// Visits the events of a range in order, until one cannot be decoded or the log breaks or ends.
fn each_event(
    log: &dyn EventLog,
    from: Seq,
    to: Seq,
    mut visit: impl FnMut(&StoredEvent<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut visited = Ok(());
    log.scan(from, &mut |stored| {
        if stored.seq <= to {
            visited = visit(stored);
        }
        if stored.seq >= to || visited.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    visited
}

fn restore(snapshot: &Snapshot) -> Option<View> {
    if snapshot.version != VIEW_VERSION {
        return None;
    }
    let slice = |name: &str| snapshot.slices.iter().find(|s| s.name == name).map(|s| s.bytes.as_slice());
    let mut view = View::from_slices(snapshot.seq, slice).ok()?;
    (view.root() == snapshot.root).then_some(view)
}

/// Whether a snapshot should be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotNeed {
    None,
    /// Enough has changed since the last one to be worth the bytes of another.
    Due,
    /// So much has changed that it is saved before the next command: opening would be slow without it.
    Overdue,
}

/// Whether it is time for a snapshot of the view. `saved` is `View::changes` at the newest one.
pub fn snapshot_need(view: &View, saved: u64) -> SnapshotNeed {
    let since = view.changes().saturating_sub(saved);
    let worthwhile = SNAPSHOT_EVERY.max(view.weight() as u64 / SNAPSHOT_SHARE);
    if since >= worthwhile * OVERDUE_FACTOR {
        SnapshotNeed::Overdue
    } else if since >= worthwhile {
        SnapshotNeed::Due
    } else {
        SnapshotNeed::None
    }
}

/// The view as a snapshot.
pub fn snapshot_of(view: &mut View) -> Snapshot {
    let slices = view.to_slices().into_iter().map(|s| SliceSnapshot {
        name: s.name.to_owned(),
        root: s.root,
        bytes: s.bytes,
    });
    Snapshot { seq: view.seq(), slices: slices.collect(), root: view.root(), version: VIEW_VERSION }
}
