//! The SQL of the vault. The secrets in the rows are sealed; access control is up to the caller.

use rusqlite::{Connection, OptionalExtension, Row, params};
use shared_types::{Timestamp, UserId};

use super::master_key::{Fingerprint, Sealed};
use super::{EntryId, VaultError};

/// One row of the vault.
#[derive(Debug)]
pub(super) struct StoredEntry {
    pub(super) entry_id: EntryId,
    pub(super) sealed: Sealed,
    pub(super) set: Timestamp,
}

const COLUMNS: &str = "user, provider, nonce, sealed, set_at";

fn entry_from_row(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    Ok(StoredEntry {
        entry_id: EntryId { user: row.get(0)?, provider: row.get(1)? },
        sealed: Sealed { nonce: row.get(2)?, bytes: row.get(3)? },
        set: Timestamp::from_millis(row.get(4)?),
    })
}

/// The fingerprint of the master key that sealed the entries. `None` if nothing was ever sealed.
pub(super) fn fingerprint(connection: &Connection) -> Result<Option<Fingerprint>, VaultError> {
    let sql = "SELECT fingerprint FROM vault_master";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
}

pub(super) fn put_fingerprint(connection: &Connection, fingerprint: &Fingerprint) -> Result<(), VaultError> {
    let sql = "INSERT INTO vault_master (one, fingerprint) VALUES (1, ?1)
               ON CONFLICT (one) DO UPDATE SET fingerprint = excluded.fingerprint";
    connection.execute(sql, [fingerprint])?;
    Ok(())
}

/// Which master key sealed the entries, if there are any.
#[derive(Debug)]
pub(super) struct SealState {
    pub(super) fingerprint: Option<Fingerprint>,
    /// There are no entries, so any master key will do.
    pub(super) empty: bool,
}

pub(super) fn seal_state(connection: &Connection) -> Result<SealState, VaultError> {
    Ok(SealState { fingerprint: fingerprint(connection)?, empty: is_empty(connection)? })
}

pub(super) fn is_empty(connection: &Connection) -> Result<bool, VaultError> {
    Ok(connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM vault)", [], |row| row.get(0))?)
}

/// The number of entries of the same user, or of shared entries, apart from this one.
pub(super) fn count_others(connection: &Connection, entry_id: &EntryId) -> Result<u32, VaultError> {
    let sql = "SELECT count(*) FROM vault WHERE user IS ?1 AND provider <> ?2";
    Ok(connection.query_row(sql, params![entry_id.user, entry_id.provider], |row| row.get(0))?)
}

pub(super) fn put(
    connection: &Connection,
    entry_id: &EntryId,
    sealed: &Sealed,
    now: Timestamp,
) -> Result<(), VaultError> {
    connection.execute(
        "INSERT INTO vault (user, provider, nonce, sealed, set_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (coalesce(user, ''), provider)
         DO UPDATE SET nonce = excluded.nonce, sealed = excluded.sealed, set_at = excluded.set_at",
        params![entry_id.user, entry_id.provider, sealed.nonce, sealed.bytes, now.millis()],
    )?;
    Ok(())
}

/// Replaces the sealed secret of a row and keeps its time.
pub(super) fn reseal(connection: &Connection, entry_id: &EntryId, sealed: &Sealed) -> Result<(), VaultError> {
    let sql = "UPDATE vault SET nonce = ?3, sealed = ?4 WHERE user IS ?1 AND provider = ?2";
    connection.execute(sql, params![entry_id.user, entry_id.provider, sealed.nonce, sealed.bytes])?;
    Ok(())
}

/// Removes a row. Returns whether it existed.
pub(super) fn remove(connection: &Connection, entry_id: &EntryId) -> Result<bool, VaultError> {
    let sql = "DELETE FROM vault WHERE user IS ?1 AND provider = ?2";
    Ok(connection.execute(sql, params![entry_id.user, entry_id.provider])? > 0)
}

/// The user's own entry for a provider, else the shared one.
pub(super) fn find(
    connection: &Connection,
    user: &UserId,
    provider: &str,
) -> Result<Option<StoredEntry>, VaultError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM vault WHERE provider = ?2 AND (user = ?1 OR user IS NULL)
         ORDER BY user IS NULL LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([user.as_str(), provider], entry_from_row).optional()?)
}

/// The user's own entries and the shared ones, by provider.
pub(super) fn visible(connection: &Connection, user: &UserId) -> Result<Vec<StoredEntry>, VaultError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM vault WHERE user = ?1 OR user IS NULL ORDER BY provider, user IS NULL"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_map([user.as_str()], entry_from_row)?.collect::<Result<_, _>>()?)
}

pub(super) fn all(connection: &Connection) -> Result<Vec<StoredEntry>, VaultError> {
    let mut statement = connection.prepare(&format!("SELECT {COLUMNS} FROM vault"))?;
    Ok(statement.query_map([], entry_from_row)?.collect::<Result<_, _>>()?)
}
