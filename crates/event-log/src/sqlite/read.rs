//! Reading events: in order with the chain checked, by operation, by run; and the head.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension};
use shared_types::{ChainHash, CommandId, OpId, RunId, Seq, StoredEvent};

use super::fault::Fault;
use super::row;
use crate::{Appended, Head};

const UNLINKED: &str = "its hash does not follow from the event before it";
const MISSING: &str = "the event is missing";

/// Visits events from `from` on. `head` is a seq that must exist: a log that ends before it is broken.
pub(super) fn scan(
    conn: &Connection,
    from: Seq,
    head: Seq,
    visit: &mut dyn FnMut(&StoredEvent<'_>) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut next = from.max(Seq(1));
    let Some(mut previous) = hash_before(conn, next, head)? else { return Ok(()) };
    let mut buffer = Vec::new();
    let mut statement = conn.prepare_cached(row::FROM)?;
    let mut rows = statement.query([row::number(next)]).map_err(|e| Fault::at(next, e))?;
    while let Some(row) = rows.next().map_err(|e| Fault::at(next, e))? {
        let event = row::event(row, next)?;
        if event.seq != next {
            return Err(Fault::broken(next, MISSING));
        }
        if event.link_into(&previous, &mut buffer) != event.hash {
            return Err(Fault::broken(next, UNLINKED));
        }
        if visit(&event).is_break() {
            return Ok(());
        }
        previous = event.hash;
        next = next.next();
    }
    if next <= head { Err(Fault::broken(next, MISSING)) } else { Ok(()) }
}

/// The hash of the event before `place`; none if the log ends earlier.
fn hash_before(conn: &Connection, place: Seq, head: Seq) -> Result<Option<ChainHash>, Fault> {
    let before = Seq(place.0 - 1);
    match hash_at(conn, before) {
        Err(Fault::Broken { .. }) if before > head => Ok(None),
        other => other.map(Some),
    }
}

/// The stored hash of one event, unchecked; all zeros before the first.
pub(super) fn hash_at(conn: &Connection, seq: Seq) -> Result<ChainHash, Fault> {
    if seq == Seq::ZERO {
        return Ok(ChainHash::default());
    }
    let mut statement = conn.prepare_cached("SELECT hash FROM events WHERE seq = ?1")?;
    let found = statement
        .query_row([row::number(seq)], |row| Ok(row.get_ref(0)?.as_blob().ok().map(<[u8; 32]>::try_from)))
        .optional()
        .map_err(|e| Fault::at(seq, e))?;
    match found {
        Some(Some(Ok(hash))) => Ok(ChainHash(hash)),
        Some(_) => Err(Fault::broken(seq, "its column hash holds no hash")),
        None => Err(Fault::broken(seq, MISSING)),
    }
}

pub(super) fn operation(conn: &Connection, op: OpId, head: Seq) -> Result<Vec<StoredEvent<'static>>, Fault> {
    selected(conn, row::OF_OPERATION, op.as_bytes(), head)
}

pub(super) fn run(conn: &Connection, run: RunId, head: Seq) -> Result<Vec<StoredEvent<'static>>, Fault> {
    selected(conn, row::OF_RUN, run.as_bytes(), head)
}

/// The events that an index selects, each checked against the event before it in the log.
fn selected(
    conn: &Connection,
    sql: &str,
    id: &[u8; 16],
    head: Seq,
) -> Result<Vec<StoredEvent<'static>>, Fault> {
    let mut events: Vec<StoredEvent<'static>> = Vec::new();
    let mut buffer = Vec::new();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let seq = row.get(0).ok().and_then(row::seq).filter(|seq| *seq > Seq::ZERO).unwrap_or(Seq(1));
        let event = row::event(row, seq)?;
        let previous = match events.last() {
            Some(last) if last.seq.next() == seq => Some(last.hash),
            _ => hash_before(conn, seq, head)?,
        };
        if previous.is_none_or(|previous| event.link_into(&previous, &mut buffer) != event.hash) {
            return Err(Fault::broken(seq, UNLINKED));
        }
        events.push(event.into_owned());
    }
    Ok(events)
}

pub(super) fn answer(conn: &Connection, command: CommandId) -> rusqlite::Result<Option<Appended>> {
    let mut statement = conn.prepare_cached("SELECT first, last FROM commands WHERE id = ?1")?;
    let range = statement.query_row([command.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(range.and_then(|(first, last)| Some(Appended { first: row::seq(first)?, last: row::seq(last)? })))
}

/// The last seq by the index alone, also when that event is broken.
pub(super) fn last_seq(conn: &Connection) -> rusqlite::Result<Seq> {
    let last: Option<i64> =
        conn.prepare_cached("SELECT max(seq) FROM events")?.query_row([], |row| row.get(0))?;
    Ok(last.and_then(row::seq).unwrap_or_default())
}

/// The newest event, checked against the one before it. Also checks for signs of missing events.
pub(super) fn checked_head(conn: &Connection) -> Result<Head, Fault> {
    let last = last_seq(conn).map_err(|e| Fault::at(Seq(1), e))?;
    let first: Option<i64> = conn.query_row("SELECT min(seq) FROM events", [], |row| row.get(0))?;
    if first.is_some_and(|first| first != 1) {
        return Err(Fault::broken(Seq(1), MISSING));
    }
    let snapshot: Option<i64> = conn.query_row("SELECT max(seq) FROM snapshots", [], |row| row.get(0))?;
    if snapshot.and_then(row::seq).is_some_and(|snapshot| snapshot > last) {
        return Err(Fault::broken(last.next(), "the event is missing: there is a snapshot of a later one"));
    }
    let mut head = Head::default();
    if last > Seq::ZERO {
        scan(conn, last, last, &mut |event| {
            head = Head { seq: event.seq, hash: event.hash };
            ControlFlow::Continue(())
        })?;
    }
    Ok(head)
}
