//! From the log to a [`View`]: the newest usable snapshot, then the events after it.

mod ahead;

use std::ops::ControlFlow;

use kernel::{VIEW_VERSION, View, evolve};
use shared_types::{Seq, StoredEvent};

use crate::{EventLog, ReadError, SliceSnapshot, Snapshot, understand};

/// A snapshot is due after this many changes, or a share of what it would hold if that is more.
const SNAPSHOT_EVERY: u64 = 1000;
const SNAPSHOT_SHARE: u64 = 4;
/// While commands wait, it may come this many times as late.
const SNAPSHOT_PATIENCE: u64 = 10;
/// So many are replayed in the time that it takes to start a thread.
const FEW_EVENTS: u64 = 200;

/// The state at a seq, or at the head.
pub fn view_at(log: &dyn EventLog, at: Seq) -> Result<View, ReadError> {
    // They are large, so only those that may be of use are read; and disposable, so one that cannot be read or used is
    // passed over for an earlier one.
    let mut places = log.snapshots().unwrap_or_default();
    places.retain(|place| place.version == VIEW_VERSION && place.seq <= at);
    let mut view = View::default();
    while let Some(place) = places.pop() {
        let snapshot = log.snapshot(place.seq).ok().flatten();
        if let Some(restored) = snapshot.as_ref().and_then(restore) {
            view = restored;
            break;
        }
    }
    advance(log, &mut view, at)?;
    Ok(view)
}

/// The state computed from the first event on, trusting no snapshot.
pub fn view_from_nothing(log: &dyn EventLog, at: Seq) -> Result<View, ReadError> {
    let mut view = View::default();
    advance(log, &mut view, at)?;
    Ok(view)
}

/// Applies the events after the view's own, up to a seq.
pub fn advance(log: &dyn EventLog, view: &mut View, to: Seq) -> Result<(), ReadError> {
    let from = view.seq().next();
    let apply = |stored: &StoredEvent<'_>| understand(log, stored).map(|event| evolve(view, &event));
    match to.0.saturating_sub(from.0 - 1) {
        0 => Ok(()),
        1..FEW_EVENTS => each_event(log, from, to, apply),
        FEW_EVENTS.. => ahead::each_event(log, from, to, apply),
    }
}

/// Visits the events of a range in order, until one cannot be understood or the log breaks or ends.
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

/// How much a snapshot is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotNeed {
    None,
    /// Enough has happened since the last one for the next to be worth its bytes.
    Due,
    /// So much has happened that somebody should wait for it: the next opening would be slow.
    Overdue,
}

/// Whether it is time for a snapshot of the view, when the newest one holds so many of its changes.
pub fn snapshot_need(view: &View, saved: u64) -> SnapshotNeed {
    let since = view.changes().saturating_sub(saved);
    let worthwhile = SNAPSHOT_EVERY.max(view.weight() as u64 / SNAPSHOT_SHARE);
    if since >= worthwhile * SNAPSHOT_PATIENCE {
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
