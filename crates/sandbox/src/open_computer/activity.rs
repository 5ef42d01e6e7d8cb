//! Tracks whether terminals run commands, so that the watcher can record the edits of one command as one operation:
//! when the command ends, or when it has changed nothing for a second.
//!
//! A shell marks the start and end of each command ([`super::marks`]). One without marks may be running a command at
//! any time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use projector::watch::GatheredChanges;

use super::marks::Mark;

/// An editor's save is over when nothing has happened for this long.
const EDITOR_QUIET: Duration = Duration::from_millis(150);
/// Without a terminal, edits are recorded after this time however busy the disk is.
const MAX_EDITOR_DELAY: Duration = Duration::from_secs(2);
/// After this long without a change, the edits of a command so far are recorded.
const COMMAND_QUIET: Duration = Duration::from_secs(1);
/// The edits of a command that never pauses are recorded this often.
const MAX_COMMAND_DELAY: Duration = Duration::from_secs(10);
/// The file notification may arrive this long after the shell reports the end of the command.
const NOTIFICATION_DELAY: Duration = Duration::from_millis(30);
/// How often to check for the end of a command while its edits wait.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The terminals of one computer and whether they are busy.
#[derive(Debug, Default)]
pub(crate) struct TerminalActivity(Mutex<ActivityState>);

#[derive(Debug, Default)]
struct ActivityState {
    /// The number of terminals in which a command may be running.
    busy: usize,
    /// When a command last ended.
    finished: Option<Instant>,
}

impl TerminalActivity {
    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an open terminal, until the returned value is dropped.
    pub(super) fn register(self: &Arc<Self>) -> ActiveTerminal {
        self.state().busy += 1;
        ActiveTerminal { activity: Arc::clone(self), shell: ShellState::Unknown }
    }

    /// How long to wait for more edits before the gathered ones are recorded.
    pub(super) fn capture_delay(&self, gathered: GatheredChanges) -> Duration {
        let state = self.state();
        match state.finished {
            Some(finished) if finished >= gathered.first => {
                NOTIFICATION_DELAY.saturating_sub(finished.elapsed())
            }
            _ if state.busy > 0 => gathered.left(COMMAND_QUIET, MAX_COMMAND_DELAY).min(POLL_INTERVAL),
            _ => gathered.left(EDITOR_QUIET, MAX_EDITOR_DELAY),
        }
    }
}

/// One open terminal.
#[derive(Debug)]
pub(super) struct ActiveTerminal {
    activity: Arc<TerminalActivity>,
    shell: ShellState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellState {
    /// There was no mark yet; the shell may not send any.
    Unknown,
    RunningCommand,
    AtPrompt,
}

impl ActiveTerminal {
    pub(super) fn on_mark(&mut self, mark: Mark) {
        let mut state = self.activity.state();
        match (mark, self.shell) {
            (Mark::Began, ShellState::AtPrompt) => {
                state.busy += 1;
                self.shell = ShellState::RunningCommand;
            }
            (Mark::Began, ShellState::Unknown | ShellState::RunningCommand) => {
                self.shell = ShellState::RunningCommand
            }
            (Mark::Finished, ShellState::RunningCommand) => {
                state.busy -= 1;
                state.finished = Some(Instant::now());
                self.shell = ShellState::AtPrompt;
            }
            (Mark::Finished, ShellState::Unknown) => state.finished = Some(Instant::now()),
            (Mark::Finished, ShellState::AtPrompt) => {}
        }
    }
}

impl Drop for ActiveTerminal {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        if self.shell != ShellState::AtPrompt {
            state.busy -= 1;
            state.finished = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether edits that came a while ago wait on for the terminals.
    fn waits(activity: &TerminalActivity, ago: Duration) -> bool {
        let then = Instant::now().checked_sub(ago).unwrap();
        !activity.capture_delay(GatheredChanges { first: then, last: then }).is_zero()
    }

    const WHILE: Duration = Duration::from_millis(500);

    #[test]
    fn edits_wait_for_the_end_of_a_command_and_for_nothing_else() {
        let activity = Arc::new(TerminalActivity::default());
        assert!(!waits(&activity, WHILE), "there is no terminal");
        let mut shell = activity.register();
        assert!(waits(&activity, WHILE), "a shell that says nothing may be at work");
        assert!(!waits(&activity, COMMAND_QUIET), "but a quiet second is enough");
        shell.on_mark(Mark::Began);
        assert!(waits(&activity, WHILE));
        shell.on_mark(Mark::Finished);
        std::thread::sleep(NOTIFICATION_DELAY);
        assert!(!waits(&activity, WHILE), "it was done");
        shell.on_mark(Mark::Began);
        assert!(!waits(&activity, WHILE), "what came before the prompt does not wait for the next command");
        let now = Instant::now();
        assert!(!activity.capture_delay(GatheredChanges { first: now, last: now }).is_zero());
        drop(shell);
        std::thread::sleep(NOTIFICATION_DELAY);
        assert!(!waits(&activity, WHILE), "the terminal was closed");
        assert_eq!(activity.state().busy, 0);
    }

    #[test]
    fn a_command_that_never_rests_is_recorded_all_the_same() {
        let activity = Arc::new(TerminalActivity::default());
        let _shell = activity.register();
        let now = Instant::now();
        let first = now.checked_sub(MAX_COMMAND_DELAY).unwrap();
        assert!(activity.capture_delay(GatheredChanges { first, last: now }).is_zero());
    }
}
