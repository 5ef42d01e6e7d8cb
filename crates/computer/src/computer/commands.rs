//! Commands in cells, as transactions on the workspace.
//!
//! A command is recorded before it starts (`tool.call`). It sees the workspace through a layer of its own, and
//! everything that it writes goes there. When it ends, the changes in the layer and its result become the events of one
//! operation, in one append, and only then reach the workspace. The layer of a killed command is deleted. So if any
//! process dies at any time, the workspace is in the state before or after the command, and the log says in which.

mod command_check;
mod command_exit;
mod git_files;
mod ignored;
mod layer_changes;
mod output;
mod proxied_requests;
mod recovery;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use event_log::EventLog;
use event_log::writer::{ChangeRequest, Mode};
use isolation::proxy::{HostRules, Proxy};
use isolation::{Access, Cell, Command, Exit};
use kernel::{Action, CallState};
use projector::Extent;
use shared_types::payload::tool::{StopReason, ToolCall, ToolReport, ToolStatus};
use shared_types::wire::{CellCommand, ChangeResult, CommandNetwork, CommandResult};
use shared_types::{Actor, ContentRef, OpId, Seq, Taint, Timestamp};

use super::{Caller, Computer};
use crate::cells::{OutputListener, layer_dir, mount};
use crate::error::{ComputerError, ErrorCode};
use command_exit::CommandExit;
pub(super) use ignored::restore_from_trash;
use layer_changes::LayerChanges;
use output::TruncatedOutput;
use proxied_requests::request_recorder;
use recovery::interrupted_status;
pub(crate) use recovery::{interrupt, recover_calls};

impl Computer {
    /// Runs a command in a cell over a copy of the workspace, and keeps its changes if it completed.
    pub(crate) fn run_command(
        &self,
        caller: &Caller,
        command: &CellCommand,
        input: Vec<u8>,
        listener: OutputListener<'_>,
    ) -> Result<CommandResult, ComputerError> {
        match self.record_call(caller, command)? {
            Some(start) => self.execute_call(caller, command, input, start, listener),
            None => self.command_result(caller.origin.op),
        }
    }

    /// Records the call of a command. `None` if this is a resend of a recorded call.
    pub(crate) fn record_call(
        &self,
        caller: &Caller,
        command: &CellCommand,
    ) -> Result<Option<CommandStart>, ComputerError> {
        command_check::check(command, &self.cells().settings().limits)?;
        // Earlier edits are captured before the command, so that undoing the newest operation undoes the command.
        if !self.is_watched() {
            self.capture_outside_edits(&|_, _, _| ())?;
        }
        let json = serde_json::to_vec(command)
            .map_err(|e| ComputerError::new(ErrorCode::BadRequest, e.to_string()))?;
        let arguments = ContentRef::of(&json);
        let action = Action::StartCall(ToolCall {
            tool: "exec".into(),
            title: command_check::title(command).into(),
            input: arguments,
            network: command.network != CommandNetwork::None,
            task: caller.agent.as_ref().map(|agent| agent.task),
        });
        let started =
            self.submit(caller, ChangeRequest::Do(action), vec![(arguments.hash, json)], Mode::Commit)?;
        if started.resent {
            return Ok(None);
        }
        let seq = started.appended.map_or(Seq::ZERO, |appended| appended.last);
        // The command sees the disk, so the disk must match the log at which the command starts.
        self.project(&|_, _, _| ())?;
        Ok(Some(CommandStart { seq, at: crate::ids::now() }))
    }

    /// Starts a recorded command again that was interrupted before it had any effect.
    pub(crate) fn restart_call(&self) -> Result<CommandStart, ComputerError> {
        if !self.is_watched() {
            self.capture_outside_edits(&|_, _, _| ())?;
        }
        let seq = self.log().head().seq;
        self.project(&|_, _, _| ())?;
        Ok(CommandStart { seq, at: crate::ids::now() })
    }

    /// Executes a recorded call and records its result.
    pub(crate) fn execute_call(
        &self,
        caller: &Caller,
        command: &CellCommand,
        input: Vec<u8>,
        start: CommandStart,
        listener: OutputListener<'_>,
    ) -> Result<CommandResult, ComputerError> {
        let caller = &caller.clone().with_taint(network_taint(caller, command));
        let could_read = self.readable_taint(caller)?;
        let executed = self.execute(caller, command, input, listener);
        if self.cells().is_closing() && caller.agent.is_some() && !keeps_its_result(command, &executed) {
            // Its changes are discarded, and the call stays open: when the computer is opened again, the call is
            // repeated, or the person is asked about it if it had network access.
            self.drop_layer(caller.origin.op);
            return Err(ComputerError::new(ErrorCode::Busy, "the computer is being closed"));
        }
        let could_read = could_read.into_iter().chain(self.readable_taint(caller)?).collect();
        let conclude = |executed| self.record_end(caller, command, start, executed, could_read);
        match executed.and_then(conclude) {
            Ok(ran) => Ok(ran),
            Err(failure) if self.call_is_answered(caller.origin.op)? => Err(failure),
            Err(failure) => {
                // Before anything else, because the layer may be what fills the disk.
                self.drop_layer(caller.origin.op);
                let status = ToolStatus::Failed { reason: failure.message.clone().into() };
                let answer = caller.clone().with_new_command();
                self.finish(&answer, status, ToolReport::default(), LayerChanges::default())?;
                Err(failure)
            }
        }
    }

    /// The taint of all files that an agent's command can read. Which of them it reads is unknown.
    fn readable_taint(&self, caller: &Caller) -> Result<BTreeSet<Taint>, ComputerError> {
        let Some(read_policy) = caller.agent.as_ref().map(|agent| agent.read_policy.clone()) else {
            return Ok(BTreeSet::new());
        };
        Ok(self.writer().inspect(move |view| {
            let seen = view.tainted_files.iter().filter(|(path, _)| read_policy.may_read(path));
            seen.flat_map(|(_, labels)| labels.iter().cloned()).collect()
        })?)
    }

    fn execute(
        &self,
        caller: &Caller,
        command: &CellCommand,
        input: Vec<u8>,
        listener: OutputListener<'_>,
    ) -> Result<CommandExit, ComputerError> {
        let op = caller.origin.op;
        let scratch = layer_dir(&self.paths, op);
        std::fs::create_dir_all(&scratch)?;
        let covered = match &caller.agent {
            Some(agent) => self.cells().guarded_files().unreadable_files(&agent.read_policy)?,
            None => BTreeSet::new(),
        };
        let access = Access::Layered { upper: scratch.join("upper"), work: scratch.join("work") };
        let owner = self.log().user().to_string();
        let cells = self.cells();
        let mut policy = cells.settings().policy(
            command,
            &owner,
            mount(self.paths.workspace.clone(), access, covered.iter().cloned().collect()),
        );
        if let Some(left) = caller.agent.as_ref().and_then(|agent| agent.time_left) {
            policy.limits.time = policy.limits.time.min(left);
        }
        let rules = HostRules::of(&policy.network)
            .map_err(|e| ComputerError::new(ErrorCode::BadRequest, e.to_string()))?;
        let cell = cells.backend().start(&policy, &scratch)?;
        cells.running().insert(op, Arc::clone(&cell));
        let proxy = cell
            .take_listener()
            .map(|inside| Proxy::serve(inside, rules, request_recorder(self.writer().clone(), op)))
            .transpose();
        let ran = proxy.map_err(ComputerError::from).and_then(|proxy| {
            let ran = self.execute_in(&*cell, command, input, listener);
            // All requests are recorded before the result is.
            drop(proxy);
            ran
        });
        let usage = cell.stop();
        cells.running().remove(&op);
        let (exit, kept) = ran?;
        self.check_read_policy(caller, &covered)?;
        Ok(CommandExit { exit, usage, kept })
    }

    /// A guarded file that appeared while the command ran was not hidden from it, so the command's output and changes
    /// are discarded.
    fn check_read_policy(&self, caller: &Caller, covered: &BTreeSet<PathBuf>) -> Result<(), ComputerError> {
        let Some(agent) = &caller.agent else { return Ok(()) };
        let now = self.cells().guarded_files().unreadable_files(&agent.read_policy)?;
        let Some(appeared) = now.difference(covered).next() else { return Ok(()) };
        let message = format!(
            "{} appeared while the command ran, and this agent may not read it; the output and all changes were \
             discarded. Run the command again.",
            appeared.display()
        );
        Err(ComputerError::new(ErrorCode::Refused, message))
    }

    fn execute_in(
        &self,
        cell: &dyn Cell,
        command: &CellCommand,
        input: Vec<u8>,
        listener: OutputListener<'_>,
    ) -> Result<(Exit, TruncatedOutput), ComputerError> {
        let mut inside = Command { input, ..Command::new(command.argv.clone()) };
        if let Some(below) = &command.folder {
            inside.folder = inside.folder.join(below.as_str());
        }
        let mut kept = TruncatedOutput::default();
        let exit = cell.exec(&inside, &mut |stream, bytes| {
            kept.add(bytes);
            listener(stream, bytes);
        })?;
        Ok((exit, kept))
    }

    /// Records the result of a command that ended.
    fn record_end(
        &self,
        caller: &Caller,
        command: &CellCommand,
        start: CommandStart,
        executed: CommandExit,
        could_read: BTreeSet<Taint>,
    ) -> Result<CommandResult, ComputerError> {
        let was_stopped = executed.status() == ToolStatus::Stopped { why: StopReason::Cancelled };
        let status =
            if was_stopped && self.cells().is_closing() { interrupted_status() } else { executed.status() };
        let (mut report, mut contents) = executed.report(&**self.log())?;
        // Only the changes of a command that completed are kept.
        let complete = matches!(status, ToolStatus::Exited { .. });
        let mut changes =
            if complete { self.read_layer(caller.origin.op, start)? } else { LayerChanges::default() };
        report.notes.append(&mut changes.notes);
        changes.contents.append(&mut contents);
        // A command without output or changes passed nothing on, so it adds no taint.
        let had_effect = report.output.is_some() || !changes.edits.is_empty() || !changes.ignored.is_empty();
        let read = could_read.into_iter().filter(|label| had_effect && !caller.origin.taint.contains(label));
        let taint = caller.origin.taint.iter().cloned().chain(read).collect();
        let caller = &caller.clone().with_taint(taint);
        if complete && command.dry {
            return self.keep_for_review(caller, status, report, start, changes);
        }
        self.finish(&caller.clone().with_new_command(), status, report, changes)
    }

    /// Keeps the changes of a dry run aside, and returns a preview of them.
    fn keep_for_review(
        &self,
        caller: &Caller,
        status: ToolStatus,
        report: ToolReport,
        start: CommandStart,
        changes: LayerChanges,
    ) -> Result<CommandResult, ComputerError> {
        self.log().store(changes.contents)?;
        let kept = serde_json::to_vec(&DryRunRecord { status: status.clone(), start })
            .map_err(std::io::Error::from)?;
        std::fs::write(layer_dir(&self.paths, caller.origin.op).join(DRY_RUN_FILE), kept)?;
        isolation::layer::flush(&layer_dir(&self.paths, caller.origin.op))?;
        let total = changes.edits.len() as u64;
        let code = if let ToolStatus::Exited { code } = status { Some(code) } else { None };
        let answer = caller.clone().with_new_command();
        let would = Action::FinishCall { status, report: report.clone(), edits: changes.edits };
        let outcome = self.submit(&answer, ChangeRequest::Do(would), Vec::new(), Mode::Preview)?;
        let done = self.describe(caller.origin.op, &outcome, Mode::Preview);
        let hold = Action::HoldCall { report: report.clone(), changes: total, code };
        self.submit(&answer, ChangeRequest::Do(hold), Vec::new(), Mode::Commit)?;
        Ok(CommandResult { op: caller.origin.op, status: None, code, report, done })
    }

    /// Accepts the changes of a dry run.
    pub(crate) fn accept(&self, caller: &Caller, call: OpId) -> Result<CommandResult, ComputerError> {
        let _alone = self.cells().dry_run_lock();
        if self.log().answer(caller.origin.command)?.is_some() {
            return self.command_result(call);
        }
        self.check_is_dry_run(call)?;
        let report = self.command_result(call)?.report;
        let kept = std::fs::read(layer_dir(&self.paths, call).join(DRY_RUN_FILE))?;
        let DryRunRecord { status, start } = serde_json::from_slice(&kept).map_err(std::io::Error::from)?;
        let changes = self.read_layer(call, start)?;
        let network =
            self.writer().inspect(move |view| view.calls.get(&call).is_some_and(|call| call.network))?;
        let taint = if network { vec![Taint::COMMAND] } else { Vec::new() };
        let caller = caller.clone().with_op(call).with_taint(taint);
        self.finish(&caller, status, report, changes)
    }

    /// The changes that accepting a dry run would make now.
    pub(crate) fn preview_dry_run(&self, call: OpId) -> Result<ChangeResult, ComputerError> {
        self.check_is_dry_run(call)?;
        let report = self.command_result(call)?.report;
        let kept = std::fs::read(layer_dir(&self.paths, call).join(DRY_RUN_FILE))?;
        let DryRunRecord { status, start } = serde_json::from_slice(&kept).map_err(std::io::Error::from)?;
        let changes = self.read_layer(call, start)?;
        self.log().store(changes.contents)?;
        let caller = Caller::system(Actor::CELLS).with_op(call);
        let would = Action::FinishCall { status, report, edits: changes.edits };
        let outcome = self.submit(&caller, ChangeRequest::Do(would), Vec::new(), Mode::Preview)?;
        Ok(self.describe(call, &outcome, Mode::Preview))
    }

    /// Discards the changes of a dry run.
    pub(crate) fn discard(&self, caller: &Caller, call: OpId) -> Result<CommandResult, ComputerError> {
        let _alone = self.cells().dry_run_lock();
        if self.log().answer(caller.origin.command)?.is_some() {
            return self.command_result(call);
        }
        self.check_is_dry_run(call)?;
        let report = ToolReport { notes: Vec::new(), ..self.command_result(call)?.report };
        let caller = caller.clone().with_op(call);
        self.finish(&caller, ToolStatus::Discarded, report, LayerChanges::default())
    }

    /// Refuses a call that is not a dry run waiting to be settled.
    fn check_is_dry_run(&self, call: OpId) -> Result<(), ComputerError> {
        match self.writer().inspect(move |view| view.calls.get(&call).map(|call| call.state))? {
            Some(CallState::Held) => Ok(()),
            Some(CallState::Running) => Err(ComputerError::new(ErrorCode::Refused, "the command still runs")),
            None => Err(ComputerError::new(
                ErrorCode::NotFound,
                "no dry run with this id is open; it may be accepted or discarded already",
            )),
        }
    }

    fn read_layer(&self, op: OpId, start: CommandStart) -> Result<LayerChanges, ComputerError> {
        let upper = layer_dir(&self.paths, op).join("upper");
        let captured = self.capture_below(&upper)?;
        layer_changes::read(self, op, start, captured, &upper)
    }

    /// Outside edits to what the command touched are recorded first, so that its own can be told from them.
    fn capture_below(&self, upper: &std::path::Path) -> Result<Option<OpId>, ComputerError> {
        if self.is_watched() {
            return Ok(None);
        }
        let mut touched = std::collections::BTreeSet::new();
        isolation::layer::walk(upper, &mut |entry| {
            use isolation::layer::{EntryKind, Visit};
            use std::os::unix::ffi::OsStrExt;
            let path = shared_types::FilePath::from_bytes(entry.path.as_os_str().as_bytes());
            match (path, entry.kind) {
                (
                    Ok(path),
                    EntryKind::File | EntryKind::Symlink | EntryKind::Whiteout | EntryKind::OpaqueFolder,
                ) => {
                    touched.insert(path);
                    Visit::Enter
                }
                (Ok(_), EntryKind::Folder | EntryKind::Special) => Visit::Enter,
                (Err(_), _) => Visit::Skip,
            }
        })?;
        if touched.is_empty() {
            return Ok(None);
        }
        Ok(self.projector().capture(&Extent::Paths(touched), &|_, _, _| ())?.op)
    }

    /// Appends the result with all changes, and brings them to the disk.
    fn finish(
        &self,
        caller: &Caller,
        status: ToolStatus,
        report: ToolReport,
        changes: LayerChanges,
    ) -> Result<CommandResult, ComputerError> {
        ignored::write_plan(&self.paths, caller.origin.op, &changes.ignored)?;
        let action = Action::FinishCall { status: status.clone(), report, edits: changes.edits };
        let done =
            self.change(caller, ChangeRequest::Do(action), changes.contents, Mode::Commit, &|_, _, _| ())?;
        let mut ran = self.command_result(caller.origin.op)?;
        ran.done = done;
        // The result is durable. If moving ignored files fails now, the next start repeats it.
        let placed = if matches!(status, ToolStatus::Exited { .. }) {
            let _alone = self.cells().ignored_files_lock();
            ignored::apply_plan(&self.paths, caller.origin.op, self.cells().settings().trash)
        } else {
            Ok(Vec::new())
        };
        match placed {
            Ok(notes) => {
                ran.done.notes.extend(notes);
                self.drop_layer(caller.origin.op);
            }
            Err(e) => ran.done.notes.push(format!("ignored files could not be moved yet: {e}")),
        }
        Ok(ran)
    }

    fn drop_layer(&self, op: OpId) {
        if let Err(e) = isolation::layer::remove(&layer_dir(&self.paths, op)) {
            tracing::warn!(%op, error = %e, "a command's layer could not be removed");
        }
    }
}

/// When a command started: the event, and the time by the clock of the disk.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct CommandStart {
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
}

/// The file beside the layer of a dry run.
#[derive(serde::Serialize, serde::Deserialize)]
struct DryRunRecord {
    status: ToolStatus,
    #[serde(rename = "began")]
    start: CommandStart,
}

const DRY_RUN_FILE: &str = "held.json";

/// Whether to record the result of an agent's command although the computer is closing. A command without network is
/// repeated anyway; one with network must not be, if it completed.
fn keeps_its_result(command: &CellCommand, executed: &Result<CommandExit, ComputerError>) -> bool {
    let has_exited = |executed: &CommandExit| matches!(executed.status(), ToolStatus::Exited { .. });
    command.network != CommandNetwork::None && executed.as_ref().is_ok_and(has_exited)
}

/// The caller's taint, and that of the network if the command could read from it.
fn network_taint(caller: &Caller, command: &CellCommand) -> Vec<Taint> {
    let network = match command.network {
        CommandNetwork::None => None,
        CommandNetwork::Hosts(_) | CommandNetwork::Open => Some(Taint::COMMAND),
    };
    let known = caller.origin.taint.iter().filter(|label| network.as_ref() != Some(label)).cloned();
    known.chain(network.clone()).collect()
}
