//! [`EventLog`] on SQLite and blobs.

use std::collections::HashMap;
use std::io::{self, Cursor, Read};
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use shared_types::{CommandId, ContentHash, ContentRef, OpId, RunId, Seq, StoredEvent, UserId};
use thiserror::Error;

use super::{Access, SqliteLog, contents, read, schema, snapshots};
use crate::check::check_early;
use crate::content::{ReadStart, read_start};
use crate::disk::remove_file;
use crate::references::keep_named;
use crate::{
    Append, AppendError, Appended, ContentError, EventLog, Head, HeadListener, ReadError, Snapshot, Staged,
};

/// Why purged bytes are still on the disk.
#[derive(Debug, Clone, Copy, Error)]
#[error("the log is being read, so the bytes are still in its write-ahead log; purge them once more")]
struct ReaderInTheWay;

impl EventLog for SqliteLog {
    fn user(&self) -> &UserId {
        &self.user
    }

    fn head(&self) -> Head {
        match self.access {
            Access::Writing { .. } => self.signal.get(),
            Access::Reading => self.refresh_head(),
        }
    }

    fn append(&self, group: &[Append]) -> Vec<Result<Appended, AppendError>> {
        let mut writer = match self.writer() {
            Ok(writer) => writer,
            Err(error) => return group.iter().map(|_| Err(AppendError::Storage(Box::new(error)))).collect(),
        };
        let answers = writer.append(group);
        // Published under the writer's lock, so that the head never goes back.
        if writer.head() != self.signal.get() {
            self.signal.set(writer.head());
        }
        answers
    }

    fn answer(&self, command: CommandId) -> Result<Option<Appended>, ReadError> {
        self.read(|conn| Ok(read::answer(conn, command)?))
    }

    fn scan(
        &self,
        from: Seq,
        visit: &mut dyn FnMut(&StoredEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let head = self.head().seq;
        self.read(|conn| read::scan(conn, from, head, visit))
    }

    fn operation(&self, op: OpId) -> Result<Vec<StoredEvent<'static>>, ReadError> {
        let head = self.head().seq;
        self.read(|conn| read::operation(conn, op, head))
    }

    fn run(&self, run: RunId) -> Result<Vec<StoredEvent<'static>>, ReadError> {
        let head = self.head().seq;
        self.read(|conn| read::run(conn, run, head))
    }

    fn wait(&self, after: Seq, timeout: Duration) -> Seq {
        match self.access {
            Access::Writing { .. } => self.signal.wait(after, timeout),
            Access::Reading => self.poll(after, timeout),
        }
    }

    fn on_append(&self, listener: HeadListener) {
        self.signal.listen(listener);
    }

    fn release(&self) {
        self.signal.release();
    }

    fn release_memory(&self) {
        self.readers.close_idle();
        if let Ok(writer) = self.writer() {
            writer.release_memory();
        }
    }

    fn stage(&self, bytes: &mut dyn Read) -> Result<Staged, ContentError> {
        match read_start(bytes).map_err(ContentError::from_read)? {
            ReadStart::Small(bytes) => Ok(Staged::Inline { content: ContentRef::of(&bytes), bytes }),
            ReadStart::Large(start) => {
                self.must_be_writing().map_err(ContentError::storage)?;
                Ok(Staged::Blob { content: self.blobs.put(start, bytes, &self.early)? })
            }
        }
    }

    fn store(&self, contents: Vec<(ContentHash, Vec<u8>)>) -> Result<(), ContentError> {
        check_early(&contents)?;
        let mut writer = self.writer().map_err(ContentError::storage)?;
        self.early.lock().extend(contents.iter().map(|(hash, _)| *hash));
        let insert = |conn: &_| contents.iter().try_for_each(|(hash, b)| contents::insert(conn, hash, b));
        writer.change(insert).map_err(ContentError::storage)
    }

    fn content(&self, hash: &ContentHash) -> Result<Box<dyn Read + Send>, ContentError> {
        if let Some(bytes) = self.read_content(|conn| contents::bytes(conn, hash))? {
            if ContentHash::of(&bytes) != *hash {
                return Err(ContentError::Damaged(*hash));
            }
            return Ok(Box::new(Cursor::new(bytes)));
        }
        if let Some(reader) = self.blobs.open(hash)? {
            return Ok(Box::new(reader));
        }
        Err(self.absent(hash)?)
    }

    fn content_range(
        &self,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        match self.blobs.open_range(hash, range.clone())? {
            Some(reader) => Ok(Box::new(reader)),
            // Small enough to be checked as a whole.
            None => {
                let mut whole = self.content(hash)?;
                io::copy(&mut (&mut whole).take(range.start), &mut io::sink())
                    .map_err(ContentError::from_read)?;
                Ok(Box::new(whole.take(range.end.saturating_sub(range.start))))
            }
        }
    }

    fn content_size(&self, hash: &ContentHash) -> Result<u64, ContentError> {
        if let Some(size) = self.read_content(|conn| contents::size(conn, hash))? {
            return Ok(size);
        }
        match self.blobs.size(hash)? {
            Some(size) => Ok(size),
            None => Err(self.absent(hash)?),
        }
    }

    fn has_content(&self, hash: &ContentHash) -> Result<bool, ContentError> {
        Ok(self.read_content(|conn| contents::has(conn, hash))? || self.blobs.has(hash)?)
    }

    fn purge(&self, hashes: &[ContentHash]) -> Result<u64, ContentError> {
        let mut writer = self.writer().map_err(ContentError::storage)?;
        let purge_rows = |conn: &_| {
            let mut found = Vec::with_capacity(hashes.len());
            for hash in hashes {
                found.push(contents::delete(conn, hash)?);
                contents::mark_purged(conn, hash)?;
            }
            Ok(found)
        };
        let in_rows = writer.change(purge_rows).map_err(ContentError::storage)?;
        let mut count = 0;
        for (hash, in_row) in hashes.iter().zip(in_rows) {
            count += u64::from(self.blobs.remove(hash)? || in_row);
        }
        // Backups of older schema versions hold the same bytes.
        for backup in schema::backups(&self.path) {
            remove_file(&backup).map_err(ContentError::storage)?;
        }
        if writer.wal_checkpoint().map_err(ContentError::storage)? {
            Ok(count)
        } else {
            Err(ContentError::storage(ReaderInTheWay))
        }
    }

    fn collect(&self) -> Result<(u64, u64), ContentError> {
        let mut unnamed = HashMap::new();
        self.each_content(&mut |hash, size| {
            unnamed.insert(hash, size);
        })?;

        // Most of the log is read while others may append; only the events they added are read under the lock.
        let next = keep_named(self, Seq(1), &mut unnamed)?;
        let mut writer = self.writer().map_err(ContentError::storage)?;
        keep_named(self, next, &mut unnamed)?;

        let expected = self.early.lock();
        unnamed.retain(|hash, _| !expected.contains(hash));
        let delete_rows =
            |conn: &_| unnamed.keys().try_for_each(|hash| contents::delete(conn, hash).map(drop));
        writer.change(delete_rows).map_err(ContentError::storage)?;
        for hash in unnamed.keys() {
            self.blobs.remove(hash)?;
        }
        Ok((unnamed.len() as u64, unnamed.values().sum()))
    }

    fn each_content(&self, visit: &mut dyn FnMut(ContentHash, u64)) -> Result<(), ContentError> {
        self.read_content(|conn| contents::each(conn, visit))?;
        self.blobs.each(visit)
    }

    fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), AppendError> {
        let storage = |e| AppendError::Storage(Box::new(e));
        let mut writer = self.writer().map_err(|e| AppendError::Storage(Box::new(e)))?;
        let actual = writer.head().seq;
        if snapshot.seq > actual {
            return Err(AppendError::WrongSeq { expected: snapshot.seq, actual });
        }
        // Snapshots are disposable, and the events before this one are flushed already.
        writer.change_unflushed(|conn| snapshots::save(conn, snapshot)).map_err(storage)
    }

    fn snapshot(&self, at: Seq) -> Result<Option<Snapshot>, ReadError> {
        self.read(|conn| Ok(snapshots::newest(conn, at)?))
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, ReadError> {
        self.read(|conn| Ok(snapshots::list(conn)?))
    }
}
