//! Following a log from any seq, without gaps or repeats.
//!
//! Events are always read from the log; the head's signal only says when to read. So a slow follower loses nothing and
//! costs the writer nothing, and one that starts at an old seq takes the same path as one at the head.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shared_types::{Seq, StoredEvent};

use crate::{EventLog, ReadError};

/// One call returns at most this many events.
const MAX_BATCH: usize = 1024;
/// One call returns about this much payload at most, so that a follower's memory has a bound.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// A position in a log that moves forward.
#[derive(Debug)]
pub struct Subscription {
    log: Arc<dyn EventLog>,
    after: Seq,
}

impl Subscription {
    /// Follows the events after a seq; [`Seq::ZERO`] is before the first.
    pub fn new(log: Arc<dyn EventLog>, after: Seq) -> Self {
        Self { log, after }
    }

    /// The last event that was returned.
    pub fn position(&self) -> Seq {
        self.after
    }

    /// The next events in order; none if none came within `timeout`. Events before a broken link are returned first,
    /// and the next call returns the break as its error.
    pub fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent<'static>>, ReadError> {
        let start = Instant::now();
        loop {
            if self.log.head().seq > self.after {
                let batch = self.read()?;
                if let Some(last) = batch.last() {
                    self.after = last.seq;
                    return Ok(batch);
                }
            }
            match timeout.checked_sub(start.elapsed()) {
                None | Some(Duration::ZERO) => return Ok(Vec::new()),
                Some(left) => self.log.wait(self.after, left),
            };
        }
    }

    fn read(&self) -> Result<Vec<StoredEvent<'static>>, ReadError> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        let scanned = self.log.scan(self.after.next(), &mut |event| {
            bytes += event.payload.len();
            batch.push(event.clone().into_owned());
            if batch.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        match scanned {
            Err(error) if batch.is_empty() => Err(error),
            _ => Ok(batch),
        }
    }
}
