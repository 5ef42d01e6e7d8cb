//! Small contents in the database, and the list of purged hashes.

use rusqlite::{Connection, OptionalExtension};
use shared_types::ContentHash;

/// The stored bytes behind a hash, unchecked.
pub(super) fn bytes(conn: &Connection, hash: &ContentHash) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut statement = conn.prepare_cached("SELECT bytes FROM contents WHERE hash = ?1")?;
    statement.query_row([hash.as_bytes()], |row| row.get(0)).optional()
}

pub(super) fn size(conn: &Connection, hash: &ContentHash) -> rusqlite::Result<Option<u64>> {
    let mut statement = conn.prepare_cached("SELECT length(bytes) FROM contents WHERE hash = ?1")?;
    let size = statement.query_row([hash.as_bytes()], |row| row.get::<_, i64>(0)).optional()?;
    Ok(size.map(|size| u64::try_from(size).unwrap_or_default()))
}

pub(super) fn has(conn: &Connection, hash: &ContentHash) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM contents WHERE hash = ?1")?.exists([hash.as_bytes()])
}

pub(super) fn is_purged(conn: &Connection, hash: &ContentHash) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM purged WHERE hash = ?1")?.exists([hash.as_bytes()])
}

pub(super) const INSERT: &str = "INSERT OR IGNORE INTO contents (hash, bytes) VALUES (?1, ?2)";

pub(super) fn insert(conn: &Connection, hash: &ContentHash, bytes: &[u8]) -> rusqlite::Result<()> {
    conn.prepare_cached(INSERT)?.execute((hash.as_bytes(), bytes)).map(drop)
}

/// Removes a row; the database overwrites its bytes. Returns whether it existed.
pub(super) fn delete(conn: &Connection, hash: &ContentHash) -> rusqlite::Result<bool> {
    Ok(conn.prepare_cached("DELETE FROM contents WHERE hash = ?1")?.execute([hash.as_bytes()])? > 0)
}

pub(super) fn mark_purged(conn: &Connection, hash: &ContentHash) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT OR IGNORE INTO purged (hash) VALUES (?1)")?
        .execute([hash.as_bytes()])
        .map(drop)
}

pub(super) fn each(conn: &Connection, visit: &mut dyn FnMut(ContentHash, u64)) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached("SELECT hash, length(bytes) FROM contents")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        visit(ContentHash(row.get(0)?), u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default());
    }
    Ok(())
}
