//! Answers on their way to the callers.
//!
//! Waking a caller is a system call, and waking those of a large group takes as long as its flush. So a second thread
//! wakes them too, and the writer helps it only while nobody asks for anything. Every answer is given, the first
//! ones first; the thread ends after the last.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::{Outcome, Reply, SubmitError};

/// So few are quicker to wake than to hand over.
const AT_ONCE: usize = 8;

pub(super) type Answer = (Reply, Result<Outcome, SubmitError>);

/// The answers to be given, with the thread that gives them; dropping this waits for it.
pub(super) struct Replies {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    closed: bool,
}

impl Replies {
    pub(super) fn start() -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let same = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("replies".into()).spawn(move || same.serve())?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Hands a group over, to be answered after all before it.
    pub(super) fn send(&self, group: Vec<Answer>) {
        let quick = group.len() <= AT_ONCE;
        self.queue.lock().answers.extend(group);
        if quick {
            while self.give_next() {}
        } else {
            self.queue.filled.notify_one();
        }
    }

    /// Gives one answer, if there are any left to give.
    pub(super) fn give_next(&self) -> bool {
        let next = self.queue.lock().answers.pop_front();
        next.map(|(reply, answer)| reply(answer)).is_some()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        while let Some((reply, answer)) = self.wait() {
            reply(answer);
        }
    }

    fn wait(&self) -> Option<Answer> {
        let idle = |state: &mut State| state.answers.is_empty() && !state.closed;
        let state = self.filled.wait_while(self.lock(), idle);
        state.unwrap_or_else(PoisonError::into_inner).answers.pop_front()
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
