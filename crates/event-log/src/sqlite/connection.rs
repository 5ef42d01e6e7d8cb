//! Connections to `state.sqlite`: one that writes, and a few that read at the same time.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;

/// How long a connection waits for another process, or for a reader that holds up a WAL checkpoint.
const BUSY: Duration = Duration::from_secs(5);

/// `synchronous=FULL` flushes every commit: an acknowledged append survives a power cut. The automatic WAL checkpoint
/// is for connections without a `WalCheckpointer`. `mmap_size` stays zero because mapped pages count as the process's
/// memory and a read error in them kills it.
pub(super) const WRITER: &str = "
    PRAGMA page_size = 4096;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -16384;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA trusted_schema = OFF;";

pub(super) const READER: &str = "
    PRAGMA cell_size_check = ON;
    PRAGMA cache_size = -4096;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA trusted_schema = OFF;";

/// Opens the connection that writes.
pub(super) fn open_writer(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.execute_batch(WRITER)?;
    Ok(conn)
}

/// How a reader can open the database on this disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Next to a writer, with SQLite's locks.
    Shared,
    /// On a read-only disk where a crash left a write-ahead log. SQLite cannot create the WAL index there, so it keeps
    /// one in memory, which requires exclusive access to the file.
    Alone,
    /// On a read-only disk without a write-ahead log.
    Immutable,
}

/// Connections that only read, opened when needed and kept for reuse.
#[derive(Debug)]
pub(super) struct ReadPool {
    path: PathBuf,
    access: Access,
    /// The schema version of a log that is older than this program and may not be migrated.
    version: i64,
    idle: Mutex<Vec<Connection>>,
}

impl ReadPool {
    const KEPT: usize = 4;

    /// Readers next to the writer of this process.
    pub(super) fn beside_writer(path: &Path) -> Self {
        let idle = Mutex::default();
        Self { path: path.to_owned(), access: Access::Shared, version: schema::KNOWN, idle }
    }

    /// Readers without a writer in this process, also on a read-only disk.
    pub(super) fn alone(path: &Path) -> Result<Self, crate::OpenError> {
        let mut access = Access::Shared;
        let mut opened = open_reader(path, access);
        if opened.as_ref().is_err_and(wants_to_write) {
            let leftover = std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0);
            access = if leftover { Access::Alone } else { Access::Immutable };
            opened = open_reader(path, access);
        }
        let conn = opened.map_err(super::fault::open_error)?;
        let version = schema::version(&conn)?;
        schema::stand_in(&conn, version).map_err(super::fault::open_error)?;
        Ok(Self { path: path.to_owned(), access, version, idle: Mutex::new(vec![conn]) })
    }

    pub(super) fn version(&self) -> i64 {
        self.version
    }

    /// Lends a connection, which returns to the pool unless `work` panics.
    pub(super) fn with<T, E: From<rusqlite::Error>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = idle.map_or_else(|| self.open(), Ok)?;
        let result = work(&conn);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < Self::KEPT {
            idle.push(conn);
        }
        result
    }

    /// Closes the connections that are not in use.
    pub(super) fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let conn = open_reader(&self.path, self.access)?;
        schema::stand_in(&conn, self.version)?;
        Ok(conn)
    }
}

/// Whether SQLite failed because it could not create its files next to the database.
fn wants_to_write(error: &rusqlite::Error) -> bool {
    [Some(ErrorCode::CannotOpen), Some(ErrorCode::ReadOnly)].contains(&error.sqlite_error_code())
}

fn open_reader(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match access {
        Access::Shared => Connection::open_with_flags(path, flags)?,
        Access::Alone => {
            let conn = Connection::open_with_flags_and_vfs(path, flags, c"unix-none")?;
            conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
            conn
        }
        Access::Immutable => {
            Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.execute_batch(READER)?;
    // SQLite opens the files only with the first query, so a disk that does not allow it shows here.
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(conn)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The `immutable=1` URI: with it SQLite assumes that the file never changes.
fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte))
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri + "?immutable=1"
}
