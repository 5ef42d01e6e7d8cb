//! The tables of `state.sqlite`, as a list of migration steps.
//!
//! A released step is never changed; a new version is a new step at the end. The number of steps taken is SQLite's
//! `user_version`. Before an existing database is migrated, a backup of it is made and flushed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;
use shared_types::UserId;

use super::fault::open_error;
use crate::OpenError;
use crate::disk::{at, remove_file, sync_folder};

const STEPS: [&str; 3] = [
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
     CREATE TABLE events (
         seq INTEGER PRIMARY KEY,
         id BLOB NOT NULL,
         ts INTEGER NOT NULL,
         source TEXT NOT NULL,
         name TEXT NOT NULL,
         version INTEGER NOT NULL,
         op BLOB NOT NULL,
         actor TEXT NOT NULL,
         run_id BLOB,
         cause BLOB,
         taint TEXT NOT NULL,
         payload TEXT NOT NULL,
         hash BLOB NOT NULL
     ) STRICT;
     CREATE INDEX events_by_op ON events (op);
     CREATE TABLE commands (
         id BLOB PRIMARY KEY,
         first INTEGER NOT NULL,
         last INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE contents (hash BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL) STRICT;
     CREATE TABLE snapshots (
         seq INTEGER NOT NULL,
         slice TEXT NOT NULL,
         root BLOB NOT NULL,
         bytes BLOB NOT NULL,
         PRIMARY KEY (seq, slice)
     ) STRICT;",
    "CREATE TABLE purged (hash BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;",
    "CREATE INDEX events_by_run ON events (run_id) WHERE run_id IS NOT NULL;",
];

/// Empty temporary tables for those that an older, read-only log lacks. A missing index needs none.
const STAND_INS: [&str; 3] = ["", "CREATE TEMP TABLE purged (hash BLOB PRIMARY KEY);", ""];

/// The schema version that this program writes.
pub(super) const KNOWN: i64 = STEPS.len() as i64;

/// The schema version of a database; zero if its creation was not finished.
pub(super) fn version(conn: &Connection) -> Result<i64, OpenError> {
    let found = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(open_error)?;
    if found > KNOWN {
        return Err(OpenError::TooNew { found, known: KNOWN });
    }
    Ok(found)
}

fn steps_after(version: i64) -> impl Iterator<Item = (i64, &'static str)> {
    (1..).zip(STEPS).filter(move |(number, _)| *number > version)
}

/// All steps and the user's id in one transaction: a crash leaves either a complete log or none.
pub(super) fn create(conn: &mut Connection, user: &UserId) -> rusqlite::Result<()> {
    let transaction = conn.transaction()?;
    for (_, sql) in steps_after(0) {
        transaction.execute_batch(sql)?;
    }
    transaction.execute("INSERT INTO meta (key, value) VALUES ('user', ?1)", [user.as_str()])?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    transaction.commit()
}

/// Migrates an older database to the current version, after a backup.
pub(super) fn migrate(conn: &mut Connection, path: &Path, from: i64) -> Result<(), OpenError> {
    if from == KNOWN {
        return Ok(());
    }
    back_up(conn, &backup_path(path, from))?;
    steps_after(from).try_for_each(|(number, sql)| step(conn, number, sql)).map_err(open_error)
}

fn step(conn: &mut Connection, number: i64, sql: &str) -> rusqlite::Result<()> {
    let transaction = conn.transaction()?;
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "user_version", number)?;
    transaction.commit()
}

pub(super) fn stand_in(conn: &Connection, version: i64) -> rusqlite::Result<()> {
    (1..)
        .zip(STAND_INS)
        .filter(|(number, _)| *number > version)
        .try_for_each(|(_, sql)| conn.execute_batch(sql))
}

/// The path of the backup of an older version.
fn backup_path(path: &Path, version: i64) -> PathBuf {
    path.with_extension(format!("sqlite.v{version}.backup"))
}

fn back_up(conn: &Connection, target: &Path) -> Result<(), OpenError> {
    let unfinished = target.with_extension("unfinished");
    let storage = |e| OpenError::Storage(Box::new(e));
    remove_file(&unfinished).map_err(storage)?;
    let copy = || {
        let mut copy = Connection::open(&unfinished)?;
        Backup::new(conn, &mut copy)?.run_to_completion(4096, Duration::ZERO, None)?;
        copy.close().map_err(|(_, e)| e)
    };
    copy().map_err(open_error)?;
    File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .map_err(at("flush", &unfinished))
        .map_err(storage)?;
    std::fs::rename(&unfinished, target).map_err(at("name", target)).map_err(storage)?;
    target.parent().map_or(Ok(()), sync_folder).map_err(storage)
}

/// The backups next to a database. A purge must reach their bytes too.
pub(super) fn backups(path: &Path) -> Vec<PathBuf> {
    (1..KNOWN).map(|version| backup_path(path, version)).filter(|backup| backup.exists()).collect()
}
