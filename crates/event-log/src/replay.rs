//! From the log to a [`View`]: the newest usable snapshot, then the events after it.

mod read_ahead;

use std::ops::ControlFlow;

use kernel::{VIEW_VERSION, View, evolve};
use shared_types::{Seq, StoredEvent};

use crate::snapshot::restore;
use crate::{EventLog, ReadError, decode_event};

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
