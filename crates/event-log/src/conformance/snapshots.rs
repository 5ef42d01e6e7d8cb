//! Snapshots: the newest at or before a seq, with its slices as they were saved.

use shared_types::{RootHash, Seq};

use super::sample::fill;
use super::{Harness, now_and_after_reopening};
use crate::{AppendError, SliceSnapshot, Snapshot};

fn snapshot(seq: u64) -> Snapshot {
    let slice = |name: &str, size| SliceSnapshot {
        name: name.to_owned(),
        root: RootHash([seq as u8 + size as u8; 32]),
        bytes: vec![seq as u8; size],
    };
    // Not sorted by name: a backend must keep the order of the slices.
    let slices = vec![slice("settings", 10), slice("files", 300_000), slice("empty", 0)];
    Snapshot { seq: Seq(seq), root: RootHash([seq as u8; 32]), version: seq as u32, slices }
}

pub fn the_newest_snapshot_at_or_before_a_place_is_found(harness: &mut dyn Harness) {
    let log = harness.log();
    assert_eq!(log.snapshot(Seq(u64::MAX)).expect("readable"), None);
    fill(&*log, 30);
    for seq in [10, 30, 20] {
        log.save_snapshot(&snapshot(seq)).expect("saved");
    }
    let mut again = snapshot(20);
    again.slices.pop();
    log.save_snapshot(&again).expect("a snapshot is replaced by a newer one of the same place");
    let refused = log.save_snapshot(&snapshot(31));
    assert!(matches!(refused, Err(AppendError::WrongSeq { actual: Seq(30), .. })), "{refused:?}");
    drop(log);
    now_and_after_reopening(harness, |log| {
        let at = |seq| log.snapshot(Seq(seq)).expect("readable");
        assert_eq!(at(9), None);
        assert_eq!(at(10), Some(snapshot(10)));
        assert_eq!(at(19), Some(snapshot(10)));
        assert_eq!(at(20).as_ref(), Some(&again));
        assert_eq!(at(u64::MAX), Some(snapshot(30)));
        let places = [10, 20, 30].map(|seq| Snapshot { slices: Vec::new(), ..snapshot(seq) });
        assert_eq!(log.snapshots().expect("readable"), places);
    });
}
