//! A launcher that waits for the next cell: its namespaces, its control groups and what its root has in common with the
//! last one are there, and only the rest is built when the plan comes. It is of use to whoever runs many commands one
//! after the other; nobody pays for it for long.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::{SharedSetup, host};
use crate::cell::StartError;
use crate::launch::{LaunchedCell, PendingLaunch};
use crate::policy::Policy;

/// A spare that nobody wanted for so long is let go.
const IDLE: Duration = Duration::from_secs(10);

/// A launcher, and what it was told.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) setup: SharedSetup,
    pub(super) pending: PendingLaunch,
}

impl Spare {
    /// Makes it the cell that this policy asks for.
    pub(super) fn finish(self, policy: &Policy) -> Result<LaunchedCell, StartError> {
        let plan = host::plan(policy, self.setup.groups)?;
        let json = serde_json::to_vec(&plan).map_err(|e| StartError::Policy(e.to_string()))?;
        self.pending.finish(json, policy)
    }
}

/// Makes the next spare.
type MakeSpare = Box<dyn FnOnce() -> Option<Spare> + Send>;

/// The one slot for a spare, and whoever fills it.
#[derive(Debug, Clone, Default)]
pub(super) struct Spares {
    slot: Arc<SpareSlot>,
    refiller: Arc<OnceLock<Sender<MakeSpare>>>,
}

impl Spares {
    /// The spare, if it is like this.
    pub(super) fn take(&self, like: &SharedSetup) -> Option<Spare> {
        self.slot.spare().take_if(|spare| spare.setup.is_compatible(like))
    }

    /// Has another one made, beside whatever else is going on.
    pub(super) fn refill(&self, make: impl FnOnce() -> Option<Spare> + Send + 'static) {
        let refiller = self.refiller.get_or_init(|| {
            let (orders, waiting) = channel();
            let slot = Arc::clone(&self.slot);
            // Without a thread there is no spare, and nothing is lost but time.
            let _ = std::thread::Builder::new()
                .name("spare cell".into())
                .spawn(move || slot.refill_until_closed(&waiting));
            orders
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

    /// Carries out orders until nobody can give any more.
    fn refill_until_closed(&self, orders: &Receiver<MakeSpare>) {
        loop {
            let order = match orders.recv_timeout(IDLE) {
                Err(RecvTimeoutError::Timeout) => {
                    self.put(None);
                    orders.recv().ok()
                }
                order => order.ok(),
            };
            // Of several orders the last one says what is wanted now.
            let Some(make) = order.map(|order| orders.try_iter().last().unwrap_or(order)) else { break };
            self.put(make());
        }
        self.put(None);
    }

    fn put(&self, spare: Option<Spare>) {
        let old = std::mem::replace(&mut *self.spare(), spare);
        // Ending the old one takes a while, in which somebody may take the new one.
        drop(old);
    }
}
