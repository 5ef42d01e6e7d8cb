//! The newest durable event, published to whoever waits for it.
//!
//! A backend sets it only after an append is durable, so whatever it shows can be read. It wakes; it carries no
//! events, and nobody who missed a wake-up misses an event.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared_types::Seq;

use crate::Head;

/// The head of a log with a way to wait for the next one.
#[derive(Debug, Default)]
pub struct HeadSignal {
    head: Mutex<Head>,
    moved: Condvar,
}

impl HeadSignal {
    pub fn new(head: Head) -> Self {
        Self { head: Mutex::new(head), moved: Condvar::new() }
    }

    pub fn set(&self, head: Head) {
        *self.lock() = head;
        self.moved.notify_all();
    }

    pub fn get(&self) -> Head {
        *self.lock()
    }

    /// Waits until the head is past `after`, at most for `patience`, and returns where it is.
    pub fn wait(&self, after: Seq, patience: Duration) -> Seq {
        let waited = self.moved.wait_timeout_while(self.lock(), patience, |head| head.seq <= after);
        let (head, _) = waited.unwrap_or_else(PoisonError::into_inner);
        head.seq
    }

    fn lock(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use shared_types::ChainHash;

    use super::*;

    #[test]
    fn waiting_ends_when_the_head_moves_and_when_patience_does() {
        let signal = HeadSignal::default();
        assert_eq!(signal.wait(Seq(0), Duration::from_millis(5)), Seq(0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Seq(0), Duration::from_secs(60)));
            signal.set(Head { seq: Seq(3), hash: ChainHash([1; 32]) });
            assert_eq!(waiter.join().unwrap(), Seq(3));
        });
        assert_eq!(signal.wait(Seq(2), Duration::ZERO), Seq(3));
    }
}
