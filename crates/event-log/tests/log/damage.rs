//! Damaged bytes: the error names the event, and everything before it is still readable.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use event_log::conformance::Harness;
use event_log::conformance::sample::{append_one, fill, naming, read_checked};
use event_log::{ContentError, EventLog, OpenError, ReadError, SqliteLog, Subscription, read_content};
use rusqlite::Connection;
use shared_types::{ContentRef, Seq, StoredEvent};

use crate::backends::OnDisk;

const EVENTS: u64 = 200;

/// A closed log of events, and what they were.
fn closed_log() -> (OnDisk, Vec<StoredEvent<'static>>) {
    let mut disk = OnDisk::new();
    fill(&*disk.log(), EVENTS);
    let events = read_checked(&*disk.log());
    disk.close();
    (disk, events)
}

/// All events that can be read from the start, and the error if reading stopped early.
fn read_until_break(log: &dyn EventLog) -> (Vec<StoredEvent<'static>>, Option<ReadError>) {
    let mut events = Vec::new();
    let result = log.scan(Seq(1), &mut |event| {
        events.push(event.clone().into_owned());
        ControlFlow::Continue(())
    });
    (events, result.err())
}

fn assert_broken_at(log: &dyn EventLog, seq: u64, events: &[StoredEvent<'static>], what: &str) {
    let (readable, error) = read_until_break(log);
    match error {
        Some(ReadError::Broken { seq: found, .. }) => assert_eq!(found, Seq(seq), "{what}"),
        other => panic!("{what}: expected a break at {seq}, got {other:?}"),
    }
    assert_eq!(readable, events[..seq as usize - 1], "{what}: everything before is readable");
}

fn change(folder: &Path, sql: &str) {
    let conn = Connection::open(folder.join(SqliteLog::FILE)).unwrap();
    assert_eq!(conn.execute(sql, []).unwrap(), 1, "{sql}");
}

#[test]
fn a_changed_column_is_named_with_its_event() {
    for change_to in [
        "id = zeroblob(16)",
        "id = x'00'",
        "ts = ts + 1",
        "source = 'agent'",
        "source = 'unknown'",
        "name = 'file.delete'",
        "version = 2",
        "version = 65537",
        "op = zeroblob(16)",
        "actor = 'clj'",
        "run_id = zeroblob(16)",
        "run_id = x'01'",
        "cause = zeroblob(16)",
        "taint = 'mail'",
        "payload = replace(payload, 'file-', 'life-')",
        "payload = CAST(x'7bff7d' AS TEXT)",
        "hash = zeroblob(32)",
        "hash = x''",
    ] {
        let (disk, events) = closed_log();
        change(&disk.path(), &format!("UPDATE events SET {change_to} WHERE seq = 121"));
        let log = SqliteLog::open(&disk.path()).unwrap();
        assert_broken_at(&log, 121, &events, change_to);
    }
}

#[test]
fn a_missing_event_is_named() {
    for (sql, seq) in [
        ("DELETE FROM events WHERE seq = 77", 77),
        ("UPDATE events SET seq = 1000 WHERE seq = 77", 77),
        ("UPDATE events SET seq = 1000 WHERE seq = 200", 200),
        ("DELETE FROM events WHERE seq = 1", 1),
    ] {
        let (disk, events) = closed_log();
        change(&disk.path(), sql);
        assert_broken_at(&SqliteLog::open_read_only(&disk.path()).unwrap(), seq, &events, sql);
    }
}

#[test]
fn an_end_that_is_cut_off_under_an_open_log_is_named() {
    let disk = OnDisk::new();
    let log = disk.log();
    fill(&*log, 20);
    let events = read_checked(&*log);
    change(&disk.path(), "DELETE FROM events WHERE seq = 20");
    assert_broken_at(&*log, 20, &events, "the newest is gone");
    let refused = log.scan(Seq(21), &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(refused, ReadError::Broken { seq: Seq(20), .. }), "{refused:?}");
}

#[test]
fn an_end_that_was_cut_off_under_a_snapshot_is_refused() {
    let mut disk = OnDisk::new();
    let log = disk.log();
    fill(&*log, 20);
    let root = shared_types::RootHash([1; 32]);
    let snapshot = event_log::Snapshot { seq: Seq(20), root, version: 1, slices: Vec::new() };
    log.save_snapshot(&snapshot).unwrap();
    drop(log);
    disk.close();
    change(&disk.path(), "DELETE FROM events WHERE seq = 20");
    let refused = SqliteLog::open(&disk.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Read(ReadError::Broken { seq: Seq(20), .. })), "{refused:?}");
}

#[test]
fn a_log_whose_newest_event_is_broken_is_opened_for_reading_only() {
    let (disk, events) = closed_log();
    change(&disk.path(), "UPDATE events SET actor = 'x' WHERE seq = 200");
    let refused = SqliteLog::open(&disk.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Read(ReadError::Broken { seq: Seq(200), .. })), "{refused:?}");
    let log = SqliteLog::open_read_only(&disk.path()).unwrap();
    assert_eq!(log.head().seq, Seq(200));
    assert_broken_at(&log, 200, &events, "the newest");
}

#[test]
fn reading_from_the_middle_and_by_operation_finds_the_break_too() {
    let (disk, events) = closed_log();
    change(&disk.path(), "UPDATE events SET payload = '{}' WHERE seq = 121");
    let log = std::sync::Arc::new(SqliteLog::open(&disk.path()).unwrap());
    let refused = log.operation(events[120].op).unwrap_err();
    assert!(matches!(refused, ReadError::Broken { seq: Seq(121), .. }), "{refused:?}");
    assert_eq!(log.operation(events[0].op).unwrap(), events[..10]);

    let mut subscription = Subscription::new(log, Seq(100));
    let timeout = std::time::Duration::from_secs(5);
    assert_eq!(subscription.next(timeout).unwrap(), events[100..120], "what stands before comes first");
    let refused = subscription.next(timeout).unwrap_err();
    assert!(matches!(refused, ReadError::Broken { seq: Seq(121), .. }), "{refused:?}");
}

#[test]
fn a_flipped_byte_of_an_event_on_the_disk_is_named() {
    let (disk, events) = closed_log();
    let file = disk.path().join(SqliteLog::FILE);
    let clean = fs::read(&file).unwrap();
    for seq in [1_u64, 50, 121, 199] {
        let payload = events[seq as usize - 1].payload.as_bytes();
        let start = clean.windows(payload.len()).position(|window| window == payload).unwrap();
        let mut flipped = clean.clone();
        flipped[start + 20] ^= 0x04;
        fs::write(&file, &flipped).unwrap();
        assert_broken_at(&SqliteLog::open(&disk.path()).unwrap(), seq, &events, "a flipped bit of a payload");
    }
}

#[test]
fn a_flipped_byte_anywhere_never_shows_a_wrong_event() {
    let (disk, events) = closed_log();
    let file = disk.path().join(SqliteLog::FILE);
    let clean = fs::read(&file).unwrap();
    let mut named = 0;
    for place in (0..clean.len()).step_by(61) {
        let mut flipped = clean.clone();
        flipped[place] ^= 1 << (place % 8);
        fs::write(&file, &flipped).unwrap();
        let log = match SqliteLog::open_read_only(&disk.path()) {
            Ok(log) => log,
            // The log does not open without its header, schema and user id.
            Err(OpenError::Damaged(_) | OpenError::TooNew { .. } | OpenError::User(_)) => continue,
            Err(OpenError::Storage(_) | OpenError::Missing(_)) if place < 4096 => continue,
            Err(other) => panic!("a flip at {place}: {other:?}"),
        };
        let (readable, error) = read_until_break(&log);
        assert_eq!(readable, events[..readable.len()], "a flip at {place} shows only what was written");
        match error {
            None => assert_eq!(readable.len(), events.len(), "a flip at {place} hides nothing in silence"),
            Some(ReadError::Broken { seq, .. }) => {
                assert_eq!(seq, Seq(readable.len() as u64 + 1), "a flip at {place} is named where it is");
                named += 1;
            }
            Some(other) => assert!(place < 4096, "a flip at {place}: {other:?}"),
        }
    }
    assert!(named > 100, "most of the file is events: {named}");
}

#[test]
fn a_database_that_is_none_is_refused() {
    let (disk, _) = closed_log();
    fs::write(disk.path().join(SqliteLog::FILE), vec![b'x'; 20_000]).unwrap();
    assert!(matches!(SqliteLog::open(&disk.path()), Err(OpenError::Damaged(_))));
    assert!(matches!(SqliteLog::open_read_only(&disk.path()), Err(OpenError::Damaged(_))));
}

#[test]
fn damaged_contents_are_never_handed_out() {
    let mut disk = OnDisk::new();
    let log = disk.log();
    let large = vec![9; 300_000];
    let blob = log.stage(&mut large.as_slice()).unwrap().content();
    append_one(&*log, naming(Seq(0), blob, None)).unwrap();
    let small = ContentRef::of(b"small");
    append_one(&*log, naming(Seq(1), small, Some((small.hash, b"small".to_vec())))).unwrap();
    drop(log);
    disk.close();
    change(&disk.path(), "UPDATE contents SET bytes = x'00'");
    let name = blob.hash.to_string();
    let path = disk.path().join("blobs").join(&name[..2]).join(&name);
    let log = SqliteLog::open(&disk.path()).unwrap();
    assert!(matches!(read_content(&log, &small.hash), Err(ContentError::Damaged(h)) if h == small.hash));

    let mut flipped = large.clone();
    flipped[299_999] = 8;
    for damaged in [flipped.as_slice(), &large[..200_000], &[large.as_slice(), b"more"].concat(), b""] {
        fs::write(&path, damaged).unwrap();
        let read = read_content(&log, &blob.hash);
        assert!(matches!(read, Err(ContentError::Damaged(h)) if h == blob.hash), "{} bytes", damaged.len());
        let part = log.content_range(&blob.hash, 0..1).map(drop);
        assert!(matches!(part, Err(ContentError::Damaged(h)) if h == blob.hash), "{} bytes", damaged.len());
    }
    let staged = log.stage(&mut large.as_slice()).unwrap();
    assert_eq!(staged.content(), blob);
    assert_eq!(
        read_content(&log, &blob.hash).unwrap(),
        large,
        "staging it again mends a blob of a wrong size"
    );
    log.content_range(&blob.hash, 0..1).map(drop).unwrap();
    fs::write(&path, &flipped).unwrap();
    let part = log.content_range(&blob.hash, 0..1).map(drop);
    assert!(matches!(part, Err(ContentError::Damaged(_))), "a file that changed is checked again");
}
