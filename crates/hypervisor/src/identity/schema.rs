//! `hypervisor.sqlite`: its tables and how it is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::OpenError;

const FILE: &str = "hypervisor.sqlite";
const KNOWN: i64 = 1;

/// Every commit is flushed: a link that was used stays used after a power cut. Deleted rows are overwritten.
const PRAGMAS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = ON;
    PRAGMA trusted_schema = OFF;";

const TABLES: &str = "
    CREATE TABLE users (
        id      TEXT PRIMARY KEY,
        name    TEXT NOT NULL,
        owner   INTEGER NOT NULL,
        -- What a passkey knows its user by; says nothing about them.
        handle  BLOB NOT NULL UNIQUE,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX one_owner ON users (owner) WHERE owner = 1;

    CREATE TABLE sessions (
        id      TEXT PRIMARY KEY,
        hash    BLOB NOT NULL UNIQUE,
        user    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        created INTEGER NOT NULL,
        seen    INTEGER NOT NULL,
        browser TEXT NOT NULL,
        address TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_of ON sessions (user);

    CREATE TABLE links (
        hash    BLOB PRIMARY KEY,
        user    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE passkeys (
        id         TEXT PRIMARY KEY,
        credential BLOB NOT NULL UNIQUE,
        user       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        name       TEXT NOT NULL,
        -- The public key with its counter, as webauthn-rs writes it.
        key        TEXT NOT NULL,
        created    INTEGER NOT NULL,
        used       INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX passkeys_of ON passkeys (user);

    CREATE TABLE recovery (
        user     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        -- The first letters of the code, which say only which row to compare with.
        selector TEXT NOT NULL,
        argon2   TEXT NOT NULL,
        PRIMARY KEY (user, selector)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE tokens (
        id      TEXT PRIMARY KEY,
        hash    BLOB NOT NULL UNIQUE,
        user    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        name    TEXT NOT NULL,
        scopes  TEXT NOT NULL,
        created INTEGER NOT NULL,
        used    INTEGER,
        expires INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tokens_of ON tokens (user);

    CREATE TABLE invitations (
        id      TEXT PRIMARY KEY,
        hash    BLOB NOT NULL UNIQUE,
        name    TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE audit (
        n       INTEGER PRIMARY KEY AUTOINCREMENT,
        ts      INTEGER NOT NULL,
        -- Absent where nobody was known to ask.
        user    TEXT,
        what    TEXT NOT NULL,
        address TEXT NOT NULL,
        detail  TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_of ON audit (user, n);";

pub(super) fn open(data: &Path) -> Result<Connection, OpenError> {
    make_private_folder(data)?;
    let path = data.join(FILE);
    make_private_file(&path)?;
    let failed = |source| OpenError::Database { path: path.clone(), source };
    let connection = Connection::open(&path).map_err(failed)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    connection.execute_batch(PRAGMAS).map_err(failed)?;
    let found: i64 =
        connection.query_row("SELECT * FROM pragma_user_version", [], |row| row.get(0)).map_err(failed)?;
    match found {
        0 => {
            let batch = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {KNOWN}; COMMIT;");
            connection.execute_batch(&batch).map_err(failed)?;
        }
        KNOWN => {}
        found => return Err(OpenError::Newer { path, found, known: KNOWN }),
    }
    Ok(connection)
}

/// SQLite gives the files beside it the same rights.
fn make_private_file(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let made = options.append(true).create(true).mode(0o600).open(path).map(drop);
    made.map_err(|source| OpenError::Folder { path: path.to_owned(), source })
}

/// Others on the machine have no business in there, not even with hashes.
fn make_private_folder(data: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.map_err(|source| OpenError::Folder { path: data.to_owned(), source })
}
