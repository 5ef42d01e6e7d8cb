//! Rows of table `events`, in the order of its columns. A row with an impossible value is a break of the chain.

use std::borrow::Cow;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Row};
use shared_types::{ChainHash, EventId, OpId, RunId, Seq, Source, StoredEvent, Timestamp};

use super::fault::Fault;

/// All columns of the events from a seq on, in order.
pub(super) const FROM: &str = "SELECT seq, id, ts, source, name, version, op, actor, run_id, cause, taint, payload, \
                               hash FROM events WHERE seq >= ?1 ORDER BY seq";
pub(super) const OF_OPERATION: &str = "SELECT seq, id, ts, source, name, version, op, actor, run_id, cause, taint, \
                                       payload, hash FROM events WHERE op = ?1 ORDER BY seq";
pub(super) const OF_RUN: &str = "SELECT seq, id, ts, source, name, version, op, actor, run_id, cause, taint, payload, \
                                 hash FROM events WHERE run_id = ?1 ORDER BY seq";
pub(super) const INSERT: &str = "INSERT INTO events (seq, id, ts, source, name, version, op, actor, run_id, cause, \
                                 taint, payload, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
                                 ?13)";

/// A seq as an SQLite integer. No log comes near the limit of either type.
pub(super) fn number(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// A seq from an SQLite integer.
pub(super) fn seq(value: i64) -> Option<Seq> {
    u64::try_from(value).ok().map(Seq)
}

pub(super) fn insert(statement: &mut CachedStatement<'_>, event: &StoredEvent<'_>) -> rusqlite::Result<()> {
    statement.execute(rusqlite::params![
        number(event.seq),
        event.id.as_bytes(),
        event.ts.millis(),
        event.source.as_str(),
        event.name,
        event.version,
        event.op.as_bytes(),
        event.actor,
        event.run_id.as_ref().map(|id| id.as_bytes().as_slice()),
        event.cause.as_ref().map(|id| id.as_bytes().as_slice()),
        event.taint,
        event.payload,
        event.hash.as_bytes(),
    ])?;
    Ok(())
}

/// Borrows an event from its row. `place` is its expected seq, for errors.
pub(super) fn event<'r>(row: &'r Row<'_>, place: Seq) -> Result<StoredEvent<'r>, Fault> {
    let columns = Columns { row, place };
    Ok(StoredEvent {
        seq: seq(columns.integer(0, "seq")?).ok_or_else(|| columns.bad("seq"))?,
        id: EventId::from_bytes(columns.bytes(1, "id")?),
        ts: Timestamp::from_millis(columns.integer(2, "ts")?),
        source: Source::parse(columns.text(3, "source")?).ok_or_else(|| columns.bad("source"))?,
        name: Cow::Borrowed(columns.text(4, "name")?),
        version: u16::try_from(columns.integer(5, "version")?).map_err(|_| columns.bad("version"))?,
        op: OpId::from_bytes(columns.bytes(6, "op")?),
        actor: Cow::Borrowed(columns.text(7, "actor")?),
        run_id: columns.optional(8, "run_id")?.map(RunId::from_bytes),
        cause: columns.optional(9, "cause")?.map(EventId::from_bytes),
        taint: Cow::Borrowed(columns.text(10, "taint")?),
        payload: Cow::Borrowed(columns.text(11, "payload")?),
        hash: ChainHash(columns.bytes(12, "hash")?),
    })
}

struct Columns<'r, 's> {
    row: &'r Row<'s>,
    place: Seq,
}

impl<'r> Columns<'r, '_> {
    fn bad(&self, name: &str) -> Fault {
        Fault::broken(self.place, format!("its column {name} holds no {name}"))
    }

    fn get(&self, index: usize, name: &str) -> Result<ValueRef<'r>, Fault> {
        self.row.get_ref(index).map_err(|_| self.bad(name))
    }

    fn integer(&self, index: usize, name: &str) -> Result<i64, Fault> {
        self.get(index, name)?.as_i64().map_err(|_| self.bad(name))
    }

    fn text(&self, index: usize, name: &str) -> Result<&'r str, Fault> {
        self.get(index, name)?.as_str().map_err(|_| self.bad(name))
    }

    fn bytes<const N: usize>(&self, index: usize, name: &str) -> Result<[u8; N], Fault> {
        let blob = self.get(index, name)?.as_blob().map_err(|_| self.bad(name))?;
        blob.try_into().map_err(|_| self.bad(name))
    }

    fn optional<const N: usize>(&self, index: usize, name: &str) -> Result<Option<[u8; N]>, Fault> {
        match self.get(index, name)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(_) | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
                self.bytes(index, name).map(Some)
            }
        }
    }
}
