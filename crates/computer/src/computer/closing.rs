//! The start of closing a computer: it happens once, and calls everything that waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use event_log::EventLog;

use super::Computer;

/// Whether a computer is closing, and the functions to call then.
#[derive(Default)]
pub(super) struct CloseSignal(Mutex<CloseState>);

type Callback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct CloseState {
    begun: bool,
    writer_failed: bool,
    on_close: Vec<Callback>,
    on_writer_failure: Vec<Callback>,
}

impl std::fmt::Debug for CloseSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CloseSignal").field(&self.state().begun).finish()
    }
}

impl CloseSignal {
    fn state(&self) -> MutexGuard<'_, CloseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when the writer's thread panicked.
    pub(super) fn fail(&self) {
        let calls = {
            let mut state = self.state();
            state.writer_failed = true;
            std::mem::take(&mut state.on_writer_failure)
        };
        calls.into_iter().for_each(|call| call());
    }
}

impl Computer {
    /// Begins to close the computer: calls everything that was registered with [`on_close`](Self::on_close).
    pub fn begin_close(&self) {
        let calls = {
            let mut state = self.closing.state();
            state.begun = true;
            std::mem::take(&mut state.on_close)
        };
        self.log.release();
        calls.into_iter().for_each(|call| call());
    }

    pub fn is_closing(&self) -> bool {
        self.closing.state().begun
    }

    /// Calls a function when the computer begins to close, which may be now.
    pub fn on_close(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.closing.state();
        if state.begun {
            drop(state);
            call();
        } else {
            state.on_close.push(Box::new(call));
        }
    }

    /// Calls a function when the writer fails, which may be now: nothing can be recorded until the computer is opened
    /// again.
    pub fn on_writer_failure(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.closing.state();
        if state.writer_failed {
            drop(state);
            call();
        } else {
            state.on_writer_failure.push(Box::new(call));
        }
    }
}
