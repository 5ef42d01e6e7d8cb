//! Another program saves by renaming at the very moment in which the same path is replaced or removed: its save is
//! never lost.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use projector::workspace::{DiskError, Expected};
use shared_types::ContentRef;
use shared_types::payload::file::FileNode;

use crate::fixture::{Home, at};

const OURS: &str = "ours";
const ROUNDS: u64 = 500;

/// Saves the next version as soon as the last one was seen, which is when the other side is about to replace it.
fn save(home: &std::path::Path, seen: &AtomicU64, saved: &AtomicU64, stop: &AtomicBool) {
    for version in 1.. {
        let draft = home.join("draft");
        fs::write(&draft, version.to_string()).unwrap();
        fs::rename(&draft, home.join("root/x")).unwrap();
        saved.store(version, Ordering::SeqCst);
        while seen.load(Ordering::SeqCst) < version {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            thread::yield_now();
        }
    }
}

/// Ends the other thread, also when this one fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn never_loses_a_save(change: impl Fn(&Home, Expected) -> Result<(), DiskError>) {
    let home = Home::new();
    let base = home.root().parent().unwrap().to_owned();
    let (seen, saved, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| save(&base, &seen, &saved, &stop));
        let _stop = Stop(&stop);
        while seen.load(Ordering::SeqCst) < ROUNDS {
            let Some(found) = home.workspace.observe(&at("x")).unwrap() else { continue };
            let text = fs::read_to_string(home.on_disk("x")).unwrap_or_default();
            // The content that was read belongs to this stat, or the change below is refused.
            if let Ok(version) = text.parse() {
                seen.store(version, Ordering::SeqCst);
            }
            match change(&home, Expected::Seen(found.stat)) {
                Ok(()) => {}
                Err(DiskError::Changed { .. } | DiskError::Busy { .. }) => continue,
                Err(other) => panic!("{other:?}"),
            }
            let last = saved.load(Ordering::SeqCst);
            let now = fs::read_to_string(home.on_disk("x")).unwrap_or_default();
            let is_kept = last <= seen.load(Ordering::SeqCst) || now.parse::<u64>().is_ok();
            assert!(is_kept, "save {last} went away unseen; there is {now:?}");
        }
    });
    home.assert_clean();
}

#[test]
fn a_save_at_the_moment_of_a_replacement_stays() {
    never_loses_a_save(|home, over| {
        let node = FileNode::file(ContentRef::of(OURS.as_bytes()), 0o644);
        home.workspace.place(&at("x"), &node, Some(&mut OURS.as_bytes()), over).map(drop)
    });
}

#[test]
fn a_save_at_the_moment_of_a_removal_stays() {
    never_loses_a_save(|home, over| home.workspace.remove(&at("x"), over));
}
