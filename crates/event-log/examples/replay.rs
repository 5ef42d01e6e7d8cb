//! Replays a small log many times, for a profiler: `cargo build --release -p event-log --example replay`, then
//! `perf record -g target/release/examples/replay 1500 2000`, or `valgrind --tool=callgrind` with fewer rounds.
//!
//! It prints the time of a replay with its root, and of a raw scan of the same table, as medians over all rounds.

use std::time::{Duration, Instant};

use event_log::replay::view_from_nothing;
use event_log::{Append, EventLog, SqliteLog};
use kernel::{Action, Base, Command, Contents, Origin, View, decide, evolve};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use shared_types::payload::file::FileNode;
use shared_types::{Actor, CommandId, ContentRef, FilePath, OpId, Source, Timestamp, UserId};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const PATHS: u64 = 1000;
const SCAN: &str = "SELECT seq, id, ts, source, name, version, op, actor, run_id, cause, taint, payload, hash \
                    FROM events ORDER BY seq";

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let events = arguments.next().transpose()?.unwrap_or(1500);
    let rounds = arguments.next().transpose()?.unwrap_or(200);
    let folder = tempfile::tempdir()?;
    let log = SqliteLog::create(folder.path(), UserId::parse("profile")?)?;
    fill(&log, events)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(folder.path().join(SqliteLog::FILE), flags)?;
    conn.execute_batch(SqliteLog::READER_SETTINGS)?;
    let (mut replays, mut scans) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let mut view = view_from_nothing(&log, log.head().seq)?;
        std::hint::black_box(view.root());
        replays.push(start.elapsed());
        let start = Instant::now();
        std::hint::black_box(scan(&conn)?);
        scans.push(start.elapsed());
    }
    let (replay, scan) = (median(replays), median(scans));
    println!("replay {replay:?}, scan {scan:?}, ratio {:.2}", scan.as_secs_f64() / replay.as_secs_f64());
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Writes of small files over some paths, as the kernel decides them.
fn fill(log: &SqliteLog, events: u64) -> Outcome<()> {
    let mut view = View::default();
    let mut group = Vec::new();
    for number in 1..=events {
        let (bytes, ts) = (format!("content {number}").into_bytes(), Timestamp::from_millis(number as i64));
        let bits = [number.to_be_bytes().as_slice(), &[0; 2]].concat().try_into().unwrap_or_default();
        let slot = number * 7 % PATHS;
        let path = format!("projects/project-{}/src/module_{}/file_{slot}.rs", slot % 40, slot / 40 % 25);
        let node = FileNode::file(ContentRef::of(&bytes), FileNode::DEFAULT_MODE);
        let command = Command {
            origin: Origin::new(CommandId::mint(ts, bits), OpId::mint(ts, bits), Source::User, Actor::CLI),
            ts,
            action: Action::WriteFile { path: FilePath::parse(&path)?, node, base: Base::Any },
            contents: Contents::new(),
        };
        let decision = decide(&view, &command)?;
        let expected = view.seq();
        decision.events.iter().for_each(|event| evolve(&mut view, event));
        let contents = vec![(ContentRef::of(&bytes).hash, bytes)];
        group.push(Append { command: command.origin.command, expected, events: decision.events, contents });
    }
    log.append(&group).into_iter().try_for_each(|answer| answer.map(drop))?;
    Ok(())
}

/// Reads every byte of every event.
fn scan(conn: &Connection) -> rusqlite::Result<u64> {
    let mut statement = conn.prepare_cached(SCAN)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut sum = 0u64;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            sum += match row.get_ref(column)? {
                ValueRef::Integer(n) => n as u64,
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.iter().map(|b| u64::from(*b)).sum(),
                ValueRef::Null | ValueRef::Real(_) => 0,
            };
        }
    }
    Ok(sum)
}
