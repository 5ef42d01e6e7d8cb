//! Snapshots: one row a slice, and one without a name for the whole.

use rusqlite::{Connection, OptionalExtension};
use shared_types::{RootHash, Seq};

use super::row;
use crate::{SliceSnapshot, Snapshot};

const WHOLE: &str = "";

pub(super) fn save(conn: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
    let seq = row::number(snapshot.seq);
    conn.prepare_cached("DELETE FROM snapshots WHERE seq = ?1")?.execute([seq])?;
    let mut insert =
        conn.prepare_cached("INSERT INTO snapshots (seq, slice, root, bytes) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute((seq, WHOLE, snapshot.root.as_bytes(), [].as_slice()))?;
    for slice in &snapshot.slices {
        insert.execute((seq, &slice.name, slice.root.as_bytes(), &slice.bytes))?;
    }
    Ok(())
}

pub(super) fn newest(conn: &Connection, at: Seq) -> rusqlite::Result<Option<Snapshot>> {
    let mut whole = conn.prepare_cached(
        "SELECT seq, root FROM snapshots WHERE slice = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
    )?;
    let found = whole.query_row((WHOLE, row::number(at)), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((number, root)) = found else { return Ok(None) };
    let mut slices = conn.prepare_cached(
        "SELECT slice, root, bytes FROM snapshots WHERE seq = ?1 AND slice <> ?2 ORDER BY rowid",
    )?;
    let slices = slices
        .query_map((number, WHOLE), |row| {
            Ok(SliceSnapshot { name: row.get(0)?, root: RootHash(row.get(1)?), bytes: row.get(2)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(row::seq(number).map(|seq| Snapshot { seq, root: RootHash(root), slices }))
}

pub(super) fn list(conn: &Connection) -> rusqlite::Result<Vec<(Seq, RootHash)>> {
    let mut statement =
        conn.prepare_cached("SELECT seq, root FROM snapshots WHERE slice = ?1 ORDER BY seq")?;
    let rows = statement
        .query_map([WHOLE], |row| Ok((row::seq(row.get(0)?).unwrap_or_default(), RootHash(row.get(1)?))))?;
    rows.collect()
}
