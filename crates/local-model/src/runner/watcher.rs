//! The task that watches a child: it stops an idle child and reports when the child exits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::process::{ChildEvent, ChildProcess};
use super::{CRASH_WINDOW, MAX_CRASHES, RunnerStatus, StopCause};

/// Tracks the leases of a child.
#[derive(Debug)]
pub(super) struct LeaseTracker(Mutex<LeaseState>);

#[derive(Debug)]
struct LeaseState {
    leases: usize,
    /// Whether the child is working on an answer.
    is_working: bool,
    last_use: Instant,
    /// Set when the child is being stopped: no new leases.
    is_closed: bool,
}

impl LeaseTracker {
    pub(super) fn new() -> Self {
        Self(Mutex::new(LeaseState {
            leases: 0,
            is_working: false,
            last_use: Instant::now(),
            is_closed: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, LeaseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new lease; false if the child is being stopped.
    pub(super) fn acquire(&self) -> bool {
        let mut state = self.state();
        if state.is_closed {
            return false;
        }
        state.leases += 1;
        true
    }

    pub(super) fn release(&self) {
        let mut state = self.state();
        state.leases = state.leases.saturating_sub(1);
        state.last_use = Instant::now();
    }

    fn set_working(&self, working: bool) {
        let mut state = self.state();
        state.is_working = working;
        state.last_use = Instant::now();
    }

    /// Refuses new leases from now on.
    fn close(&self) {
        self.state().is_closed = true;
    }

    /// Closes if the child has been unused for `idle_timeout`; otherwise returns how long to wait before checking again.
    fn close_if_idle(&self, idle_timeout: Duration) -> Option<Duration> {
        let mut state = self.state();
        if state.leases > 0 || state.is_working {
            return Some(idle_timeout);
        }
        let rest = idle_timeout.saturating_sub(state.last_use.elapsed());
        state.is_closed = rest.is_zero();
        (!state.is_closed).then_some(rest)
    }
}

/// State that outlives a single child.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) status: watch::Sender<RunnerStatus>,
    crashes: Mutex<VecDeque<(Instant, String)>>,
}

impl Default for SharedState {
    fn default() -> Self {
        Self {
            status: watch::Sender::new(RunnerStatus::Stopped(StopCause::NotStarted)),
            crashes: Mutex::default(),
        }
    }
}

impl SharedState {
    pub(super) fn set_status(&self, status: RunnerStatus) {
        self.status.send_replace(status);
    }

    pub(super) fn record_crash(&self, why: String) {
        tracing::warn!(%why, "the local model crashed");
        let mut crashes = self.crashes.lock().unwrap_or_else(PoisonError::into_inner);
        if crashes.len() == MAX_CRASHES {
            crashes.pop_front();
        }
        crashes.push_back((Instant::now(), why));
    }

    /// The reason of the last crash, if there were too many recently.
    pub(super) fn too_many_crashes(&self) -> Option<String> {
        let mut crashes = self.crashes.lock().unwrap_or_else(PoisonError::into_inner);
        crashes.retain(|(when, _)| when.elapsed() < CRASH_WINDOW);
        crashes.back().filter(|_| crashes.len() >= MAX_CRASHES).map(|(_, why)| why.clone())
    }
}

/// Resets the status if the start is cancelled.
#[derive(Debug)]
pub(super) struct StartGuard<'a>(pub(super) &'a SharedState);

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        self.0.status.send_if_modified(|status| {
            let gave_up = matches!(status, RunnerStatus::Starting { .. });
            if gave_up {
                *status = RunnerStatus::Stopped(StopCause::Requested);
            }
            gave_up
        });
    }
}

/// A child and the conditions for stopping it.
#[derive(Debug)]
pub(super) struct ChildWatcher {
    pub(super) process: ChildProcess,
    pub(super) leases: Arc<LeaseTracker>,
    pub(super) shared: Arc<SharedState>,
    pub(super) idle_timeout: Duration,
}

impl ChildWatcher {
    /// Watches until the child has exited. A message on `stopped`, or its closing, stops the child; `alive` closes
    /// when it has exited.
    pub(super) async fn watch(mut self, mut stopped: mpsc::Receiver<()>, alive: watch::Sender<()>) {
        let ending = self.until_stopped(&mut stopped).await;
        self.leases.close();
        self.process.end().await;
        // Update both together, so that a caller that sees the new status cannot get a lease on the old child.
        self.shared.status.send_modify(|status| {
            drop(alive);
            *status = RunnerStatus::Stopped(ending);
        });
    }

    async fn until_stopped(&mut self, stopped: &mut mpsc::Receiver<()>) -> StopCause {
        let mut rest = self.idle_timeout;
        loop {
            tokio::select! {
                event = self.process.next() => match event {
                    ChildEvent::Working(working) => self.leases.set_working(working),
                    ChildEvent::Exited(why) => {
                        self.shared.record_crash(why.clone());
                        return StopCause::Crashed(why);
                    }
                },
                _ = stopped.recv() => return StopCause::Requested,
                () = tokio::time::sleep(rest) => match self.leases.close_if_idle(self.idle_timeout) {
                    Some(longer) => rest = longer,
                    None => return StopCause::Idle,
                },
            }
        }
    }
}
