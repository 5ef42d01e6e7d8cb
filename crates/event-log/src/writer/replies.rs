//! Answers on their way to the callers.
//!
//! Waking a caller is a system call, and waking those of a large group takes as long as its flush. So that the writer
//! can decide the next group meanwhile, another thread wakes them. Answers keep their order, and none is dropped: the
//! thread ends after the last one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use super::{Outcome, Reply, SubmitError};

/// So few are quicker to wake than to hand over.
const AT_ONCE: usize = 8;

pub(super) type Answer = (Reply, Result<Outcome, SubmitError>);

/// The thread that wakes callers; dropping this waits for it.
pub(super) struct Replies {
    thread: Option<(Sender<Vec<Answer>>, JoinHandle<()>)>,
    /// Groups that were handed over and are not yet answered.
    unanswered: Arc<AtomicUsize>,
}

impl Replies {
    pub(super) fn start() -> std::io::Result<Self> {
        let unanswered = Arc::new(AtomicUsize::new(0));
        let (sender, groups) = mpsc::channel::<Vec<Answer>>();
        let left = Arc::clone(&unanswered);
        let run = move || {
            for group in groups {
                give(group);
                left.fetch_sub(1, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("replies".into()).spawn(run)?;
        Ok(Self { thread: Some((sender, thread)), unanswered })
    }

    /// True while callers are being woken.
    pub(super) fn are_under_way(&self) -> bool {
        self.unanswered.load(Ordering::Acquire) > 0
    }

    /// Answers a group after all before it.
    pub(super) fn send(&self, group: Vec<Answer>) {
        let quick = group.len() <= AT_ONCE && !self.are_under_way();
        match &self.thread {
            Some((sender, _)) if !quick => {
                self.unanswered.fetch_add(1, Ordering::Release);
                if let Err(mpsc::SendError(group)) = sender.send(group) {
                    give(group);
                }
            }
            _ => give(group),
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn give(group: Vec<Answer>) {
    for (reply, answer) in group {
        reply(answer);
    }
}
