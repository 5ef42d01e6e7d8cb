//! The task that watches a child: it ends the child when nobody needs it, and tells when it has ended by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::process::{Happened, Process};
use super::{CRASHES, Ending, SPAN, Status};

/// Who uses a child.
#[derive(Debug)]
pub(super) struct Use(Mutex<Users>);

#[derive(Debug)]
struct Users {
    leases: usize,
    /// It works on an answer, whoever asked for it.
    works: bool,
    last: Instant,
    /// Once it has been given up, nobody gets it any more.
    is_over: bool,
}

impl Use {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Users { leases: 0, works: false, last: Instant::now(), is_over: false }))
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to use the child, if it can still be used.
    pub(super) fn take(&self) -> bool {
        let mut users = self.users();
        if users.is_over {
            return false;
        }
        users.leases += 1;
        true
    }

    pub(super) fn give_back(&self) {
        let mut users = self.users();
        users.leases = users.leases.saturating_sub(1);
        users.last = Instant::now();
    }

    fn works(&self, works: bool) {
        let mut users = self.users();
        users.works = works;
        users.last = Instant::now();
    }

    /// Lets nobody use the child any more.
    fn close(&self) {
        self.users().is_over = true;
    }

    /// Closes if nobody has used the child for so long; else how long to wait before asking again.
    fn close_if_unused(&self, idle: Duration) -> Option<Duration> {
        let mut users = self.users();
        if users.leases > 0 || users.works {
            return Some(idle);
        }
        let rest = idle.saturating_sub(users.last.elapsed());
        users.is_over = rest.is_zero();
        (!users.is_over).then_some(rest)
    }
}

/// What outlives every child.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) status: watch::Sender<Status>,
    crashes: Mutex<VecDeque<(Instant, String)>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { status: watch::Sender::new(Status::Stopped(Ending::NotStarted)), crashes: Mutex::default() }
    }
}

impl Shared {
    pub(super) fn say(&self, status: Status) {
        self.status.send_replace(status);
    }

    pub(super) fn crashed(&self, why: String) {
        tracing::warn!(%why, "the local model has ended");
        let mut crashes = self.crashes.lock().unwrap_or_else(PoisonError::into_inner);
        if crashes.len() == CRASHES {
            crashes.pop_front();
        }
        crashes.push_back((Instant::now(), why));
    }

    /// The last of too many crashes, if there were too many of late.
    pub(super) fn too_many_crashes(&self) -> Option<String> {
        let mut crashes = self.crashes.lock().unwrap_or_else(PoisonError::into_inner);
        crashes.retain(|(when, _)| when.elapsed() < SPAN);
        crashes.back().filter(|_| crashes.len() >= CRASHES).map(|(_, why)| why.clone())
    }
}

/// Whoever wanted a child may give up before it is ready; then it is not starting any more.
#[derive(Debug)]
pub(super) struct Starting<'a>(pub(super) &'a Shared);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.0.status.send_if_modified(|status| {
            let gave_up = matches!(status, Status::Starting { .. });
            if gave_up {
                *status = Status::Stopped(Ending::Asked);
            }
            gave_up
        });
    }
}

/// A child with everything that decides over its end.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) process: Process,
    pub(super) used: Arc<Use>,
    pub(super) shared: Arc<Shared>,
    pub(super) idle: Duration,
}

impl Watched {
    /// Watches until the child has ended. `stopped` has a word, or closes, when it should; `alive` closes when it has.
    pub(super) async fn keep(mut self, mut stopped: mpsc::Receiver<()>, alive: watch::Sender<()>) {
        let ending = self.until_over(&mut stopped).await;
        self.used.close();
        self.process.end().await;
        // Both at once: who hears that it has stopped must not be given it again.
        self.shared.status.send_modify(|status| {
            drop(alive);
            *status = Status::Stopped(ending);
        });
    }

    async fn until_over(&mut self, stopped: &mut mpsc::Receiver<()>) -> Ending {
        let mut rest = self.idle;
        loop {
            tokio::select! {
                happened = self.process.next() => match happened {
                    Happened::Working(works) => self.used.works(works),
                    Happened::Died(why) => {
                        self.shared.crashed(why.clone());
                        return Ending::Crashed(why);
                    }
                },
                _ = stopped.recv() => return Ending::Asked,
                () = tokio::time::sleep(rest) => match self.used.close_if_unused(self.idle) {
                    Some(longer) => rest = longer,
                    None => return Ending::Idle,
                },
            }
        }
    }
}
