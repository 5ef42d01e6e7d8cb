//! The one connection that writes, and the group commit.
//!
//! An append is checked completely before its first row is written, so a refused one leaves no trace in the group's
//! transaction. `head` moves only with a successful commit; after a failed one the connection is rolled back and the
//! next group starts from the same head.

use std::sync::Arc;

use rusqlite::Connection;
use shared_types::{StoreBuffers, StoredEvent};

use super::{contents, read, row};
use crate::check::check;
use crate::{Append, AppendError, Appended, Head};

/// The connection that writes, with the last durable head.
#[derive(Debug)]
pub(super) struct Writer {
    conn: Connection,
    head: Head,
    buffers: StoreBuffers,
}

impl Writer {
    pub(super) fn new(conn: Connection, head: Head) -> Self {
        Self { conn, head, buffers: StoreBuffers::default() }
    }

    /// Empties the caches. A failure leaves them as they are.
    pub(super) fn release_memory(&self) {
        self.conn.flush_prepared_statement_cache();
        let _ = self.conn.execute_batch("PRAGMA shrink_memory");
    }

    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Appends a group with one flush.
    pub(super) fn append(&mut self, group: &[Append]) -> Vec<Result<Appended, AppendError>> {
        let (head, buffers) = (self.head, &mut self.buffers);
        match in_transaction(&self.conn, |conn| insert_group(conn, head, buffers, group)) {
            Ok((head, answers)) => {
                self.head = head;
                answers
            }
            Err(error) => refuse_all(group.len(), Arc::new(error)),
        }
    }

    /// Inserts events that follow the head and carry their own hashes, with one flush.
    pub(super) fn insert_linked(&mut self, events: &[StoredEvent<'_>]) -> rusqlite::Result<()> {
        in_transaction(&self.conn, |conn| {
            let mut statement = conn.prepare_cached(row::INSERT)?;
            events.iter().try_for_each(|event| row::insert(&mut statement, event))
        })?;
        if let Some(last) = events.last() {
            self.head = Head { seq: last.seq, hash: last.hash };
        }
        Ok(())
    }

    /// Any other change to the database, durable when this returns.
    pub(super) fn change<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        in_transaction(&self.conn, work)
    }

    /// A change without a flush: a power cut may lose it as a whole, never in part.
    pub(super) fn change_unflushed<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.conn.execute_batch("PRAGMA synchronous = NORMAL")?;
        let result = in_transaction(&self.conn, work);
        self.conn.execute_batch("PRAGMA synchronous = FULL")?;
        result
    }

    /// A WAL checkpoint: moves the write-ahead log into the database and empties it. False if a reader prevented that.
    pub(super) fn wal_checkpoint(&mut self) -> rusqlite::Result<bool> {
        let busy: i64 = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        Ok(busy == 0)
    }
}

fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

fn in_transaction<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // Only a panic or a failed rollback leaves a transaction open.
    if !conn.is_autocommit() {
        run(conn, "ROLLBACK")?;
    }
    run(conn, "BEGIN IMMEDIATE")?;
    let result = work(conn).and_then(|value| run(conn, "COMMIT").map(|()| value));
    // SQLite may have rolled back by itself, for example on a full disk.
    if result.is_err() && !conn.is_autocommit() {
        let _ = run(conn, "ROLLBACK");
    }
    result
}

type Answers = Vec<Result<Appended, AppendError>>;

fn insert_group(
    conn: &Connection,
    mut head: Head,
    buffers: &mut StoreBuffers,
    group: &[Append],
) -> rusqlite::Result<(Head, Answers)> {
    let mut events = conn.prepare_cached(row::INSERT)?;
    let mut commands =
        conn.prepare_cached("INSERT OR IGNORE INTO commands (id, first, last) VALUES (?1, ?2, ?3)")?;
    let mut named = Vec::with_capacity(group.len());
    let mut answers = Vec::with_capacity(group.len());
    for append in group {
        let answer = match check(append, head.seq) {
            Ok(answer) => answer,
            Err(refusal) => {
                answers.push(read::answer(conn, append.command)?.ok_or(refusal));
                continue;
            }
        };
        let ends = (row::number(answer.first), row::number(answer.last));
        if commands.execute((append.command.as_bytes(), ends.0, ends.1))? == 0 {
            // A resend that knows the newest seq: its first answer is still valid.
            answers.push(Ok(read::answer(conn, append.command)?.unwrap_or(answer)));
            continue;
        }
        for event in &append.events {
            let stored = event.store_into(&head.hash, buffers);
            row::insert(&mut events, &stored)?;
            head = Head { seq: stored.seq, hash: stored.hash };
        }
        named.extend(append.contents.iter().map(|(hash, bytes)| (hash, bytes)));
        answers.push(Ok(answer));
    }
    // Sorted by hash, so that the index is walked once instead of at random.
    named.sort_unstable_by_key(|(hash, _)| *hash);
    let mut insert_content = conn.prepare_cached(contents::INSERT)?;
    for (hash, bytes) in named {
        insert_content.execute((hash.as_bytes(), bytes))?;
    }
    Ok((head, answers))
}

fn refuse_all(count: usize, error: Arc<rusqlite::Error>) -> Answers {
    (0..count).map(|_| Err(AppendError::Storage(Box::new(Arc::clone(&error))))).collect()
}
