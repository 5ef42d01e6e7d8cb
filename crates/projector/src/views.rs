//! `views.sqlite`: read models, search index and the projector's own notes. Disposable: all of it is rebuilt from the
//! log, so a file that is damaged or of another format is put aside and made anew.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};
use shared_types::Seq;
use thiserror::Error;

/// Raised whenever the tables change; older files are rebuilt.
const FORMAT: i64 = 2;

/// Tables that are computed from events and must be equal after a rebuild, with the columns to compare in order.
pub const READ_MODELS: &[(&str, &str)] = &[
    ("files", "path, kind, hash, size, mode, target, seq, op"),
    (
        "operations",
        "first, last, op, ts, source, actor, family, label, events, files, reversible, reverts, undone_by",
    ),
    ("touches", "path, seq, op"),
    ("conversations", "id, title, started, messages, last"),
    ("messages", "conversation, seq, id, ts, role, actor, hash, size, body"),
    ("settings", "key, value, seq"),
    ("checkpoints", "seq, \"commit\", at, ts, message"),
];

const SCHEMA: &str = "
    CREATE TABLE position (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, hash BLOB, size INTEGER NOT NULL,
        mode INTEGER NOT NULL, target TEXT, seq INTEGER NOT NULL, op BLOB NOT NULL) STRICT;
    CREATE TABLE operations (
        op BLOB PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, ts INTEGER NOT NULL,
        source TEXT NOT NULL, actor TEXT NOT NULL, family TEXT NOT NULL, label TEXT NOT NULL,
        events INTEGER NOT NULL, files INTEGER NOT NULL, reversible INTEGER NOT NULL,
        reverts BLOB, undone_by BLOB) STRICT, WITHOUT ROWID;
    CREATE INDEX operations_by_last ON operations (last);
    CREATE INDEX operations_undone ON operations (undone_by) WHERE undone_by IS NOT NULL;
    CREATE TABLE touches (path TEXT, seq INTEGER, op BLOB NOT NULL, PRIMARY KEY (path, seq)) STRICT, WITHOUT ROWID;
    CREATE TABLE conversations (
        id BLOB PRIMARY KEY, title TEXT NOT NULL, started INTEGER NOT NULL, messages INTEGER NOT NULL,
        last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE messages (
        seq INTEGER PRIMARY KEY, id BLOB NOT NULL, conversation BLOB NOT NULL, ts INTEGER NOT NULL,
        role TEXT NOT NULL, actor TEXT NOT NULL, hash BLOB NOT NULL, size INTEGER NOT NULL, body TEXT) STRICT;
    CREATE INDEX messages_by_conversation ON messages (conversation, seq);
    CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE checkpoints (
        at INTEGER PRIMARY KEY, seq INTEGER NOT NULL, \"commit\" TEXT NOT NULL, ts INTEGER NOT NULL,
        message TEXT NOT NULL) STRICT;
    CREATE VIRTUAL TABLE files_text USING fts5(path, body, content='', contentless_delete=1);
    CREATE VIRTUAL TABLE messages_text USING fts5(body, content='', contentless_delete=1);
    CREATE TABLE disk (
        path TEXT PRIMARY KEY, node TEXT NOT NULL, stat BLOB, checked INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE intents (path TEXT PRIMARY KEY, old TEXT, new TEXT) STRICT, WITHOUT ROWID;";

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

/// How far each part has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The read models.
    Rows,
    /// The workspace on disk. Absent as long as nothing is known of what is there.
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
    /// True if the file's own structure is broken. All of it can be computed again.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Sqlite { source, .. } if is_unusable(source))
    }
}

impl Views {
    pub const FILE: &'static str = "views.sqlite";

    /// Opens the read models in a `.choir` folder, making them anew if they are missing, old or damaged.
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

    /// Read models that live only in memory, to compare with.
    pub fn in_memory() -> Result<Self, ViewsError> {
        let path = PathBuf::from(":memory:");
        Self::connect(&path).map_err(|source| ViewsError::Sqlite { path, source })
    }

    /// Empties a file whose damage only showed while it was in use, so that everything in it is computed again.
    pub(crate) fn start_anew(&self) -> Result<(), ViewsError> {
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

    fn connect(path: &Path) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(std::time::Duration::from_secs(5))?;
        conn.set_prepared_statement_cache_capacity(64);
        prepare_file(&conn)?;
        Ok(Self { path: path.to_owned(), conn })
    }

    pub fn position(&self, of: Position) -> Result<Option<Seq>, ViewsError> {
        let mut statement = self.prepare("SELECT seq FROM position WHERE name = ?1")?;
        let seq: Option<i64> = self.map(statement.query_row([of.name()], |row| row.get(0)).optional())?;
        Ok(seq.map(|seq| Seq(seq.unsigned_abs())))
    }

    pub(crate) fn set_position(&self, of: Position, seq: Seq) -> Result<(), ViewsError> {
        let mut statement = self.prepare("INSERT OR REPLACE INTO position (name, seq) VALUES (?1, ?2)")?;
        self.map(statement.execute((of.name(), seq.0 as i64))).map(drop)
    }

    /// Forgets all rows, so that they are computed again; what is known of the disk stays.
    pub fn reset_rows(&self) -> Result<(), ViewsError> {
        let mut script = String::from("BEGIN;");
        for (table, _) in READ_MODELS {
            script += &format!("DELETE FROM {table};");
        }
        script += "INSERT INTO files_text (files_text) VALUES ('delete-all');
                   INSERT INTO messages_text (messages_text) VALUES ('delete-all');
                   DELETE FROM position WHERE name = 'rows'; COMMIT;";
        self.map(self.conn.execute_batch(&script))
    }

    /// Forgets what is known of the disk, so that the whole workspace is compared again.
    pub fn reset_disk(&self) -> Result<(), ViewsError> {
        let script =
            "BEGIN; DELETE FROM disk; DELETE FROM intents; DELETE FROM position WHERE name = 'disk'; COMMIT;";
        self.map(self.conn.execute_batch(script))
    }

    /// Runs a change as one transaction.
    pub(crate) fn transaction<T, E: From<ViewsError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.map(self.conn.execute_batch("BEGIN IMMEDIATE"))?;
        let result = work().and_then(|value| {
            self.map(self.conn.execute_batch("COMMIT"))?;
            Ok(value)
        });
        if result.is_err() && !self.conn.is_autocommit() {
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        result
    }

    /// Makes what was committed so far survive a power cut.
    pub(crate) fn flush(&self) -> Result<(), ViewsError> {
        self.map(self.conn.execute_batch(
            "PRAGMA synchronous = FULL; INSERT OR REPLACE INTO position (name, seq) VALUES ('flush', 0);
             PRAGMA synchronous = NORMAL;",
        ))
    }

    /// Leaves nothing of what was deleted in the write-ahead log; a reader that is in the way keeps it for now.
    pub(crate) fn checkpoint(&self) -> Result<(), ViewsError> {
        self.map(self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, ViewsError> {
        self.map(self.conn.prepare_cached(sql))
    }

    pub(crate) fn map<T>(&self, result: rusqlite::Result<T>) -> Result<T, ViewsError> {
        result.map_err(|source| ViewsError::Sqlite { path: self.path.clone(), source })
    }
}

/// Settings and tables. A file of another format is an error that says so.
fn prepare_file(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384;
         PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
    )?;
    let found: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (found, tables) {
        (FORMAT, _) => Ok(()),
        (0, 0) => conn.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")),
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
