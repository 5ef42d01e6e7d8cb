//! The schema of `hypervisor.sqlite`, and opening it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::OpenError;

const FILE_NAME: &str = "hypervisor.sqlite";
const SCHEMA_VERSION: i64 = 2;
/// How long to wait while another process has locked the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Every commit is flushed: a used link stays used after a power cut. Deleted rows are overwritten.
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
        -- The random WebAuthn user handle.
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
        -- The first letters of the code; they select the row to compare with.
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
        -- NULL if the user is unknown, as for a refused sign-in.
        user    TEXT,
        what    TEXT NOT NULL,
        address TEXT NOT NULL,
        detail  TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_of ON audit (user, n);";

/// Added in version 2: the keys of model providers. See `vault`.
const VAULT: &str = "
    CREATE TABLE vault (
        -- NULL if the owner shares the key with all users.
        user     TEXT REFERENCES users (id) ON DELETE CASCADE,
        provider TEXT NOT NULL,
        nonce    BLOB NOT NULL,
        sealed   BLOB NOT NULL,
        set_at   INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX vault_places ON vault (coalesce(user, ''), provider);

    CREATE TABLE vault_master (
        one         INTEGER PRIMARY KEY CHECK (one = 1),
        -- Identifies the master key that sealed all entries, without revealing it.
        fingerprint BLOB NOT NULL
    ) STRICT;";

pub(super) fn open(data: &Path) -> Result<Connection, OpenError> {
    make_private_folder(data)?;
    let path = data.join(FILE_NAME);
    make_private_file(&path)?;
    let failed = |source| OpenError::Database { path: path.clone(), source };
    let mut connection = Connection::open(&path).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    prepare(&connection).map_err(failed)?;
    if version(&connection).map_err(failed)? != SCHEMA_VERSION {
        // Read the version again under the lock: another process may have created the tables meanwhile.
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let missing = match version(&tx).map_err(failed)? {
            0 => [TABLES, VAULT].as_slice(),
            1 => &[VAULT],
            SCHEMA_VERSION => &[],
            found => return Err(OpenError::Newer { path, found, known: SCHEMA_VERSION }),
        };
        missing.iter().try_for_each(|batch| tx.execute_batch(batch)).map_err(failed)?;
        tx.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(failed)?;
        tx.commit().map_err(failed)?;
    }
    Ok(connection)
}

/// Switching to WAL mode needs exclusive access, and SQLite's busy timeout does not cover that, so retry here.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        match connection.execute_batch(PRAGMAS) {
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < BUSY_TIMEOUT =>
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

/// Creates the database file, accessible to this system user only. SQLite gives its WAL files the same permissions.
fn make_private_file(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let created = options.append(true).create(true).mode(0o600).open(path).map(drop);
    created.map_err(|source| OpenError::Folder { path: path.to_owned(), source })
}

/// Creates the data folder, accessible to this system user only.
fn make_private_folder(data: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    created.map_err(|source| OpenError::Folder { path: data.to_owned(), source })
}
