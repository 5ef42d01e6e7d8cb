//! How a computer is let go of: once, and everybody who waits for it is woken.

use std::sync::{Mutex, PoisonError};

use event_log::EventLog;

use super::Computer;

/// Whether a computer is about to be let go of, and who is to be woken then.
#[derive(Default)]
pub(super) struct Ending(Mutex<State>);

#[derive(Default)]
struct State {
    begun: bool,
    wake: Vec<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ending").field(&self.has_begun()).finish()
    }
}

impl Ending {
    fn has_begun(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begun
    }
}

impl Computer {
    /// Tells everybody who follows this computer to end.
    pub fn end(&self) {
        let wake = {
            let mut state = self.ending.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.begun = true;
            std::mem::take(&mut state.wake)
        };
        self.log.release();
        wake.into_iter().for_each(|wake| wake());
    }

    pub fn is_ending(&self) -> bool {
        self.ending.has_begun()
    }

    /// Something to do when the computer ends, which may be now.
    pub fn at_end(&self, wake: impl FnOnce() + Send + 'static) {
        let mut state = self.ending.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.begun {
            drop(state);
            wake();
        } else {
            state.wake.push(Box::new(wake));
        }
    }
}
