//! `views.sqlite`: read models, search index and the projector's ledger. Disposable: all of it can be rebuilt from the
//! log, so a file that is damaged or has another format is replaced by a new one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use event_log::Head;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use shared_types::{ChainHash, Seq};
use thiserror::Error;

/// How long to wait for another process that has locked the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Raised whenever the tables or their texts change; older files are rebuilt.
const FORMAT: i64 = 7;

/// Tables that are computed from events and must be equal after a rebuild, with the columns to compare.
pub const READ_MODELS: &[(&str, &str)] = &[
    ("files", "path, kind, hash, size, mode, target, seq, op"),
    (
        "operations",
        "first, last, op, ts, source, actor, family, label, events, files, reversible, reverts, root, is_redo, undone_by, run, task",
    ),
    (
        "runs",
        "first, run, title, started, ended, state, reason, steps, tokens, micros, unpriced, tasks, undone_by",
    ),
    ("asks", "run, ask, task"),
    ("calls", "op, title, status, code, network"),
    ("touches", "path, seq, op"),
    ("checkpoints", "seq, \"commit\", at, ts, message"),
];

const SCHEMA: &str = "
    CREATE TABLE position (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, hash BLOB, size INTEGER NOT NULL,
        mode INTEGER NOT NULL, target TEXT, seq INTEGER NOT NULL, op BLOB NOT NULL) STRICT;
    CREATE INDEX files_by_hash ON files (hash) WHERE hash IS NOT NULL;
    CREATE TABLE operations (
        op BLOB PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, ts INTEGER NOT NULL,
        source TEXT NOT NULL, actor TEXT NOT NULL, family TEXT NOT NULL, label TEXT NOT NULL,
        events INTEGER NOT NULL, files INTEGER NOT NULL, reversible INTEGER NOT NULL,
        reverts BLOB, root BLOB, is_redo INTEGER, undone_by BLOB, run BLOB, task BLOB) STRICT, WITHOUT ROWID;
    CREATE INDEX operations_by_last ON operations (last);
    CREATE INDEX operations_undone ON operations (undone_by) WHERE undone_by IS NOT NULL;
    CREATE INDEX operations_by_run ON operations (run, first) WHERE run IS NOT NULL;
    CREATE TABLE runs (
        run BLOB PRIMARY KEY, title TEXT NOT NULL, first INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER,
        state TEXT NOT NULL, reason TEXT, steps INTEGER NOT NULL, tokens INTEGER NOT NULL, micros INTEGER NOT NULL,
        unpriced INTEGER NOT NULL, tasks INTEGER NOT NULL, undone_by BLOB) STRICT, WITHOUT ROWID;
    CREATE INDEX runs_by_first ON runs (first);
    CREATE TABLE asks (
        run BLOB, ask BLOB, task BLOB NOT NULL, PRIMARY KEY (run, ask)) STRICT, WITHOUT ROWID;
    CREATE TABLE calls (
        op BLOB PRIMARY KEY, title TEXT NOT NULL, status TEXT NOT NULL, code INTEGER,
        network INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE touches (path TEXT, seq INTEGER, op BLOB NOT NULL, PRIMARY KEY (path, seq)) STRICT, WITHOUT ROWID;
    CREATE TABLE checkpoints (
        at INTEGER PRIMARY KEY, seq INTEGER NOT NULL, \"commit\" TEXT NOT NULL, ts INTEGER NOT NULL,
        message TEXT NOT NULL) STRICT;
    CREATE VIRTUAL TABLE files_text USING fts5(path, body, content='', contentless_delete=1);
    CREATE TABLE disk (
        path TEXT PRIMARY KEY, node TEXT NOT NULL, stat BLOB, checked INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE intents (path TEXT PRIMARY KEY, old TEXT, new TEXT) STRICT, WITHOUT ROWID;
    CREATE TABLE owed (path TEXT PRIMARY KEY, node TEXT, reason TEXT) STRICT, WITHOUT ROWID;";

/// Why the read models cannot be used.
#[derive(Debug, Error)]
pub enum ViewsError {
    #[error("the read models at {path} cannot be opened or written")]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the damaged read models at {path} cannot be put aside")]
    PutAside {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// The parts of the projection, each with its own position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The read models.
    Rows,
    /// The workspace on disk. It has no position while nothing is known about the disk.
    Disk,
}

impl Position {
    fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Disk => "disk",
        }
    }
}

/// The open database.
#[derive(Debug)]
pub struct Views {
    path: PathBuf,
    pub(crate) conn: Connection,
}

impl ViewsError {
    /// Whether the file's own structure is damaged. All of it can be computed again.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Sqlite { source, .. } if is_unusable(source))
    }
}

impl Views {
    pub const FILE: &'static str = "views.sqlite";

    /// Opens the read models in a `.choir` folder, or makes new ones if they are missing, old or damaged.
    pub fn open(folder: &Path) -> Result<Self, ViewsError> {
        let path = folder.join(Self::FILE);
        match Self::connect(&path) {
            Ok(views) => Ok(views),
            Err(e) if is_unusable(&e) => {
                put_aside(&path)?;
                Self::connect(&path).map_err(|source| ViewsError::Sqlite { path, source })
            }
            Err(source) => Err(ViewsError::Sqlite { path, source }),
        }
    }

    /// Opens them for reading only, while another process writes them.
    pub fn open_read_only(folder: &Path) -> Result<Self, ViewsError> {
        let path = folder.join(Self::FILE);
        let connect = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let conn = Connection::open_with_flags(&path, flags)?;
            conn.busy_timeout(BUSY_TIMEOUT)?;
            let found: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if found == FORMAT { Ok(conn) } else { Err(old_format()) }
        };
        match connect() {
            Ok(conn) => Ok(Self { path, conn }),
            Err(source) => Err(ViewsError::Sqlite { path, source }),
        }
    }

    /// Read models to compare with, in an unnamed temporary file.
    pub fn temporary() -> Result<Self, ViewsError> {
        Self::connect(Path::new(""))
            .map_err(|source| ViewsError::Sqlite { path: "(temporary)".into(), source })
    }

    /// Empties a file that turned out to be damaged, so that everything in it is computed again.
    pub(crate) fn recreate(&self) -> Result<(), ViewsError> {
        let reset = || {
            self.conn.flush_prepared_statement_cache();
            if !self.conn.is_autocommit() {
                let _ = self.conn.execute_batch("ROLLBACK");
            }
            self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
            let emptied = self.conn.execute_batch("VACUUM");
            self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
            emptied.and_then(|()| prepare_file(&self.conn))
        };
        self.map(reset())
    }

    /// Empties the caches. A failure leaves them as they are.
    pub fn release_memory(&self) {
        self.conn.flush_prepared_statement_cache();
        let _ = self.conn.execute_batch("PRAGMA shrink_memory");
    }

    fn connect(path: &Path) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_prepared_statement_cache_capacity(64);
        prepare_file(&conn)?;
        Ok(Self { path: path.to_owned(), conn })
    }

    pub fn position(&self, of: Position) -> Result<Option<Head>, ViewsError> {
        let mut statement = self.prepare("SELECT seq, hash FROM position WHERE name = ?1")?;
        let head = |row: &rusqlite::Row<'_>| {
            Ok(Head { seq: Seq(row.get::<_, i64>(0)?.unsigned_abs()), hash: ChainHash(row.get(1)?) })
        };
        self.map(statement.query_row([of.name()], head).optional())
    }

    pub(crate) fn set_position(&self, of: Position, at: Head) -> Result<(), ViewsError> {
        let mut statement =
            self.prepare("INSERT OR REPLACE INTO position (name, seq, hash) VALUES (?1, ?2, ?3)")?;
        self.map(statement.execute((of.name(), at.seq.0 as i64, at.hash.as_bytes()))).map(drop)
    }

    /// Deletes all rows, so that they are computed again; the ledger stays.
    pub(crate) fn reset_rows(&self) -> Result<(), ViewsError> {
        let mut script = String::new();
        for (table, _) in READ_MODELS {
            script += &format!("DELETE FROM {table};");
        }
        script += "INSERT INTO files_text (files_text) VALUES ('delete-all');
                   DELETE FROM position WHERE name = 'rows';";
        self.transaction(|| self.map(self.conn.execute_batch(&script)))
    }

    /// Deletes the ledger, so that the whole workspace is compared again.
    pub(crate) fn reset_disk(&self) -> Result<(), ViewsError> {
        let script = "DELETE FROM disk; DELETE FROM intents; DELETE FROM owed;
                      DELETE FROM position WHERE name = 'disk';";
        self.transaction(|| self.map(self.conn.execute_batch(script)))
    }

    /// Runs a change as one transaction.
    pub(crate) fn transaction<T, E: From<ViewsError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.map(self.conn.execute_batch("BEGIN IMMEDIATE"))?;
        let _open = OpenTransaction(&self.conn);
        let value = work()?;
        self.map(self.conn.execute_batch("COMMIT"))?;
        Ok(value)
    }

    /// The same, durable when this returns.
    pub(crate) fn durable_transaction<T, E: From<ViewsError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.map(self.conn.execute_batch("PRAGMA synchronous = FULL"))?;
        let result = self.transaction(work);
        self.map(self.conn.execute_batch("PRAGMA synchronous = NORMAL"))?;
        result
    }

    /// A WAL checkpoint, which removes deleted data from the write-ahead log. An active reader can delay that.
    pub(crate) fn wal_checkpoint(&self) -> Result<(), ViewsError> {
        self.map(self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, ViewsError> {
        self.map(self.conn.prepare_cached(sql))
    }

    pub(crate) fn map<T>(&self, result: rusqlite::Result<T>) -> Result<T, ViewsError> {
        result.map_err(|source| ViewsError::Sqlite { path: self.path.clone(), source })
    }
}

/// A transaction that is rolled back unless it was committed, also in a panic.
struct OpenTransaction<'c>(&'c Connection);

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// Sets up the connection and the tables. A file with another format is an error.
fn prepare_file(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384;
         PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
    )?;
    let found: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (found, tables) {
        (FORMAT, _) => Ok(()),
        (0, 0) => {
            let _open = OpenTransaction(conn);
            conn.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;"))
        }
        _ => Err(old_format()),
    }
}

fn old_format() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_SCHEMA), None)
}

fn is_unusable(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, SchemaChanged};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase | SchemaChanged))
}

fn put_aside(path: &Path) -> Result<(), ViewsError> {
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(ViewsError::PutAside { path: file, source: e });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
