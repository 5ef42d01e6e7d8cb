//! The rows of the vault, as SQL. What is in them is sealed; who may see them is decided above.

use rusqlite::{Connection, OptionalExtension, Row, params};
use shared_types::{Timestamp, UserId};

use super::master::{Fingerprint, Sealed};
use super::{Place, VaultError};

/// One row.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) place: Place,
    pub(super) sealed: Sealed,
    pub(super) set: Timestamp,
}

const COLUMNS: &str = "user, provider, nonce, sealed, set_at";

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        place: Place { user: row.get(0)?, provider: row.get(1)? },
        sealed: Sealed { nonce: row.get(2)?, bytes: row.get(3)? },
        set: Timestamp::from_millis(row.get(4)?),
    })
}

/// The fingerprint of the key that everything is sealed with, once there was anything.
pub(super) fn fingerprint(connection: &Connection) -> Result<Option<Fingerprint>, VaultError> {
    let sql = "SELECT fingerprint FROM vault_master";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
}

pub(super) fn put_fingerprint(connection: &Connection, print: &Fingerprint) -> Result<(), VaultError> {
    let sql = "INSERT INTO vault_master (one, fingerprint) VALUES (1, ?1)
               ON CONFLICT (one) DO UPDATE SET fingerprint = excluded.fingerprint";
    connection.execute(sql, [print])?;
    Ok(())
}

/// How the store stands towards master keys.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) fingerprint: Option<Fingerprint>,
    /// Nothing is sealed, so any key will do.
    pub(super) empty: bool,
}

pub(super) fn standing(connection: &Connection) -> Result<Standing, VaultError> {
    Ok(Standing { fingerprint: fingerprint(connection)?, empty: is_empty(connection)? })
}

pub(super) fn is_empty(connection: &Connection) -> Result<bool, VaultError> {
    Ok(connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM vault)", [], |row| row.get(0))?)
}

/// How many a user has, other than at this place; or how many are shared.
pub(super) fn others(connection: &Connection, place: &Place) -> Result<u32, VaultError> {
    let sql = "SELECT count(*) FROM vault WHERE user IS ?1 AND provider <> ?2";
    Ok(connection.query_row(sql, params![place.user, place.provider], |row| row.get(0))?)
}

pub(super) fn put(
    connection: &Connection,
    place: &Place,
    sealed: &Sealed,
    now: Timestamp,
) -> Result<(), VaultError> {
    connection.execute(
        "INSERT INTO vault (user, provider, nonce, sealed, set_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (coalesce(user, ''), provider)
         DO UPDATE SET nonce = excluded.nonce, sealed = excluded.sealed, set_at = excluded.set_at",
        params![place.user, place.provider, sealed.nonce, sealed.bytes, now.millis()],
    )?;
    Ok(())
}

/// Seals a row anew without a change to when it was set.
pub(super) fn reseal(connection: &Connection, place: &Place, sealed: &Sealed) -> Result<(), VaultError> {
    let sql = "UPDATE vault SET nonce = ?3, sealed = ?4 WHERE user IS ?1 AND provider = ?2";
    connection.execute(sql, params![place.user, place.provider, sealed.nonce, sealed.bytes])?;
    Ok(())
}

/// Removes a row and says whether there was one.
pub(super) fn remove(connection: &Connection, place: &Place) -> Result<bool, VaultError> {
    let sql = "DELETE FROM vault WHERE user IS ?1 AND provider = ?2";
    Ok(connection.execute(sql, params![place.user, place.provider])? > 0)
}

/// What a user gets for a provider: their own before the shared one.
pub(super) fn find(
    connection: &Connection,
    user: &UserId,
    provider: &str,
) -> Result<Option<Stored>, VaultError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM vault WHERE provider = ?2 AND (user = ?1 OR user IS NULL)
         ORDER BY user IS NULL LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([user.as_str(), provider], stored).optional()?)
}

/// What a user may know of: their own and the shared ones, by name.
pub(super) fn visible(connection: &Connection, user: &UserId) -> Result<Vec<Stored>, VaultError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM vault WHERE user = ?1 OR user IS NULL ORDER BY provider, user IS NULL"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_map([user.as_str()], stored)?.collect::<Result<_, _>>()?)
}

pub(super) fn all(connection: &Connection) -> Result<Vec<Stored>, VaultError> {
    let mut statement = connection.prepare(&format!("SELECT {COLUMNS} FROM vault"))?;
    Ok(statement.query_map([], stored)?.collect::<Result<_, _>>()?)
}
