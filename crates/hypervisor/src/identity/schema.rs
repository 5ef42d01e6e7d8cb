//! `hypervisor.sqlite`: its tables and how it is opened.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::OpenError;

const FILE: &str = "hypervisor.sqlite";
const KNOWN: i64 = 2;
/// How long to wait for somebody else who has the file.
const PATIENCE: Duration = Duration::from_secs(5);

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

/// Since 2: the keys of model providers. See `vault`.
const VAULT: &str = "
    CREATE TABLE vault (
        -- Absent where the owner shares it with everybody.
        user     TEXT REFERENCES users (id) ON DELETE CASCADE,
        provider TEXT NOT NULL,
        nonce    BLOB NOT NULL,
        sealed   BLOB NOT NULL,
        set_at   INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX vault_places ON vault (coalesce(user, ''), provider);

    CREATE TABLE vault_master (
        one         INTEGER PRIMARY KEY CHECK (one = 1),
        -- Says which master key everything is sealed with, and nothing about it.
        fingerprint BLOB NOT NULL
    ) STRICT;";

pub(super) fn open(data: &Path) -> Result<Connection, OpenError> {
    make_private_folder(data)?;
    let path = data.join(FILE);
    make_private_file(&path)?;
    let failed = |source| OpenError::Database { path: path.clone(), source };
    let mut connection = Connection::open(&path).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    prepare(&connection).map_err(failed)?;
    if version(&connection).map_err(failed)? != KNOWN {
        // Looked at again under the lock: a command and the server may both be the first.
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let missing = match version(&tx).map_err(failed)? {
            0 => [TABLES, VAULT].as_slice(),
            1 => &[VAULT],
            KNOWN => &[],
            found => return Err(OpenError::Newer { path, found, known: KNOWN }),
        };
        missing.iter().try_for_each(|batch| tx.execute_batch(batch)).map_err(failed)?;
        tx.pragma_update(None, "user_version", KNOWN).map_err(failed)?;
        tx.commit().map_err(failed)?;
    }
    Ok(connection)
}

/// Whoever turns on the WAL needs the file alone, and SQLite does not wait for that by itself.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        match connection.execute_batch(PRAGMAS) {
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && started.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT * FROM pragma_user_version", [], |row| row.get(0))
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
