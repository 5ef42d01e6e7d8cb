//! Logs of other versions.

use std::fs;
use std::path::Path;

use event_log::conformance::sample::{append, append_one, event, op, read_checked, write};
use event_log::{ContentError, EventLog, OpenError, SqliteLog, read_content};
use rusqlite::{Connection, params};
use shared_types::{ChainHash, ContentRef, RunId, Seq, StoredEvent, UserId};
use tempfile::TempDir;

/// The first schema as it was released. It stays as it is.
const FIRST: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY, id BLOB NOT NULL, ts INTEGER NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL,
        version INTEGER NOT NULL, op BLOB NOT NULL, actor TEXT NOT NULL, run_id BLOB, cause BLOB,
        taint TEXT NOT NULL, payload TEXT NOT NULL, hash BLOB NOT NULL) STRICT;
    CREATE INDEX events_by_op ON events (op);
    CREATE TABLE commands (id BLOB PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE contents (hash BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE snapshots (seq INTEGER NOT NULL, slice TEXT NOT NULL, root BLOB NOT NULL, bytes BLOB NOT NULL,
        PRIMARY KEY (seq, slice)) STRICT;
    INSERT INTO meta VALUES ('user', 'from-the-past');
    PRAGMA user_version = 1;";

fn first_version(folder: &Path) -> (Vec<StoredEvent<'static>>, ContentRef) {
    let conn = Connection::open(folder.join(SqliteLog::FILE)).unwrap();
    conn.execute_batch(FIRST).unwrap();
    let content = ContentRef::of(b"kept");
    conn.execute("INSERT INTO contents VALUES (?1, ?2)", params![content.hash.as_bytes(), b"kept"]).unwrap();
    let mut previous = ChainHash::default();
    let mut events = Vec::new();
    for seq in 1..=30 {
        let e = event(Seq(seq), op(), write("a.txt", content)).store(&previous);
        conn.execute(
            "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, ?9, ?10, ?11, ?12)",
            params![
                seq as i64,
                e.id.as_bytes(),
                e.ts.millis(),
                e.source.as_str(),
                e.name,
                e.version,
                e.op.as_bytes(),
                e.actor,
                e.cause.map(|id| id.as_bytes().to_vec()),
                e.taint,
                e.payload,
                e.hash.as_bytes()
            ],
        )
        .unwrap();
        previous = e.hash;
        events.push(e);
    }
    (events, content)
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn an_older_log_is_brought_up_after_a_backup() {
    let folder = TempDir::new().unwrap();
    let (events, content) = first_version(folder.path());
    let log = SqliteLog::open(folder.path()).unwrap();
    assert_eq!(log.user().as_str(), "from-the-past");
    assert_eq!(read_checked(&log), events);
    append_one(&log, append(Seq(30), 1)).unwrap();
    assert_eq!(read_content(&log, &content.hash).unwrap(), b"kept");

    let backup = folder.path().join("state.sqlite.v1.backup");
    assert_eq!(version(&backup), 1);
    let elsewhere = TempDir::new().unwrap();
    fs::copy(&backup, elsewhere.path().join(SqliteLog::FILE)).unwrap();
    assert_eq!(
        read_checked(&SqliteLog::open_read_only(elsewhere.path()).unwrap()),
        events,
        "it is the whole log"
    );

    assert_eq!(log.purge(&[content.hash]).unwrap(), 1);
    assert!(matches!(log.content(&content.hash).err(), Some(ContentError::Purged(_))));
    assert!(!backup.exists(), "a purge reaches the backup too");
    drop(log);
    assert_eq!(version(&folder.path().join(SqliteLog::FILE)), 3);
    assert_eq!(SqliteLog::open(folder.path()).unwrap().head().seq, Seq(31));
    assert!(!backup.exists(), "nothing is migrated twice");
}

#[test]
fn an_older_log_opened_for_reading_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let (events, content) = first_version(folder.path());
    let log = SqliteLog::open_read_only(folder.path()).unwrap();
    assert_eq!(read_checked(&log), events);
    assert_eq!(read_content(&log, &content.hash).unwrap(), b"kept");
    let missing = ContentRef::of(b"missing").hash;
    assert!(matches!(log.content(&missing).err(), Some(ContentError::Missing(_))));
    drop(log);
    assert_eq!(version(&folder.path().join(SqliteLog::FILE)), 1);
}

#[test]
fn a_log_from_the_future_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    first_version(folder.path());
    let path = folder.path().join(SqliteLog::FILE);
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = fs::read(&path).unwrap();
    for refused in [SqliteLog::open(folder.path()), SqliteLog::open_read_only(folder.path())] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, OpenError::TooNew { found: 99, known: 3 }), "{refused:?}");
    }
    assert!(fs::read(&path).unwrap() == before);
}

/// A log of the second version, in which every third event is of a run.
fn second_version(folder: &Path) -> (Vec<StoredEvent<'static>>, RunId) {
    let run = RunId::from_bytes([5; 16]);
    let log = SqliteLog::create(folder, UserId::parse("from-the-past").unwrap()).unwrap();
    for seq in 1..=30 {
        let mut append = append(Seq(seq - 1), 1);
        append.events[0].run_id = (seq % 3 == 0).then_some(run);
        append_one(&log, append).unwrap();
    }
    let events = log.run(run).unwrap();
    drop(log);
    let conn = Connection::open(folder.join(SqliteLog::FILE)).unwrap();
    conn.execute_batch("DROP INDEX events_by_run; PRAGMA user_version = 2;").unwrap();
    (events, run)
}

#[test]
fn the_runs_of_an_older_log_are_found_with_and_without_their_index() {
    let folder = TempDir::new().unwrap();
    let (events, run) = second_version(folder.path());
    assert_eq!(events.len(), 10);
    let path = folder.path().join(SqliteLog::FILE);
    let looked_at = SqliteLog::open_read_only(folder.path()).unwrap();
    assert_eq!(looked_at.run(run).unwrap(), events, "a log that may not be changed is read all the same");
    drop(looked_at);
    assert_eq!(version(&path), 2);

    let log = SqliteLog::open(folder.path()).unwrap();
    assert_eq!(log.run(run).unwrap(), events);
    append_one(&log, append(Seq(30), 1)).unwrap();
    assert_eq!(read_checked(&log).len(), 31);
    drop(log);
    assert_eq!(version(&path), 3);
    assert_eq!(version(&folder.path().join("state.sqlite.v2.backup")), 2);
    let plan: String = Connection::open(&path)
        .unwrap()
        .query_row(
            "EXPLAIN QUERY PLAN SELECT * FROM events WHERE run_id = ?1 ORDER BY seq",
            [[5_u8; 16]],
            |row| row.get(3),
        )
        .unwrap();
    assert!(plan.contains("events_by_run"), "{plan}");
}
