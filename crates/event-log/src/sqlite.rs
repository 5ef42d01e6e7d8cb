//! The log in SQLite: one file per user, `state.sqlite`, with large contents as files next to it.
//!
//! One connection writes, under a lock that only one process can hold; other connections and processes read at the same
//! time. An append is acknowledged, and the head published, only after its commit is flushed. Everything that is read
//! is checked: events against the chain, contents against their hash.

mod adopt;
mod append;
mod connection;
mod contents;
mod event_log;
mod fault;
mod read;
mod row;
mod schema;
mod snapshots;
mod wal_checkpointer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use shared_types::{ContentHash, Seq, UserId};
use thiserror::Error;

use crate::blobs::Blobs;
use crate::disk::{make_private_folder, sync_folder};
use crate::references::EarlyContents;
use crate::{ContentError, Head, HeadSignal, LogLock, OpenError, ReadError};
pub use adopt::AdoptError;
use append::Writer;
use connection::{ReadPool, open_writer};
use fault::{Fault, open_error};
use wal_checkpointer::WalCheckpointer;

/// How often a waiting reader polls a log that another process writes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The error of a write to a log that was opened for reading.
#[derive(Debug, Clone, Copy, Error)]
#[error("the log was opened for reading only")]
struct OpenedForReading;

/// One user's log on a disk. Fields are dropped in order: the readers, the writer, and last the lock.
#[derive(Debug)]
pub struct SqliteLog {
    path: PathBuf,
    user: UserId,
    signal: HeadSignal,
    blobs: Blobs,
    early: EarlyContents,
    readers: ReadPool,
    access: Access,
}

#[derive(Debug)]
enum Access {
    /// Dropped in this order: the last connection closes the database, and that must be the writer's.
    Writing {
        _wal_checkpointer: WalCheckpointer,
        writer: Arc<Mutex<Writer>>,
        _lock: LogLock,
    },
    Reading,
}

impl SqliteLog {
    pub const FILE: &'static str = "state.sqlite";
    /// The settings of the connections that write and read, for benchmarks that compare with them.
    pub const WRITER_SETTINGS: &'static str = connection::WRITER;
    pub const READER_SETTINGS: &'static str = connection::READER;

    /// Makes a new log in a `.choir` folder, and the folder if it does not exist.
    pub fn create(folder: &Path, user: UserId) -> Result<Self, OpenError> {
        let storage = |e| OpenError::Storage(Box::new(e));
        make_private_folder(folder).map_err(storage)?;
        let lock = LogLock::take(folder)?;
        let path = folder.join(Self::FILE);
        let mut conn = open_writer(&path).map_err(open_error)?;
        if schema::version(&conn)? != 0 {
            return Err(OpenError::Exists(path));
        }
        schema::create(&mut conn, &user).map_err(open_error)?;
        // The tables go into the database file at once: a write-ahead log that is lost later must not take them along.
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(open_error)?;
        sync_folder(folder).map_err(storage)?;
        folder
            .parent()
            .filter(|parent| *parent != Path::new(""))
            .map_or(Ok(()), sync_folder)
            .map_err(storage)?;
        Self::with_writer(folder, path, conn, lock)
    }

    /// Opens a log for writing and reading.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let path = existing(folder)?;
        let lock = LogLock::take(folder)?;
        let mut conn = open_writer(&path).map_err(open_error)?;
        match schema::version(&conn)? {
            0 => return Err(OpenError::Missing(path)),
            version => schema::migrate(&mut conn, &path, version)?,
        }
        Self::with_writer(folder, path, conn, lock)
    }

    /// Opens a log for reading only: while another process writes it, on a read-only disk, or when its newest event is
    /// broken.
    pub fn open_read_only(folder: &Path) -> Result<Self, OpenError> {
        let path = existing(folder)?;
        let readers = ReadPool::alone(&path)?;
        if readers.version() == 0 {
            return Err(OpenError::Missing(path));
        }
        let user = readers.with(|conn| Ok(stored_user(conn))).map_err(open_error)??;
        let log = Self {
            path,
            user,
            signal: HeadSignal::default(),
            blobs: Blobs::new(folder),
            early: EarlyContents::default(),
            readers,
            access: Access::Reading,
        };
        log.refresh_head();
        Ok(log)
    }

    fn with_writer(folder: &Path, path: PathBuf, conn: Connection, lock: LogLock) -> Result<Self, OpenError> {
        let user = stored_user(&conn)?;
        let head = read::checked_head(&conn).map_err(Fault::into_open_error)?;
        let blobs = Blobs::new(folder);
        blobs.prepare().map_err(|e| OpenError::Storage(Box::new(e)))?;
        let (wal_checkpointer, writer) =
            WalCheckpointer::start(path.clone(), conn, |conn| Writer::new(conn, head)).map_err(open_error)?;
        Ok(Self {
            readers: ReadPool::beside_writer(&path),
            path,
            user,
            signal: HeadSignal::new(head),
            blobs,
            early: EarlyContents::default(),
            access: Access::Writing { _wal_checkpointer: wal_checkpointer, writer, _lock: lock },
        })
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>, OpenedForReading> {
        match &self.access {
            Access::Writing { writer, .. } => Ok(writer.lock().unwrap_or_else(PoisonError::into_inner)),
            Access::Reading => Err(OpenedForReading),
        }
    }

    /// Only the process that holds the lock may touch the blobs. It does not wait for a running append.
    fn must_be_writing(&self) -> Result<(), OpenedForReading> {
        match self.access {
            Access::Writing { .. } => Ok(()),
            Access::Reading => Err(OpenedForReading),
        }
    }

    /// Reads the head of a log that another process writes.
    fn refresh_head(&self) -> Head {
        let known = self.signal.get();
        let found = self.readers.with(|conn| match read::last_seq(conn)? {
            seq if seq == known.seq => Ok(known),
            // A broken last event is reported when it is read; its seq is known without reading it.
            seq => Ok::<_, rusqlite::Error>(Head { seq, hash: read::hash_at(conn, seq).unwrap_or_default() }),
        });
        // If the head cannot be read, the last known one stays.
        let head = found.unwrap_or(known);
        self.signal.set(head);
        head
    }

    /// Waits for a log that another process writes, by polling.
    fn poll(&self, after: Seq, timeout: Duration) -> Seq {
        let start = Instant::now();
        loop {
            let seen = self.refresh_head().seq;
            match timeout.checked_sub(start.elapsed()) {
                Some(left) if seen <= after && !left.is_zero() => {
                    self.signal.wait(after, left.min(POLL_INTERVAL))
                }
                _ => return seen,
            };
        }
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, ReadError> {
        self.readers.with(work).map_err(|fault| fault.into_read_error(&self.user))
    }

    /// The error for a content that is not stored: purged or missing.
    fn absent(&self, hash: &ContentHash) -> Result<ContentError, ContentError> {
        let purged = self.read_content(|conn| contents::is_purged(conn, hash))?;
        Ok(if purged { ContentError::Purged(*hash) } else { ContentError::Missing(*hash) })
    }

    fn read_content<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ContentError> {
        self.readers.with(work).map_err(ContentError::storage)
    }
}

fn existing(folder: &Path) -> Result<PathBuf, OpenError> {
    let path = folder.join(SqliteLog::FILE);
    match path.try_exists() {
        Ok(true) => Ok(path),
        Ok(false) => Err(OpenError::Missing(path)),
        Err(e) => Err(OpenError::Storage(Box::new(e))),
    }
}

fn stored_user(conn: &Connection) -> Result<UserId, OpenError> {
    let user: String = conn
        .query_row("SELECT value FROM meta WHERE key = 'user'", [], |row| row.get(0))
        .map_err(open_error)?;
    Ok(UserId::parse(&user)?)
}
