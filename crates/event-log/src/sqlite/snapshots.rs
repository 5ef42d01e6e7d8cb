//! Snapshots: one row per slice, and one without a name for the whole, which holds the version of the view.

use rusqlite::{Connection, OptionalExtension, Row};
use shared_types::{RootHash, Seq};

use super::row;
use crate::{SliceSnapshot, Snapshot};

const WHOLE: &str = "";

pub(super) fn save(conn: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
    let seq = row::number(snapshot.seq);
    conn.prepare_cached("DELETE FROM snapshots WHERE seq = ?1")?.execute([seq])?;
    let mut insert =
        conn.prepare_cached("INSERT INTO snapshots (seq, slice, root, bytes) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute((seq, WHOLE, snapshot.root.as_bytes(), snapshot.version.to_le_bytes().as_slice()))?;
    for slice in &snapshot.slices {
        insert.execute((seq, &slice.name, slice.root.as_bytes(), &slice.bytes))?;
    }
    Ok(())
}

pub(super) fn newest(conn: &Connection, at: Seq) -> rusqlite::Result<Option<Snapshot>> {
    let mut whole = conn.prepare_cached(
        "SELECT seq, root, bytes FROM snapshots WHERE slice = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
    )?;
    let Some(found) = whole.query_row((WHOLE, row::number(at)), bare).optional()? else { return Ok(None) };
    let mut slices = conn.prepare_cached(
        "SELECT slice, root, bytes FROM snapshots WHERE seq = ?1 AND slice <> ?2 ORDER BY rowid",
    )?;
    let slices = slices
        .query_map((row::number(found.seq), WHOLE), |row| {
            Ok(SliceSnapshot { name: row.get(0)?, root: RootHash(row.get(1)?), bytes: row.get(2)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(Snapshot { slices, ..found }))
}

pub(super) fn list(conn: &Connection) -> rusqlite::Result<Vec<Snapshot>> {
    let mut statement =
        conn.prepare_cached("SELECT seq, root, bytes FROM snapshots WHERE slice = ?1 ORDER BY seq")?;
    statement.query_map([WHOLE], bare)?.collect()
}

/// A snapshot without its slices. The oldest rows hold no version.
fn bare(row: &Row<'_>) -> rusqlite::Result<Snapshot> {
    let version: Vec<u8> = row.get(2)?;
    Ok(Snapshot {
        seq: row::seq(row.get(0)?).unwrap_or_default(),
        root: RootHash(row.get(1)?),
        version: version.try_into().map_or(1, u32::from_le_bytes),
        slices: Vec::new(),
    })
}
