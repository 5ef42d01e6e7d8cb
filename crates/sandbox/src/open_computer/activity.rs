//! What the terminals are doing, for the watcher: edits that a command makes become one operation when the command
//! is done, or when it has changed nothing for a second.
//!
//! A shell says with marks ([`super::marks`]) when a command begins and ends. One that never said so may be running
//! something at any time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use projector::watch::GatheredChanges;

use super::marks::Mark;

/// An editor's save is over when nothing has happened for this long.
const EDITOR_QUIET: Duration = Duration::from_millis(150);
/// Without a terminal, edits are recorded after this time however busy the disk is.
const EDITOR_LONGEST: Duration = Duration::from_secs(2);
/// A command that has changed nothing for so long has done one thing.
const QUIET: Duration = Duration::from_secs(1);
/// A command that never rests is recorded this often.
const LONGEST: Duration = Duration::from_secs(10);
/// The system tells of a change a little later than the shell of the command's end.
const ON_ITS_WAY: Duration = Duration::from_millis(30);
/// How soon the end of a command is noticed while its edits wait.
const LOOK: Duration = Duration::from_millis(50);

/// The terminals of one computer, as far as edits are concerned.
#[derive(Debug, Default)]
pub(crate) struct Activity(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Terminals in which a command may be running.
    busy: usize,
    /// When a command was last done.
    finished: Option<Instant>,
}

impl Activity {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A terminal has been opened; it is there until this is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Presence {
        self.state().busy += 1;
        Presence { activity: Arc::clone(self), doing: Doing::Anything }
    }

    /// How long to wait for more before what was gathered is recorded.
    pub(super) fn settle(&self, gathered: GatheredChanges) -> Duration {
        let state = self.state();
        match state.finished {
            Some(finished) if finished >= gathered.first => ON_ITS_WAY.saturating_sub(finished.elapsed()),
            _ if state.busy > 0 => gathered.left(QUIET, LONGEST).min(LOOK),
            _ => gathered.left(EDITOR_QUIET, EDITOR_LONGEST),
        }
    }
}

/// One terminal that is open.
#[derive(Debug)]
pub(super) struct Presence {
    activity: Arc<Activity>,
    doing: Doing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It has not said that a command begins; perhaps it never does.
    Anything,
    Command,
    Nothing,
}

impl Presence {
    pub(super) fn tell(&mut self, mark: Mark) {
        let mut state = self.activity.state();
        match (mark, self.doing) {
            (Mark::Began, Doing::Nothing) => {
                state.busy += 1;
                self.doing = Doing::Command;
            }
            (Mark::Began, Doing::Anything | Doing::Command) => self.doing = Doing::Command,
            (Mark::Finished, Doing::Command) => {
                state.busy -= 1;
                state.finished = Some(Instant::now());
                self.doing = Doing::Nothing;
            }
            (Mark::Finished, Doing::Anything) => state.finished = Some(Instant::now()),
            (Mark::Finished, Doing::Nothing) => {}
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        if self.doing != Doing::Nothing {
            state.busy -= 1;
            state.finished = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether edits that came a while ago wait on for the terminals.
    fn waits(activity: &Activity, ago: Duration) -> bool {
        let then = Instant::now().checked_sub(ago).unwrap();
        !activity.settle(GatheredChanges { first: then, last: then }).is_zero()
    }

    const WHILE: Duration = Duration::from_millis(500);

    #[test]
    fn edits_wait_for_the_end_of_a_command_and_for_nothing_else() {
        let activity = Arc::new(Activity::default());
        assert!(!waits(&activity, WHILE), "there is no terminal");
        let mut shell = activity.enter();
        assert!(waits(&activity, WHILE), "a shell that says nothing may be at work");
        assert!(!waits(&activity, QUIET), "but a quiet second is enough");
        shell.tell(Mark::Began);
        assert!(waits(&activity, WHILE));
        shell.tell(Mark::Finished);
        std::thread::sleep(ON_ITS_WAY);
        assert!(!waits(&activity, WHILE), "it was done");
        shell.tell(Mark::Began);
        assert!(!waits(&activity, WHILE), "what came before the prompt does not wait for the next command");
        let now = Instant::now();
        assert!(!activity.settle(GatheredChanges { first: now, last: now }).is_zero());
        drop(shell);
        std::thread::sleep(ON_ITS_WAY);
        assert!(!waits(&activity, WHILE), "the terminal was closed");
        assert_eq!(activity.state().busy, 0);
    }

    #[test]
    fn a_command_that_never_rests_is_recorded_all_the_same() {
        let activity = Arc::new(Activity::default());
        let _shell = activity.enter();
        let now = Instant::now();
        let first = now.checked_sub(LONGEST).unwrap();
        assert!(activity.settle(GatheredChanges { first, last: now }).is_zero());
    }
}
