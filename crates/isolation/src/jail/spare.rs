//! A spare launcher that waits for the next cell. Its namespaces, control groups and the shared part of its root are
//! ready, so only the rest is built when the plan arrives. This speeds up many commands in a row; an unused spare is
//! dropped soon.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::{SharedSetup, host};
use crate::cell::StartError;
use crate::launch::{LaunchedCell, PendingLaunch};
use crate::policy::Policy;

/// An unused spare is dropped after this time.
const IDLE: Duration = Duration::from_secs(10);

/// A launcher with the setup it has received.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) setup: SharedSetup,
    pub(super) pending: PendingLaunch,
}

impl Spare {
    /// Turns the spare into a cell for this policy.
    pub(super) fn finish(self, policy: &Policy) -> Result<LaunchedCell, StartError> {
        let plan = host::plan(policy, self.setup.groups)?;
        let json = serde_json::to_vec(&plan).map_err(|e| StartError::Policy(e.to_string()))?;
        self.pending.finish(json, policy)
    }
}

/// Makes the next spare.
type MakeSpare = Box<dyn FnOnce() -> Option<Spare> + Send>;

/// The slot for the one spare, and the thread that refills it.
#[derive(Debug, Clone, Default)]
pub(super) struct Spares {
    slot: Arc<SpareSlot>,
    refiller: Arc<OnceLock<Sender<MakeSpare>>>,
}

impl Spares {
    /// Takes the spare if it is compatible with this setup.
    pub(super) fn take(&self, like: &SharedSetup) -> Option<Spare> {
        self.slot.spare().take_if(|spare| spare.setup.is_compatible(like))
    }

    /// Makes another spare in the background.
    pub(super) fn refill(&self, make: impl FnOnce() -> Option<Spare> + Send + 'static) {
        let refiller = self.refiller.get_or_init(|| {
            let (requests, receiver) = channel();
            let slot = Arc::clone(&self.slot);
            // If the thread cannot be started there is no spare, and cells just start more slowly.
            let _ = std::thread::Builder::new()
                .name("spare cell".into())
                .spawn(move || slot.refill_until_closed(&receiver));
            requests
        });
        let _ = refiller.send(Box::new(make));
    }
}

#[derive(Debug, Default)]
struct SpareSlot(Mutex<Option<Spare>>);

impl SpareSlot {
    fn spare(&self) -> MutexGuard<'_, Option<Spare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refills the slot on request until all senders are gone.
    fn refill_until_closed(&self, requests: &Receiver<MakeSpare>) {
        loop {
            let request = match requests.recv_timeout(IDLE) {
                Err(RecvTimeoutError::Timeout) => {
                    self.put(None);
                    requests.recv().ok()
                }
                request => request.ok(),
            };
            // Of several requests only the last one is current.
            let Some(make) = request.map(|request| requests.try_iter().last().unwrap_or(request)) else {
                break;
            };
            self.put(make());
        }
        self.put(None);
    }

    fn put(&self, spare: Option<Spare>) {
        let old = std::mem::replace(&mut *self.spare(), spare);
        // Drop the old spare outside the lock: that takes a while, and a caller may take the new one meanwhile.
        drop(old);
    }
}
