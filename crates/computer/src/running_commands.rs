//! The running commands of one computer, and their output for tabs.
//!
//! A command is recorded before its caller is answered; then it runs on a thread of its own, with or without
//! a tab that follows its output. Its result goes into the log.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use shared_types::payload::tool::ToolStatus;
use shared_types::wire::{CellCommand, ChangeResult, CommandResult};
use shared_types::{OpId, Seq, TerminalId};

use super::output_feed::{Attachment, Backpressure, OutputFeed};
use crate::cells::OutputListener;
use crate::computer::{Caller, Computer};
use crate::error::{ComputerError, ErrorCode};

/// How many commands may run at once.
const MAX_COMMANDS: usize = 16;
/// How often to check whether the cell of a command that must stop exists yet.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The running commands.
#[derive(Default)]
pub struct Commands {
    on_start: Option<OnStart>,
    /// Set when the computer is being closed; then agents cannot start commands.
    is_closed: AtomicBool,
    running: Mutex<BTreeMap<OpId, RunningCommand>>,
    preview_cache: Mutex<Option<CachedPreview>>,
}

/// Called when a command starts. The returned value is dropped when the command ends.
pub type OnStart = Box<dyn Fn(OpId) -> Box<dyn Send> + Send + Sync>;

impl std::fmt::Debug for Commands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commands").field("running", &self.running).finish_non_exhaustive()
    }
}

/// A command that runs on its caller's thread. Dropping this removes it from the list.
struct CallerCommand<'a> {
    commands: &'a Commands,
    op: OpId,
    feed: Arc<OutputFeed>,
    _started: Option<Box<dyn Send>>,
}

impl Drop for CallerCommand<'_> {
    fn drop(&mut self) {
        self.commands.running().remove(&self.op);
        self.feed.end(None);
    }
}

/// The preview of a dry run, valid until a file changes.
#[derive(Debug)]
struct CachedPreview {
    op: OpId,
    /// The newest checkpoint and the newest change since.
    files: (Option<Seq>, Option<(Seq, OpId)>),
    changes: ChangeResult,
}

#[derive(Debug)]
struct RunningCommand {
    feed: Arc<OutputFeed>,
    /// The thread that runs it, unless its caller's thread does.
    thread: Option<JoinHandle<()>>,
}

impl Commands {
    /// `on_start` is called for each command that starts.
    pub fn new(on_start: OnStart) -> Self {
        Self { on_start: Some(on_start), ..Self::default() }
    }

    fn started(&self, op: OpId) -> Option<Box<dyn Send>> {
        self.on_start.as_ref().map(|on_start| on_start(op))
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<OpId, RunningCommand>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, command| command.thread.as_ref().is_none_or(|thread| !thread.is_finished()));
        running
    }

    pub fn any_runs(&self) -> bool {
        !self.running().is_empty()
    }

    /// Records a command and starts it. A resend does not run it again.
    pub fn start(
        &self,
        computer: &Arc<Computer>,
        caller: Caller,
        command: CellCommand,
    ) -> Result<(), ComputerError> {
        let mut running = self.running();
        if running.len() >= MAX_COMMANDS && !running.contains_key(&caller.origin.op) {
            return Err(ComputerError::new(
                ErrorCode::Refused,
                format!("{MAX_COMMANDS} commands are running already; wait, or stop one"),
            ));
        }
        let Some(start) = computer.record_call(&caller, &command)? else { return Ok(()) };
        let op = caller.origin.op;
        let feed = OutputFeed::new(feed_id(op), Backpressure::DropOldest);
        let (computer, output) = (Arc::clone(computer), Arc::clone(&feed));
        let started = self.started(op);
        let work = move || {
            let _started = started;
            let on_output = &mut |_, bytes: &[u8]| output.add(bytes);
            let ran = computer.execute_call(&caller, &command, Vec::new(), start, on_output);
            let code = match ran {
                Ok(ran) => ran.status.and_then(|status| match status {
                    ToolStatus::Exited { code } => Some(code),
                    ToolStatus::Killed { .. }
                    | ToolStatus::Stopped { .. }
                    | ToolStatus::Failed { .. }
                    | ToolStatus::Interrupted { .. }
                    | ToolStatus::Discarded => None,
                }),
                Err(failure) => {
                    tracing::warn!(%op, %failure, "a command could not be run");
                    None
                }
            };
            output.end(code);
        };
        let thread = std::thread::Builder::new().name("command".into()).spawn(work)?;
        running.insert(op, RunningCommand { feed, thread: Some(thread) });
        Ok(())
    }

    /// Runs a command of an agent to its end, on this thread. A recorded command without a result is run again.
    pub fn run_for_agent(
        &self,
        computer: &Arc<Computer>,
        caller: &Caller,
        command: &CellCommand,
    ) -> Result<(), ComputerError> {
        let op = caller.origin.op;
        // The first caller still waits for it, and two executions must not share a layer.
        let registered = self
            .register(op)?
            .ok_or_else(|| ComputerError::new(ErrorCode::Busy, "the command is running already"))?;
        let open = computer.writer().inspect(move |view| view.calls.get(&op).cloned())?;
        let start = match open {
            // It may have reached the network, and how far it got is unknown.
            Some(call) if call.network => return crate::computer::interrupt(computer, op, &call),
            Some(_) => Some(computer.restart_call()?),
            None => computer.record_call(caller, command)?,
        };
        let Some(start) = start else { return Ok(()) };
        let on_output = &mut |_, bytes: &[u8]| registered.feed.add(bytes);
        computer.execute_call(caller, command, Vec::new(), start, on_output).map(drop)
    }

    /// Runs a command of a person at the command line to its end, on this thread. The caller and the tabs that follow
    /// the command get its output.
    pub fn run_for_caller(
        &self,
        computer: &Computer,
        caller: &Caller,
        command: &CellCommand,
        input: Vec<u8>,
        listener: OutputListener<'_>,
    ) -> Result<CommandResult, ComputerError> {
        // A resend gets the first answer, and uses the feed of the first request.
        let registered = self.register(caller.origin.op)?;
        computer.run_command(caller, command, input, &mut |from, bytes| {
            if let Some(registered) = &registered {
                registered.feed.add(bytes);
            }
            listener(from, bytes);
        })
    }

    /// Adds a command to the running ones until the returned value is dropped; `None` if it is running already.
    fn register(&self, op: OpId) -> Result<Option<CallerCommand<'_>>, ComputerError> {
        let mut running = self.running();
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(ComputerError::new(ErrorCode::Busy, "the computer is being closed"));
        }
        if running.contains_key(&op) {
            return Ok(None);
        }
        let feed = OutputFeed::new(feed_id(op), Backpressure::DropOldest);
        running.insert(op, RunningCommand { feed: Arc::clone(&feed), thread: None });
        Ok(Some(CallerCommand { commands: self, op, feed, _started: self.started(op) }))
    }

    /// Whether a command is running or about to start.
    pub fn is_running(&self, op: OpId) -> bool {
        self.running().contains_key(&op)
    }

    /// Follows the output of a running command.
    pub fn attach(&self, op: OpId, offset: u64) -> Result<Attachment, ComputerError> {
        match self.running().get(&op) {
            Some(command) => Ok(command.feed.attach(offset)),
            None => {
                Err(ComputerError::new(ErrorCode::NotFound, "this command is not running; it may have ended"))
            }
        }
    }

    /// Stops a command. Its changes are discarded.
    pub fn stop(&self, computer: &Computer, op: OpId) -> Result<(), ComputerError> {
        loop {
            if computer.cells().stop(op) {
                return Ok(());
            }
            // It may be recorded while its cell is still being made.
            if !self.running().contains_key(&op) {
                return Err(ComputerError::new(
                    ErrorCode::NotFound,
                    "this command is not running; it may have ended",
                ));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// The changes that accepting a dry run would make now, from a cache: tabs ask after every event, and the layer may
    /// be large.
    pub fn preview_dry_run(&self, computer: &Computer, op: OpId) -> Result<ChangeResult, ComputerError> {
        let files = computer.writer().inspect(|view| {
            let computer = &view.computer;
            (computer.checkpoint.as_ref().map(|(_, seq)| *seq), computer.last_file_change)
        })?;
        let mut preview_cache = self.preview_cache.lock().unwrap_or_else(PoisonError::into_inner);
        match &*preview_cache {
            Some(known) if known.op == op && known.files == files => Ok(known.changes.clone()),
            Some(_) | None => {
                let changes = computer.preview_dry_run(op)?;
                *preview_cache = Some(CachedPreview { op, files, changes: changes.clone() });
                Ok(changes)
            }
        }
    }

    /// Stops all commands, and returns when their results are recorded.
    pub fn end_all(&self, computer: &Computer) {
        self.is_closed.store(true, Ordering::Relaxed);
        computer.cells().stop_all();
        // Commands that are about to start are stopped as soon as they have a cell.
        loop {
            // A separate statement, so that the list is not locked while this waits.
            let next = self.running().keys().next().copied();
            let Some(op) = next else { break };
            let _ = self.stop(computer, op);
            std::thread::sleep(POLL_INTERVAL);
        }
        let left = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in left.into_values().filter_map(|command| command.thread) {
            let _ = thread.join();
        }
    }
}

/// Tabs address the output of a command by a terminal id with the same bytes.
pub fn feed_id(op: OpId) -> TerminalId {
    TerminalId::from_bytes(*op.as_bytes())
}

#[cfg(test)]
mod tests {
    use shared_types::UserId;

    use super::*;
    use crate::ids;
    use crate::paths::ComputerPaths;

    #[test]
    fn closing_waits_for_a_command_that_has_no_cell_yet() {
        let folder = tempfile::tempdir().unwrap();
        let (paths, user) = (ComputerPaths::at(folder.path()), UserId::parse("ada").unwrap());
        let (computer, _) = Computer::create(&paths, user, "Ada", &|_, _, _| ()).unwrap();
        let (commands, op) = (Commands::default(), ids::new_op());
        let thread = std::thread::spawn(|| std::thread::sleep(POLL_INTERVAL * 3));
        let feed = OutputFeed::new(feed_id(op), Backpressure::DropOldest);
        commands.running().insert(op, RunningCommand { feed, thread: Some(thread) });
        commands.end_all(&computer);
        assert!(!commands.any_runs());
    }
}
