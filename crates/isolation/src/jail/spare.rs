//! A launcher that waits for the next cell: namespaces and control groups are there, and only the root is built when
//! the plan comes. It is of use to whoever runs many commands one after the other; nobody pays for it for long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Ground;
use crate::launched::Begun;

/// A spare that nobody wanted for so long is let go.
const IDLE: Duration = Duration::from_secs(10);

/// A launcher, and what it was told.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) ground: Ground,
    pub(super) begun: Begun,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(mut spare) = self.spare.take() {
            spare.begun.end();
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    spare: Option<Spare>,
    /// How many were put here, to tell one from the next.
    count: u64,
}

/// The one place for a spare.
#[derive(Debug, Clone, Default)]
pub(super) struct Spares(Arc<Mutex<Slot>>);

impl Spares {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spare, if it is like this.
    pub(super) fn take(&self, like: &Ground) -> Option<Spare> {
        let spare = self.slot().spare.take()?;
        if spare.ground.is_like(like) {
            return Some(spare);
        }
        let mut spare = spare;
        spare.begun.end();
        None
    }

    /// Has another one made, beside whatever else is going on.
    pub(super) fn refill(&self, make: impl FnOnce() -> Option<Spare> + Send + 'static) {
        let place = Arc::downgrade(&self.0);
        let waiting = move || {
            let (Some(spare), Some(slot)) = (make(), place.upgrade()) else { return };
            let own = Self(slot);
            let number = {
                let mut slot = own.slot();
                slot.count += 1;
                let old = slot.spare.replace(spare);
                if let Some(mut old) = old {
                    old.begun.end();
                }
                slot.count
            };
            drop(own);
            std::thread::sleep(IDLE);
            let Some(own) = place.upgrade().map(Self) else { return };
            let mut slot = own.slot();
            let unused = if slot.count == number { slot.spare.take() } else { None };
            drop(slot);
            if let Some(mut spare) = unused {
                spare.begun.end();
            }
        };
        // Without a thread there is no spare, and nothing is lost but time.
        let _ = std::thread::Builder::new().name("spare cell".into()).spawn(waiting);
    }
}
