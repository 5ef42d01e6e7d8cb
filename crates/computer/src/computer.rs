//! One open computer: its log and writer, its projector, and its due effects.
//!
//! Every request, from the socket or from this process, is handled here in the same order: capture outside edits,
//! submit, project, run due effects, answer.

mod caller;
mod calls;
mod changes;
mod closing;
mod commands;
mod copying;
mod effects;
mod file_changes;
mod import;
mod resends;
mod runs;
mod target;

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use event_log::writer::{ChangeRequest, Mode, Options, Outcome, Submission, Writer};
use event_log::{EventLog, SqliteLog};
use kernel::{Action, Base, Effect, Resolutions};
use projector::{CaughtUp, Extent, ProgressPhase, Projector};
use shared_types::payload::file::FileNode;
use shared_types::wire::{DesktopAction, MoveBody};
use shared_types::{Actor, OpId, Subject, UserId};
use tokio::sync::broadcast;

pub use caller::{AgentCaller, Caller};
pub use calls::call_details;
pub use changes::{changes, differences, other_changes, unified};
pub(crate) use commands::interrupt;
pub use runs::{
    AgentSpeech, DAILY_BUDGET_SETTING, DEFAULT_BUDGET, DEFAULT_OUTBOX, OUTBOX_SECONDS_SETTING,
    RUN_BUDGET_SETTING, agent_budget_setting, role_model_setting,
};
pub use target::operation_at;
use target::reverted;

use crate::cells::{Cells, OutputListener};
use crate::config::Config;
use crate::error::{ComputerError, ErrorCode};
use crate::ids;
use crate::paths::ComputerPaths;
use crate::protocol::{Answer, CaptureNeed, ChangeResult, Choices, Envelope, Request, Status};

/// The largest standard input of a command.
const INPUT_LIMIT: u64 = 16 << 20;

/// Called with the progress of a request: phase, done, total.
pub type Progress<'a> = &'a (dyn Fn(&str, u64, u64) + 'a);

/// The open computer. Fields are dropped in order: the projector releases the writer, the writer the log.
#[derive(Debug)]
pub struct Computer {
    pub paths: ComputerPaths,
    pub config: Config,
    /// Set while a watcher captures outside edits.
    watched: AtomicBool,
    /// When an automatic checkpoint may be retried after a failure.
    checkpoint_retry: Mutex<Option<Instant>>,
    closing: Arc<closing::CloseSignal>,
    cells: Cells,
    speech: broadcast::Sender<AgentSpeech>,
    projector: Mutex<Projector>,
    due_effects: Mutex<Receiver<Effect>>,
    writer: Writer,
    _writer_thread: WriterHandle,
    log: Arc<SqliteLog>,
}

/// The writer's thread, which ends with its last handle. Dropping this waits for the thread, so the log's lock is free
/// when the computer is dropped and it can be opened again at once.
#[derive(Debug)]
struct WriterHandle(Option<JoinHandle<()>>);

impl Drop for WriterHandle {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

impl Computer {
    /// Creates a computer over a folder, which may contain files already.
    pub fn create(
        paths: &ComputerPaths,
        user: UserId,
        owner: &str,
        progress: Progress<'_>,
    ) -> Result<(Self, Answer), ComputerError> {
        let log = SqliteLog::create(&paths.state, user)?;
        let computer = Self::assemble(paths, log)?;
        let caller = Caller::person(ids::new_command(), ids::new_op(), Actor::CLI);
        computer.submit(
            &caller,
            ChangeRequest::Do(Action::CreateUser { name: owner.into() }),
            Vec::new(),
            Mode::Commit,
        )?;
        let status = computer.status(progress)?;
        Ok((computer, status))
    }

    /// Opens the computer; fails with [`ErrorCode::Busy`] if another process holds it.
    pub fn open(paths: &ComputerPaths) -> Result<Self, ComputerError> {
        archive::finish_interrupted(&paths.state).map_err(|e| {
            ComputerError::new(ErrorCode::Damaged, format!("an interrupted import cannot be finished: {e}"))
        })?;
        let log = SqliteLog::open(&paths.state)?;
        let computer = Self::assemble(paths, log)?;
        commands::recover_calls(&computer)?;
        Ok(computer)
    }

    fn assemble(paths: &ComputerPaths, log: SqliteLog) -> Result<Self, ComputerError> {
        let config = Config::load(&paths.state).map_err(|e| crate::error::from_anyhow(&e))?;
        let log = Arc::new(log);
        let (sender, due_effects) = mpsc::channel();
        let closing = Arc::new(closing::CloseSignal::default());
        let failing = Arc::clone(&closing);
        let on_panic = move || failing.fail();
        let options =
            Options { effects: Some(sender), on_panic: Some(Box::new(on_panic)), ..Options::new(ids::now) };
        let (writer, thread) = Writer::start(Arc::clone(&log) as Arc<dyn EventLog>, options)?;
        let projector = Projector::open(
            Arc::clone(&log) as Arc<dyn EventLog>,
            writer.clone(),
            &paths.state,
            &paths.workspace,
            Box::new(ids::new_capture),
        )?;
        let (projector, due_effects) = (Mutex::new(projector), Mutex::new(due_effects));
        let (watched, checkpoint_retry) = (AtomicBool::new(false), Mutex::default());
        let _writer_thread = WriterHandle(Some(thread));
        let cells = Cells::new(config.cells.clone(), paths);
        let (paths, speech) = (paths.clone(), runs::speech_channel());
        Ok(Self {
            paths,
            config,
            watched,
            checkpoint_retry,
            closing,
            cells,
            speech,
            projector,
            due_effects,
            writer,
            _writer_thread,
            log,
        })
    }

    /// Says whether a watcher captures outside edits from now on.
    pub fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    pub fn log(&self) -> &Arc<SqliteLog> {
        &self.log
    }

    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    pub fn projector(&self) -> MutexGuard<'_, Projector> {
        self.projector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a request.
    pub fn handle(&self, envelope: &Envelope, body: &mut dyn Read, progress: Progress<'_>) -> Answer {
        self.handle_with_output(envelope, body, progress, &mut |_, _| ())
    }

    /// Like [`handle`](Self::handle), and calls `listener` with the output of a command while it runs.
    pub fn handle_with_output(
        &self,
        envelope: &Envelope,
        body: &mut dyn Read,
        progress: Progress<'_>,
        listener: OutputListener<'_>,
    ) -> Answer {
        self.answer(envelope, body, progress, listener).unwrap_or_else(Answer::Failure)
    }

    fn answer(
        &self,
        envelope: &Envelope,
        body: &mut dyn Read,
        progress: Progress<'_>,
        listener: OutputListener<'_>,
    ) -> Result<Answer, ComputerError> {
        let caller = Caller::of(envelope);
        if envelope.request.reads_before_submitting()
            && let Some(done) = self.first_answer(&caller)?
        {
            return Ok(Answer::Done(done));
        }
        self.capture_before(&envelope.request, progress)?;
        let done = match &envelope.request {
            Request::Status => return self.status(progress),
            Request::RunCommand(command) => {
                let input = read_input(body)?;
                return Ok(Answer::CommandResult(Box::new(
                    self.run_command(&caller, command, input, listener)?,
                )));
            }
            Request::Accept { call } => {
                return Ok(Answer::CommandResult(Box::new(
                    self.accept(&caller, self.operation_named(call)?)?,
                )));
            }
            Request::Discard { call } => {
                return Ok(Answer::CommandResult(Box::new(
                    self.discard(&caller, self.operation_named(call)?)?,
                )));
            }
            Request::Write { path, mode, base } => {
                if *base == Base::Absent {
                    self.check_disk(path)?;
                }
                let staged = self.log.stage(body)?;
                let (path, content) = (path.clone(), staged.content());
                let change = ChangeRequest::WriteFile { path, content, mode: *mode, base: *base };
                let contents = staged.into_inline().into_iter().collect();
                self.change_files(&caller, change, contents, progress)?
            }
            Request::WriteSeveral { files } => {
                let (action, contents) = self.stage_several(files, body)?;
                self.change_files(&caller, ChangeRequest::Do(action), contents, progress)?
            }
            Request::MakeFolder { path } => {
                let action =
                    Action::WriteFile { path: path.clone(), node: FileNode::Folder, base: Base::Absent };
                self.change_files(&caller, ChangeRequest::Do(action), Vec::new(), progress)?
            }
            Request::Copy { copies } => {
                let action = self.copy(copies)?;
                self.change_files(&caller, ChangeRequest::Do(action), Vec::new(), progress)?
            }
            Request::Gesture(action) => {
                let action = match action.clone() {
                    DesktopAction::SetWindow { window, state } => Action::SetWindow { window, state },
                    DesktopAction::CloseWindow { window } => Action::CloseWindow { window },
                    DesktopAction::SetSetting { key, value } => Action::SetSetting { key, value },
                    DesktopAction::ClearSetting { key } => Action::ClearSetting { key },
                };
                // Windows and settings are not on disk, so the caller need not wait for the projector.
                let outcome = self.submit(&caller, ChangeRequest::Do(action), Vec::new(), Mode::Commit)?;
                self.describe(caller.origin.op, &outcome, Mode::Commit)
            }
            Request::Remove { paths } => {
                let action = Action::DeletePaths { paths: paths.clone() };
                self.change_files(&caller, ChangeRequest::Do(action), Vec::new(), progress)?
            }
            Request::Move { moves } => {
                let action =
                    Action::MovePaths { moves: moves.iter().cloned().map(MoveBody::into_pair).collect() };
                self.change_files(&caller, ChangeRequest::Do(action), Vec::new(), progress)?
            }
            Request::Undo { target, choices, preview } => {
                let target = self.target(&caller, reverted, || self.undo_target(target.as_deref()))?;
                self.revert(&caller, target, choices, *preview, progress)?
            }
            Request::Redo { target, choices, preview } => {
                let target = self.target(&caller, reverted, || self.redo_target(target.as_deref()))?;
                self.revert(&caller, target, choices, *preview, progress)?
            }
            Request::Restore { seq, preview } => {
                if !preview {
                    self.checkpoint_before_restore(*seq, progress)?;
                }
                let restore = ChangeRequest::Restore { seq: *seq };
                self.change(&caller, restore, Vec::new(), mode(*preview), progress)?
            }
            Request::Checkpoint { message } => self.checkpoint(&caller, message, progress)?,
            Request::Import { file, into } => self.import(&caller, file, into.as_ref(), progress)?,
            Request::Purge { hashes, paths, reason } => {
                self.purge(&caller, hashes, paths, reason, progress)?
            }
            Request::AgentRuns(request) => return self.answer_about_runs(&caller, request, progress),
            Request::Parts => {
                let message = "no process holds this computer, so none of its parts run";
                return Err(ComputerError::new(ErrorCode::NotFound, message));
            }
            Request::Rebuild => self.rebuild(progress)?,
            Request::CollectGarbage => {
                let (count, bytes) = self.log.collect()?;
                ChangeResult {
                    notes: vec![format!("{count} unreferenced contents deleted, {bytes} bytes freed")],
                    ..ChangeResult::default()
                }
            }
        };
        Ok(Answer::Done(done))
    }

    pub(crate) fn submit(
        &self,
        caller: &Caller,
        change: ChangeRequest,
        contents: Vec<(shared_types::ContentHash, Vec<u8>)>,
        mode: Mode,
    ) -> Result<Outcome, ComputerError> {
        Ok(self.writer.submit(Submission::new(caller.origin.clone(), change, contents), mode)?)
    }

    /// Submits a change, and returns when it is on disk and in the read models.
    pub(crate) fn change(
        &self,
        caller: &Caller,
        change: ChangeRequest,
        contents: Vec<(shared_types::ContentHash, Vec<u8>)>,
        mode: Mode,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let outcome = self.submit(caller, change, contents, mode)?;
        let mut done = self.describe(caller.origin.op, &outcome, mode);
        if mode == Mode::Commit && outcome.appended.is_some() {
            // The change is durable, so a failure to write it to disk is a note, not an error.
            match self.project(progress) {
                Ok(notes) => done.notes.extend(notes),
                Err(e) => done.notes.push(format!("recorded, but not yet on disk: {e}")),
            }
            self.checkpoint_if_due(progress);
        }
        Ok(done)
    }

    fn revert(
        &self,
        caller: &Caller,
        target: OpId,
        choices: &Choices,
        preview: bool,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let change = ChangeRequest::Undo { target, resolutions: resolutions(choices) };
        let mut done = self.revert_with_ignored_files(caller, change, &[target], preview, progress)?;
        done.target = Some(target);
        Ok(done)
    }

    /// Submits a change that undoes these operations, then restores the ignored files that each of them replaced, in
    /// this order.
    fn revert_with_ignored_files(
        &self,
        caller: &Caller,
        change: ChangeRequest,
        operations: &[OpId],
        preview: bool,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let mut done = self.change(caller, change, Vec::new(), mode(preview), progress)?;
        if !preview {
            let _alone = self.cells.ignored_files_lock();
            for op in operations {
                if let Err(e) = commands::restore_from_trash(&self.paths, *op, caller.origin.op) {
                    done.notes.push(format!("ignored files were not restored: {e}"));
                }
            }
        }
        Ok(done)
    }

    /// Brings the read models and the disk up to date. Returns a note for each file that could not be written.
    pub fn project(&self, progress: Progress<'_>) -> Result<Vec<String>, ComputerError> {
        let projector = self.projector();
        let caught = projector.catch_up(&|phase, done, total| progress(phase_name(phase), done, total))?;
        let blocked = caught.blocked.iter().map(|(_, what)| format!("recorded, but not yet on disk: {what}"));
        let gone =
            caught.unavailable.iter().map(|path| format!("{path}: its bytes were purged or are damaged"));
        Ok(gone.chain(blocked).collect())
    }

    fn rebuild(&self, progress: Progress<'_>) -> Result<ChangeResult, ComputerError> {
        self.projector().rebuild(&|phase, done, total| progress(phase_name(phase), done, total))?;
        let note = format!("read models rebuilt from {} events", self.log.head().seq);
        Ok(ChangeResult { notes: vec![note], ..ChangeResult::default() })
    }

    /// Captures outside edits as far as a request needs it. This is the one rule for all requests.
    fn capture_before(&self, request: &Request, progress: Progress<'_>) -> Result<(), ComputerError> {
        let scan = match request.capture_need() {
            CaptureNeed::None => false,
            CaptureNeed::WatcherIsEnough => !self.is_watched(),
            CaptureNeed::FullScan => true,
        };
        if scan {
            self.capture_outside_edits(progress)?;
        }
        Ok(())
    }

    /// Captures outside edits and brings everything up to date.
    pub fn capture_outside_edits(
        &self,
        progress: Progress<'_>,
    ) -> Result<projector::Captured, ComputerError> {
        let report = |phase, done, total| progress(phase_name(phase), done, total);
        let projector = self.projector();
        let captured = projector.capture(&Extent::Everything, &report)?;
        projector.catch_up(&report)?;
        Ok(captured)
    }

    fn status(&self, progress: Progress<'_>) -> Result<Answer, ComputerError> {
        let captured = self.capture_outside_edits(progress)?;
        let CaughtUp { unavailable, blocked, .. } = self.projector().catch_up(&|_, _, _| ())?;
        self.checkpoint_if_due(progress);
        let lag = self.projector().lag()?.events();
        let head = self.log.head();
        let workspace = self.paths.workspace.clone();
        let user = self.log.user().to_string();
        let status = self.writer.inspect(move |view| Status {
            user,
            owner: view.computer.owner.as_ref().map(ToString::to_string),
            workspace,
            head: head.seq,
            hash: head.hash,
            root: view.root(),
            files: view.files.iter().filter(|(_, node)| **node != FileNode::Folder).count() as u64,
            bytes: view.files.iter().filter_map(|(_, node)| node.content()).map(|c| c.size).sum(),
            lag,
            captured: captured.edits as u64,
            captured_op: captured.op,
            skipped: captured.skipped.iter().map(|(path, why)| (path.clone(), why.to_string())).collect(),
            unavailable,
            blocked: blocked.into_iter().map(|(_, what)| what).collect(),
            checkpoint: view.computer.checkpoint.as_ref().map(|(commit, seq)| (commit.to_string(), *seq)),
            unsaved_operations: view.computer.unsaved,
            pending_effects: view.pending.len() as u64,
            undone_operations: view.undone.len() as u64,
        })?;
        Ok(Answer::Status(Box::new(status)))
    }
}

/// The standard input of a command.
pub(crate) fn read_input(body: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut input = Vec::new();
    body.take(INPUT_LIMIT).read_to_end(&mut input)?;
    Ok(input)
}

fn resolutions(choices: &Choices) -> Resolutions {
    Resolutions {
        each: choices.each.iter().cloned().flat_map(with_repository_path).collect(),
        others: choices.others,
    }
}

fn mode(preview: bool) -> Mode {
    if preview { Mode::Preview } else { Mode::Commit }
}

fn phase_name(phase: ProgressPhase) -> &'static str {
    match phase {
        ProgressPhase::Scanning => "scanning",
        ProgressPhase::Indexing => "indexing",
        ProgressPhase::Writing => "writing",
        ProgressPhase::Syncing => "syncing",
    }
}

/// A person names a repository by its path, like a file, so a choice for the path counts for both.
fn with_repository_path((subject, choice): (Subject, kernel::Choice)) -> Vec<(Subject, kernel::Choice)> {
    match &subject {
        Subject::File(path) => vec![(Subject::Repository(path.clone()), choice), (subject, choice)],
        Subject::Repository(_) | Subject::Setting(_) | Subject::Window(_) | Subject::Note(_) => {
            vec![(subject, choice)]
        }
    }
}
