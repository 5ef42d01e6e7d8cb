//! A lock on the local model, held by one agent from turn to turn until it is done or waits.
//!
//! The model keeps the conversation of its agent in memory between turns. If agents took turns with it, it would have to
//! read a whole conversation again for every turn.

use std::sync::{Mutex, PoisonError};

use shared_types::{RunId, TaskId};
use tokio::sync::Notify;

/// Which agent the local model works for.
#[derive(Debug, Default)]
pub struct LocalModelLock {
    holder: Mutex<Option<(RunId, TaskId)>>,
    freed: Notify,
}

impl LocalModelLock {
    /// Waits until this agent holds the lock. Returns true if it had to wait, so that its history may be outdated.
    pub(crate) async fn acquire(&self, run: RunId, task: TaskId) -> bool {
        let mut has_waited = false;
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if *self.holder().get_or_insert((run, task)) == (run, task) {
                return has_waited;
            }
            freed.await;
            has_waited = true;
        }
    }

    /// Releases the lock if an agent of this run holds it and is no longer busy.
    pub(crate) fn release_if_idle(&self, run: RunId, is_busy: impl Fn(TaskId) -> bool) {
        let mut holder = self.holder();
        if holder.is_some_and(|(holder_run, task)| holder_run == run && !is_busy(task)) {
            *holder = None;
            self.freed.notify_waiters();
        }
    }

    fn holder(&self) -> std::sync::MutexGuard<'_, Option<(RunId, TaskId)>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn run(number: u8) -> RunId {
        RunId::from_bytes([number; 16])
    }

    fn task(number: u8) -> TaskId {
        TaskId::from_bytes([number; 16])
    }

    #[tokio::test]
    async fn a_second_agent_waits_until_the_first_is_idle() {
        let lock = Arc::new(LocalModelLock::default());
        assert!(!lock.acquire(run(1), task(1)).await);
        assert!(!lock.acquire(run(1), task(1)).await);
        let second = tokio::spawn({
            let lock = Arc::clone(&lock);
            async move { lock.acquire(run(2), task(2)).await }
        });
        tokio::task::yield_now().await;
        lock.release_if_idle(run(2), |_| false);
        lock.release_if_idle(run(1), |busy| busy == task(1));
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "the first is busy");
        lock.release_if_idle(run(1), |_| false);
        assert!(second.await.unwrap(), "it has waited");
        assert_eq!(*lock.holder(), Some((run(2), task(2))));
    }
}
