//! The head of a log, published to threads that wait for new events and to listeners.
//!
//! A backend sets it only after an append is durable, so every seq that it shows can be read. It only wakes others and
//! carries no events, so a missed wake-up loses nothing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared_types::{ChainHash, Seq};

/// The newest durable event: its seq and its hash in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    pub seq: Seq,
    pub hash: ChainHash,
}

/// Called with the newest seq after every durable append. Runs on the thread that appended, so it must not block.
pub type HeadListener = Box<dyn Fn(Seq) + Send + Sync>;

/// The head of a log, with a way to wait for the next one.
#[derive(Default)]
pub struct HeadSignal {
    state: Mutex<SignalState>,
    moved: Condvar,
    listeners: Mutex<Vec<HeadListener>>,
}

impl std::fmt::Debug for HeadSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HeadSignal").field(&self.get()).finish()
    }
}

#[derive(Debug, Default)]
struct SignalState {
    head: Head,
    released: bool,
}

impl HeadSignal {
    pub fn new(head: Head) -> Self {
        Self { state: Mutex::new(SignalState { head, released: false }), ..Self::default() }
    }

    pub fn set(&self, head: Head) {
        self.lock().head = head;
        self.moved.notify_all();
        self.listeners().iter().for_each(|listener| listener(head.seq));
    }

    /// Adds a listener, which lives as long as the log.
    pub fn listen(&self, listener: HeadListener) {
        self.listeners().push(listener);
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<HeadListener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_listener_is_called_with_every_new_head() {
        let signal = HeadSignal::default();
        let (sender, seen) = std::sync::mpsc::channel();
        signal.listen(Box::new(move |seq| sender.send(seq).unwrap()));
        for seq in [1, 4] {
            signal.set(Head { seq: Seq(seq), hash: ChainHash([1; 32]) });
        }
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [Seq(1), Seq(4)]);
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
