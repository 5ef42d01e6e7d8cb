//! When a cached hash may be trusted.

use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, SystemTime};

use projector::scan::{CacheEntry, is_trusted};
use projector::workspace::{Stat, hash_file};
use shared_types::ContentRef;
use shared_types::payload::file::FileNode;

use crate::fixture::{Home, at};

const SECOND: i64 = 1_000_000_000;

fn entry(stat: Stat, checked_at_ns: i64) -> CacheEntry {
    CacheEntry { stat, node: FileNode::file(ContentRef::of(b"x"), 0o644), checked_at_ns }
}

#[test]
fn any_difference_in_the_stat_ends_the_trust() {
    let stat =
        Stat { size: 1, mtime_ns: 100 * SECOND + 1, ctime_ns: 100 * SECOND + 1, ino: 7, mode: 0o100_644 };
    let cached = entry(stat, 200 * SECOND);
    assert!(is_trusted(&cached, &stat));
    for now in [
        Stat { size: 2, ..stat },
        Stat { mtime_ns: stat.mtime_ns + 1, ..stat },
        Stat { ctime_ns: stat.ctime_ns + 1, ..stat },
        Stat { ino: 8, ..stat },
        Stat { mode: 0o100_755, ..stat },
    ] {
        assert!(!is_trusted(&cached, &now), "{now:?}");
    }
}

#[test]
fn a_file_changed_at_about_the_time_of_the_check_is_read_again() {
    let fine =
        Stat { size: 1, mtime_ns: 100 * SECOND + 7, ctime_ns: 100 * SECOND + 7, ino: 7, mode: 0o100_644 };
    let whole = Stat { mtime_ns: 100 * SECOND, ctime_ns: 100 * SECOND, ..fine };
    for (stat, after, trusted) in [
        (fine, -SECOND, false),
        (fine, 0, false),
        (fine, SECOND / 100, false),
        (fine, SECOND / 2, true),
        (whole, SECOND, false),
        (whole, 4 * SECOND, true),
        // An old mtime that a program set does not hide a recent change.
        (Stat { mtime_ns: 1, ..fine }, 0, false),
    ] {
        let cached = entry(stat, 100 * SECOND + 7 + after);
        assert_eq!(is_trusted(&cached, &stat), trusted, "{stat:?} checked {after} later");
    }
}

#[test]
fn a_change_of_the_same_size_within_one_tick_is_not_missed() {
    let home = Home::new();
    for round in 0..200 {
        home.write("x", "one");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let (content, stat) = hash_file(&home.workspace, &at("x")).unwrap();
        let cached = CacheEntry {
            stat,
            node: FileNode::file(content, 0o644),
            checked_at_ns: i64::try_from(now.as_nanos()).unwrap(),
        };
        File::options().write(true).open(home.on_disk("x")).unwrap().write_all(b"two").unwrap();
        let after = home.workspace.observe(&at("x")).unwrap().unwrap().stat;
        assert!(!is_trusted(&cached, &after), "round {round}");
    }
}

#[test]
fn a_file_at_rest_is_trusted() {
    let home = Home::new();
    home.write("x", "one");
    std::thread::sleep(Duration::from_millis(300));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let (content, stat) = hash_file(&home.workspace, &at("x")).unwrap();
    let checked_at_ns = i64::try_from(now.as_nanos()).unwrap();
    let cached = CacheEntry { stat, node: FileNode::file(content, 0o644), checked_at_ns };
    fs::read(home.on_disk("x")).unwrap();
    let again = home.workspace.observe(&at("x")).unwrap().unwrap().stat;
    assert!(is_trusted(&cached, &again));
}
