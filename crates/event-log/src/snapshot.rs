//! Snapshots of a view: when one is due, how it is made, and how it becomes a view again. They only make opening
//! faster; every view can be replayed without them.

use kernel::{VIEW_VERSION, View};

use crate::{SliceSnapshot, Snapshot};

/// A snapshot is due after this many changes, or after a quarter of the view's entries if that is more.
const SNAPSHOT_EVERY: u64 = 1000;
const SNAPSHOT_SHARE: u64 = 4;
/// While commands wait, a snapshot is put off until this many times as many changes.
const OVERDUE_FACTOR: u64 = 10;

/// The view of a snapshot; `None` if it is of another version, or does not have the root that it was saved with.
pub(crate) fn restore(snapshot: &Snapshot) -> Option<View> {
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
