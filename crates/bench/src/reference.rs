//! The references: what bare rusqlite does with the same rows, tables, indexes and settings.
//!
//! Nothing here decides, validates, hashes or understands anything. The tables are those that the log made itself,
//! and the rows were read back from a log, so both sides move the same bytes.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use event_log::SqliteLog;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::history::user;

const EVENTS: &str = "SELECT seq, id, ts, source, name, version, op, actor, run_id, cause, taint, payload, hash \
                      FROM events ORDER BY seq";
const INSERT_EVENT: &str = "INSERT INTO events (seq, id, ts, source, name, version, op, actor, run_id, cause, taint, \
                            payload, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const INSERT_COMMAND: &str = "INSERT OR IGNORE INTO commands (id, first, last) VALUES (?1, ?2, ?3)";
const INSERT_CONTENT: &str = "INSERT OR IGNORE INTO contents (hash, bytes) VALUES (?1, ?2)";
/// As in the writer: commands that may wait, and those that share a flush.
const MAILBOX: usize = 1024;
const GROUP: usize = 512;

/// The rows of one command.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    event: Vec<Value>,
    command: Vec<Value>,
    content: Option<Vec<Value>>,
}

/// Reads back what every command of a log wrote. Each led to one event, with at most one content.
pub(super) fn recorded_rows(folder: &Path) -> anyhow::Result<Vec<Rows>> {
    let conn = open_reader(folder)?;
    let events = all(&conn, EVENTS)?;
    let commands = all(&conn, "SELECT id, first, last FROM commands ORDER BY first")?;
    anyhow::ensure!(events.len() == commands.len(), "every command of the load writes one event");
    let mut content_of = conn.prepare(
        "SELECT hash, bytes FROM contents WHERE hash = unhex(json_extract(?1, '$.node.file.hash'))",
    )?;
    let mut rows = Vec::with_capacity(events.len());
    for (event, command) in events.into_iter().zip(commands) {
        let mut found = content_of.query([&event[11]])?;
        let content = found.next()?.map(|row| Ok::<_, rusqlite::Error>(vec![row.get(0)?, row.get(1)?]));
        rows.push(Rows { event, command, content: content.transpose()? });
    }
    Ok(rows)
}

fn all(conn: &Connection, sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = conn.prepare(sql)?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|i| row.get(i)).collect())?;
    rows.collect()
}

/// Bare group commit: a thread that inserts prepared rows in order, one command's for every request.
#[derive(Debug)]
pub(super) struct GroupCommit {
    mailbox: SyncSender<SyncSender<()>>,
}

impl GroupCommit {
    /// Makes an empty log in the folder and starts the thread. It ends when the handle is dropped.
    pub(super) fn start(folder: &Path, rows: Vec<Rows>) -> anyhow::Result<(Self, JoinHandle<()>)> {
        drop(SqliteLog::create(folder, user()?)?);
        let conn = open_writer(folder)?;
        let (mailbox, requests) = mpsc::sync_channel(MAILBOX);
        let thread = std::thread::Builder::new().name("reference".into()).spawn(move || {
            if let Err(error) = serve(&conn, &requests, rows) {
                // The waiting thread sees the closed channel.
                eprintln!("the reference stopped: {error}");
            }
        })?;
        Ok((Self { mailbox }, thread))
    }

    /// Commits the next command's rows and waits until they are durable.
    pub(super) fn commit_next(&self) -> anyhow::Result<()> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.mailbox.send(reply)?;
        Ok(answer.recv()?)
    }
}

fn serve(conn: &Connection, requests: &Receiver<SyncSender<()>>, rows: Vec<Rows>) -> rusqlite::Result<()> {
    let mut rows = rows.into_iter();
    while let Ok(first) = requests.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = requests.try_recv()
        {
            group.push(next);
        }
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut event = conn.prepare_cached(INSERT_EVENT)?;
        let mut command = conn.prepare_cached(INSERT_COMMAND)?;
        let mut content = conn.prepare_cached(INSERT_CONTENT)?;
        for row in rows.by_ref().take(group.len()) {
            command.execute(params_from_iter(&row.command))?;
            event.execute(params_from_iter(&row.event))?;
            if let Some(values) = &row.content {
                content.execute(params_from_iter(values))?;
            }
        }
        conn.prepare_cached("COMMIT")?.execute([])?;
        for reply in group {
            let _ = reply.send(());
        }
    }
    Ok(())
}

/// Opens a log as its writer does.
pub(super) fn open_writer(folder: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(folder.join(SqliteLog::FILE), flags)?;
    conn.execute_batch(SqliteLog::WRITER_SETTINGS)?;
    Ok(conn)
}

/// Opens a log as its readers do.
pub(super) fn open_reader(folder: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(folder.join(SqliteLog::FILE), flags)?;
    conn.execute_batch(SqliteLog::READER_SETTINGS)?;
    Ok(conn)
}

/// Reads every column of every event and touches every byte of it. Returns the number of events and a sum, which
/// keeps the reading from being optimised away.
pub(super) fn bare_scan(conn: &Connection) -> rusqlite::Result<(u64, u64)> {
    let mut statement = conn.prepare_cached(EVENTS)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let (mut count, mut sum) = (0, 0u64);
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            sum = sum.wrapping_add(match row.get_ref(column)? {
                ValueRef::Null => 0,
                ValueRef::Integer(value) => value as u64,
                ValueRef::Real(value) => value.to_bits(),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.iter().map(|b| u64::from(*b)).sum(),
            });
        }
        count += 1;
    }
    Ok((count, sum))
}
