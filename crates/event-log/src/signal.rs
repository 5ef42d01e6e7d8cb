//! The head of a log, published to threads that wait for new events.
//!
//! A backend sets it only after an append is durable, so every seq that it shows can be read. It only wakes threads and
//! carries no events, so a missed wake-up loses nothing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared_types::Seq;

use crate::Head;

/// The head of a log, with a way to wait for the next one.
#[derive(Debug, Default)]
pub struct HeadSignal {
    state: Mutex<SignalState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    head: Head,
    released: bool,
}

impl HeadSignal {
    pub fn new(head: Head) -> Self {
        Self { state: Mutex::new(SignalState { head, released: false }), moved: Condvar::new() }
    }

    pub fn set(&self, head: Head) {
        self.lock().head = head;
        self.moved.notify_all();
    }

    pub fn get(&self) -> Head {
        self.lock().head
    }

    /// Ends all waiting, now and later.
    pub fn release(&self) {
        self.lock().released = true;
        self.moved.notify_all();
    }

    /// Waits until the head is past `after` or `timeout` is over, and returns its seq.
    pub fn wait(&self, after: Seq, timeout: Duration) -> Seq {
        let still = |state: &mut SignalState| state.head.seq <= after && !state.released;
        let waited = self.moved.wait_timeout_while(self.lock(), timeout, still);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.head.seq
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use shared_types::ChainHash;

    use super::*;

    #[test]
    fn waiting_ends_when_the_head_moves_and_at_the_timeout() {
        let signal = HeadSignal::default();
        assert_eq!(signal.wait(Seq(0), Duration::from_millis(5)), Seq(0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Seq(0), Duration::from_secs(60)));
            signal.set(Head { seq: Seq(3), hash: ChainHash([1; 32]) });
            assert_eq!(waiter.join().unwrap(), Seq(3));
        });
        assert_eq!(signal.wait(Seq(2), Duration::ZERO), Seq(3));
    }

    #[test]
    fn a_release_ends_all_waiting() {
        let signal = HeadSignal::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Seq(0), Duration::from_secs(3600)));
            signal.release();
            assert_eq!(waiter.join().unwrap(), Seq(0));
        });
        assert_eq!(signal.wait(Seq(0), Duration::from_secs(3600)), Seq(0));
    }
}
