//! Adopting a log that was written elsewhere: its rows exactly as they were stored, with their hashes.
//!
//! Only an empty log adopts. Rows are inserted in transactions of bounded size, so a failure leaves a log that is valid
//! but too short: the caller adopts into a new folder and deletes that folder on failure.

use std::path::Path;

use shared_types::{Seq, StoredEvent};
use thiserror::Error;

use super::connection::open_writer;
use super::fault::{Fault, open_error};
use super::{SqliteLog, existing, read, schema};
use crate::error::Cause;
use crate::{Head, LogLock, OpenError};

/// Limits of one transaction.
const EVENTS: usize = 5_000;
const BYTES: usize = 8 << 20;

/// Why events were not adopted.
#[derive(Debug, Error)]
pub enum AdoptError {
    #[error("the log is not empty: it is at event {0}")]
    NotEmpty(Seq),
    #[error("found event {found} where event {place} was expected")]
    Misplaced { found: Seq, place: Seq },
    #[error("the hash of event {0} does not follow from the event before it")]
    Unlinked(Seq),
    #[error("the events cannot be read")]
    Source(#[source] Cause),
    #[error("the log could not be written")]
    Storage(#[source] Cause),
}

impl SqliteLog {
    /// Inserts all events, checks their seqs and hashes, and returns the new head. Contents are added separately, with
    /// [`store`](crate::EventLog::store) and [`stage`](crate::EventLog::stage).
    pub fn adopt(
        &self,
        events: &mut dyn Iterator<Item = Result<StoredEvent<'static>, Cause>>,
    ) -> Result<Head, AdoptError> {
        let mut writer = self.writer().map_err(|e| AdoptError::Storage(Box::new(e)))?;
        if writer.head().seq != Seq::ZERO {
            return Err(AdoptError::NotEmpty(writer.head().seq));
        }
        let storage = |e: rusqlite::Error| AdoptError::Storage(Box::new(e));
        let mut head = Head::default();
        let mut buffer = Vec::new();
        let mut waiting = Vec::new();
        let mut size = 0;
        for event in events {
            let event = event.map_err(AdoptError::Source)?;
            if event.seq != head.seq.next() {
                return Err(AdoptError::Misplaced { found: event.seq, place: head.seq.next() });
            }
            if event.link_into(&head.hash, &mut buffer) != event.hash {
                return Err(AdoptError::Unlinked(event.seq));
            }
            head = Head { seq: event.seq, hash: event.hash };
            size += event.payload.len();
            waiting.push(event);
            if waiting.len() >= EVENTS || size >= BYTES {
                writer.insert_linked(&waiting).map_err(storage)?;
                waiting.clear();
                size = 0;
            }
        }
        writer.insert_linked(&waiting).map_err(storage)?;
        writer.wal_checkpoint().map_err(storage)?;
        self.signal.set(writer.head());
        Ok(head)
    }

    /// The head of the log in a folder, for the holder of its lock; before the first event if there is no log.
    pub fn head_of(folder: &Path, _lock: &LogLock) -> Result<Head, OpenError> {
        let path = match existing(folder) {
            Err(OpenError::Missing(_)) => return Ok(Head::default()),
            other => other?,
        };
        let conn = open_writer(&path).map_err(open_error)?;
        match schema::version(&conn)? {
            0 => Ok(Head::default()),
            _ => read::checked_head(&conn).map_err(Fault::into_open_error),
        }
    }
}

#[cfg(test)]
mod tests {
    use shared_types::UserId;

    use super::*;
    use crate::EventLog;
    use crate::conformance::sample;

    fn made(folder: &Path) -> SqliteLog {
        SqliteLog::create(folder, UserId::parse("ada").unwrap()).unwrap()
    }

    #[test]
    fn rows_are_adopted_as_they_were_stored() {
        let place = tempfile::tempdir().unwrap();
        let first = made(&place.path().join("first"));
        sample::fill(&first, 25);
        let events = sample::read(&first, Seq(1));

        let second = made(&place.path().join("second"));
        let head = second.adopt(&mut events.iter().cloned().map(Ok)).unwrap();
        assert_eq!((head, second.head()), (first.head(), first.head()));
        assert_eq!(sample::read_checked(&second), events);
        assert!(matches!(second.adopt(&mut std::iter::empty()), Err(AdoptError::NotEmpty(Seq(25)))));
        sample::append_one(&second, sample::append(Seq(25), 3)).unwrap();
        drop(second);

        let folder = place.path().join("second");
        let lock = LogLock::take(&folder).unwrap();
        assert_eq!(SqliteLog::head_of(&folder, &lock).unwrap().seq, Seq(28));
    }

    #[test]
    fn a_gap_and_a_broken_link_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let first = made(&place.path().join("first"));
        sample::fill(&first, 5);
        let events = sample::read(&first, Seq(1));

        let second = made(&place.path().join("second"));
        let gap = second.adopt(&mut events[1..].iter().cloned().map(Ok));
        assert!(matches!(gap, Err(AdoptError::Misplaced { found: Seq(2), place: Seq(1) })));
        let mut broken = events;
        broken[3].payload = "{}".into();
        let refused = second.adopt(&mut broken.into_iter().map(Ok));
        assert!(matches!(refused, Err(AdoptError::Unlinked(Seq(4)))));
        assert_eq!(second.head().seq, Seq::ZERO);
    }
}
