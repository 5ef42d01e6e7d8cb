//! From the log to a [`View`]: the newest usable snapshot, then the events after it.

use std::ops::ControlFlow;

use kernel::{View, evolve};
use shared_types::{Seq, StoredEvent};

use crate::{EventLog, ReadError, SliceSnapshot, Snapshot, understand};

/// A snapshot is due after this many events, or a share of what it would hold if that is more.
const SNAPSHOT_EVERY: u64 = 1000;
const SNAPSHOT_SHARE: u64 = 4;
/// While commands wait, it may come this many times as late.
const SNAPSHOT_PATIENCE: u64 = 10;

/// The state at a seq, or at the head.
pub fn view_at(log: &dyn EventLog, at: Seq) -> Result<View, ReadError> {
    let mut limit = at;
    let mut view = loop {
        match log.snapshot(limit)? {
            None => break View::default(),
            Some(snapshot) => match restore(&snapshot) {
                Some(view) => break view,
                // Snapshots are disposable: an unusable one is passed over for an earlier one.
                None if snapshot.seq.0 <= 1 => break View::default(),
                None => limit = Seq(snapshot.seq.0 - 1),
            },
        }
    };
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
    if view.seq() >= to {
        return Ok(());
    }
    let mut failure = None;
    log.scan(view.seq().next(), &mut |stored: &StoredEvent<'_>| {
        if stored.seq > to {
            return ControlFlow::Break(());
        }
        match understand(log, stored) {
            Ok(event) => {
                evolve(view, &event);
                ControlFlow::Continue(())
            }
            Err(e) => {
                failure = Some(e);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(()), Err)
}

fn restore(snapshot: &Snapshot) -> Option<View> {
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

/// Whether it is time for a snapshot of the view.
pub fn snapshot_need(view: &View, last: Seq) -> SnapshotNeed {
    let since = view.seq().0.saturating_sub(last.0);
    let worthwhile = SNAPSHOT_EVERY.max(view.weight() as u64 / SNAPSHOT_SHARE);
    match since {
        _ if since >= worthwhile * SNAPSHOT_PATIENCE => SnapshotNeed::Overdue,
        _ if since >= worthwhile => SnapshotNeed::Due,
        _ => SnapshotNeed::None,
    }
}

/// The view as a snapshot.
pub fn snapshot_of(view: &mut View) -> Snapshot {
    let slices = view.to_slices().into_iter().map(|s| SliceSnapshot {
        name: s.name.to_owned(),
        root: s.root,
        bytes: s.bytes,
    });
    Snapshot { seq: view.seq(), slices: slices.collect(), root: view.root() }
}
