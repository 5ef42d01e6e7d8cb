//! The model on the person's own machine works for one agent at a time, until that agent is done or waits for somebody:
//! what it has read of the agent's conversation stays in its memory meanwhile, and is not read again for every turn.

use std::sync::{Mutex, PoisonError};

use shared_types::{RunId, TaskId};
use tokio::sync::Notify;

/// Whom the model works for.
#[derive(Debug, Default)]
pub struct LocalModelLock {
    holder: Mutex<Option<(RunId, TaskId)>>,
    freed: Notify,
}

impl LocalModelLock {
    /// Waits until it works for nobody else. True if that took time, in which anything may have happened.
    pub(crate) async fn enter(&self, run: RunId, task: TaskId) -> bool {
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

    /// Lets others have it, if it works for an agent of a run that is not busy any more.
    pub(crate) fn leave(&self, run: RunId, is_busy: impl Fn(TaskId) -> bool) {
        let mut holder = self.holder();
        if holder.is_some_and(|(of, task)| of == run && !is_busy(task)) {
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
    async fn another_waits_until_the_first_is_done_or_waits_itself() {
        let alone = Arc::new(LocalModelLock::default());
        assert!(!alone.enter(run(1), task(1)).await);
        assert!(!alone.enter(run(1), task(1)).await);
        let second = tokio::spawn({
            let alone = Arc::clone(&alone);
            async move { alone.enter(run(2), task(2)).await }
        });
        tokio::task::yield_now().await;
        alone.leave(run(2), |_| false);
        alone.leave(run(1), |busy| busy == task(1));
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "the first is busy");
        alone.leave(run(1), |_| false);
        assert!(second.await.unwrap(), "it has waited");
        assert_eq!(*alone.holder(), Some((run(2), task(2))));
    }
}
