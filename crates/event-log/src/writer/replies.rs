//! The queue of replies to callers.
//!
//! Waking a caller is a system call, and waking a large group takes as long as its flush. So a second thread, started
//! with the first large group, sends replies too, and the writer helps only while its mailbox is empty. Replies are
//! sent in order, all of them; the thread ends after the last.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use super::{Outcome, Reply, SubmitError};

/// Up to this many replies are sent faster than they are handed over.
const SEND_DIRECTLY: usize = 8;

pub(super) type Answer = (Reply, Result<Outcome, SubmitError>);

/// The pending replies and the thread that sends them. Dropping this waits for the thread.
#[derive(Default)]
pub(super) struct Replies {
    queue: Arc<Queue>,
    /// Set at the first large group; `None` if the thread could not be started.
    thread: OnceLock<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    filled: Condvar,
}

#[derive(Default)]
struct QueueState {
    answers: VecDeque<Answer>,
    closed: bool,
}

impl Replies {
    /// Queues the replies of a group.
    pub(super) fn send(&self, group: Vec<Answer>) {
        let direct = group.len() <= SEND_DIRECTLY || !self.has_thread();
        self.queue.lock().answers.extend(group);
        if direct {
            while self.send_next() {}
        } else {
            self.queue.filled.notify_one();
        }
    }

    /// Starts the thread if it does not run yet. False if it cannot be started.
    fn has_thread(&self) -> bool {
        let start = || {
            let same = Arc::clone(&self.queue);
            std::thread::Builder::new().name("replies".into()).spawn(move || same.serve()).ok()
        };
        self.thread.get_or_init(start).is_some()
    }

    /// Sends the next reply. False if none is pending.
    pub(super) fn send_next(&self) -> bool {
        let next = self.queue.lock().answers.pop_front();
        next.map(|(reply, answer)| reply(answer)).is_some()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        while let Some((reply, answer)) = self.wait() {
            reply(answer);
        }
    }

    fn wait(&self) -> Option<Answer> {
        let idle = |state: &mut QueueState| state.answers.is_empty() && !state.closed;
        let state = self.filled.wait_while(self.lock(), idle);
        state.unwrap_or_else(PoisonError::into_inner).answers.pop_front()
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.filled.notify_one();
        if let Some(Some(thread)) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
