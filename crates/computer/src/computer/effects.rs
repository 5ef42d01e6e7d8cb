//! Effects: checkpoints and purges. An effect starts after its event is durable and keeps its id, so after a crash it
//! is repeated.

use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use event_log::replay::view_at;
use event_log::writer::{ChangeRequest, Mode};
use event_log::{EventLog, decode_event};
use kernel::{Action, Effect, EffectKind, touched_files};
use shared_types::payload::checkpoint::{CheckpointEvent, CheckpointReason};
use shared_types::payload::file::{FileEvent, FileNode};
use shared_types::payload::system::SystemEvent;
use shared_types::{Actor, ContentHash, EffectId, EventId, FilePath, Payload, Seq, UserId};

use super::{Caller, Computer, Progress};
use crate::error::{ComputerError, ErrorCode};
use crate::ids;
use crate::protocol::ChangeResult;
use checkpoints::{CheckpointError, CheckpointRepo, CommitFiles, CommitId, CommitRequest};

/// A failed automatic checkpoint is retried after this time.
const RETRY: Duration = Duration::from_secs(60);

/// Notes about effects that ran.
#[derive(Debug, Default)]
pub struct EffectNotes {
    pub notes: Vec<String>,
    /// Whether one of them failed; its note says why.
    pub failed: bool,
}

impl Computer {
    /// Runs all due effects.
    pub fn run_due_effects(&self, progress: Progress<'_>) -> Result<EffectNotes, ComputerError> {
        let due_effects = self.due_effects.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = EffectNotes::default();
        while let Ok(effect) = due_effects.try_recv() {
            let id = effect.id;
            // Its result may have been recorded since it was queued.
            if self.writer.inspect(move |view| view.pending.contains(&id))? {
                let EffectNotes { notes, failed } = self.run_effect(effect, progress)?;
                all.notes.extend(notes);
                all.failed |= failed;
            }
        }
        Ok(all)
    }

    fn run_effect(&self, effect: Effect, progress: Progress<'_>) -> Result<EffectNotes, ComputerError> {
        match effect.kind {
            EffectKind::MakeCheckpoint { message } => match self.commit(effect.id, &message, progress) {
                Ok((commit, seq, notes)) => {
                    let commit = commit.to_string().into();
                    self.record_effect_result(
                        effect.id,
                        Action::RecordCheckpoint { effect: effect.id, commit, seq, message },
                    )?;
                    Ok(EffectNotes { notes, failed: false })
                }
                Err(e) => {
                    let reason: Box<str> = e.to_string().into();
                    self.record_effect_result(
                        effect.id,
                        Action::FailCheckpoint { effect: effect.id, reason: reason.clone() },
                    )?;
                    let notes = vec![format!("the checkpoint could not be made: {reason}")];
                    Ok(EffectNotes { notes, failed: true })
                }
            },
            EffectKind::DropContents { hashes } => {
                let dropped = self.log.purge(&hashes)?;
                let forgotten = self.delete_checkpoint_repo()?;
                self.record_effect_result(effect.id, Action::RecordPurge { effect: effect.id, dropped })?;
                let mut notes = vec![format!("{dropped} of {} contents deleted for good", hashes.len())];
                notes.extend(forgotten);
                Ok(EffectNotes { notes, failed: false })
            }
        }
    }

    /// Commits contain copies of the bytes, so the repository is deleted too. Every checkpoint can still be restored
    /// from the log; the next checkpoint creates a new repository.
    fn delete_checkpoint_repo(&self) -> Result<Option<String>, ComputerError> {
        match std::fs::remove_dir_all(self.paths.state.join("checkpoints.git")) {
            Ok(()) => Ok(Some(
                "the git copies of checkpoints were deleted too; restoring checkpoints still works".into(),
            )),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Records the result of an effect.
    fn record_effect_result(&self, effect: EffectId, action: Action) -> Result<(), ComputerError> {
        let caller = Caller::system(Actor::CHECKPOINTS).because_of(self.requested_by(effect)?);
        self.submit(&caller, ChangeRequest::Do(action), Vec::new(), Mode::Commit).map(drop)
    }

    /// The event that requested an effect. Checkpoints are frequent, and a purge is recorded before the next one.
    fn requested_by(&self, effect: EffectId) -> Result<Option<EventId>, ComputerError> {
        let from = self.writer.inspect(|view| view.computer.checkpoint.as_ref().map(|(_, seq)| *seq))?;
        let (mut found, mut broken) = (None, None);
        self.log.scan(from.map_or(Seq::ZERO, |seq| seq).next(), &mut |stored| {
            if !matches!(&*stored.name, "checkpoint.request" | "system.purge") {
                return ControlFlow::Continue(());
            }
            match decode_event(&*self.log, stored).map(|event| event.payload) {
                Ok(Payload::Checkpoint(CheckpointEvent::Request(request))) if request.effect == effect => {
                    found = Some(stored.id);
                }
                Ok(Payload::System(SystemEvent::Purge(purge))) if purge.effect == effect => {
                    found = Some(stored.id);
                }
                Ok(_) => {}
                Err(e) => broken = Some(e),
            }
            if found.is_some() || broken.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        broken.map_or(Ok(found), |error| Err(error.into()))
    }

    /// Commits the current workspace: only the changes since the last checkpoint, if git still has that commit.
    fn commit(
        &self,
        effect: EffectId,
        message: &str,
        progress: Progress<'_>,
    ) -> Result<(CommitId, Seq, Vec<String>), CheckpointFailure> {
        let repo = self.checkpoint_repo()?;
        let (seq, last) = self.writer.inspect(|view| (view.seq(), view.computer.checkpoint.clone()))?;
        let parent = last.as_ref().and_then(|(commit, _)| commit.parse::<CommitId>().ok());
        let since = match (&parent, &last) {
            (Some(_), Some((_, from))) => Some(self.touched_since(*from, seq)?),
            (None, _) | (_, None) => None,
        };
        let user: UserId = self.log.user().clone();
        let request = |parent, changes| CommitRequest {
            effect,
            seq,
            user: user.clone(),
            ts: ids::now(),
            message,
            parent,
            changes,
        };
        let mut contents = |hash: &ContentHash| self.log.content(hash);
        progress("checkpointing", 0, 1);
        let incremental = since.map(|changes| {
            repo.commit(&request(parent, CommitFiles::ChangedSinceParent(changes)), &mut contents)
        });
        let made = match incremental {
            Some(Err(CheckpointError::NeedsFull)) | None => {
                repo.commit(&request(None, CommitFiles::All(self.files_at(seq)?)), &mut contents)?
            }
            Some(made) => made?,
        };
        progress("checkpointing", 1, 1);
        let mut notes = Vec::new();
        if !made.omitted.is_empty() {
            notes.push(format!(
                "{} files are not in the checkpoint: their bytes were purged",
                made.omitted.len()
            ));
        }
        notes.extend(self.push(&repo));
        // After a crash this is the commit from before the crash, which may be of an older event.
        Ok((made.id, made.seq, notes))
    }

    fn checkpoint_repo(&self) -> Result<CheckpointRepo, CheckpointError> {
        CheckpointRepo::open(&self.paths.state, &self.paths.workspace)
    }

    fn push(&self, repo: &CheckpointRepo) -> Option<String> {
        let remote = self.config.remote.as_ref().filter(|_| self.config.push)?;
        let remote = remote.replace("{user}", self.log.user().as_str());
        repo.push(&remote).err().map(|e| format!("the checkpoint was made but not pushed: {e}"))
    }

    fn files_at(&self, seq: Seq) -> Result<Vec<(FilePath, FileNode)>, ComputerError> {
        let view = view_at(&*self.log, seq)?;
        Ok(view.files.sorted().into_iter().map(|(path, node)| (path.clone(), node.clone())).collect())
    }

    fn touched_since(&self, from: Seq, to: Seq) -> Result<Vec<(FilePath, Option<FileNode>)>, ComputerError> {
        let mut events = Vec::new();
        let mut failure = None;
        self.log.scan(from.next(), &mut |stored| {
            if stored.seq > to {
                return std::ops::ControlFlow::Break(());
            }
            if stored.name.starts_with("file.") {
                match decode_event(&*self.log, stored) {
                    Ok(event) => events.push(event),
                    Err(e) => failure = Some(e),
                }
            }
            std::ops::ControlFlow::Continue(())
        })?;
        match failure {
            Some(e) => Err(e.into()),
            None => Ok(touched_files(&events)),
        }
    }

    /// Requests a checkpoint and makes it.
    pub(super) fn checkpoint(
        &self,
        caller: &Caller,
        message: &str,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        self.request_checkpoint(caller, CheckpointReason::Manual, message, progress)
    }

    fn request_checkpoint(
        &self,
        caller: &Caller,
        reason: CheckpointReason,
        message: &str,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let effect = ids::new_effect();
        let action = Action::RequestCheckpoint { effect, reason, message: message.into() };
        let outcome = self.submit(caller, ChangeRequest::Do(action), Vec::new(), Mode::Commit)?;
        let mut done = self.describe(caller.origin.op, &outcome, Mode::Commit);
        let EffectNotes { notes, failed } = self.run_due_effects(progress)?;
        self.project(progress)?;
        if failed {
            return Err(ComputerError::new(ErrorCode::Failed, notes.join("; ")));
        }
        done.notes.extend(notes);
        if let Some((commit, seq)) = self.writer.inspect(|view| view.computer.checkpoint.clone())? {
            done.notes.insert(0, format!("checkpoint {} at event {seq}", &commit[..12.min(commit.len())]));
        }
        Ok(done)
    }

    /// Keeps the present state before a restore: as a checkpoint, and under a backup name in git.
    pub(super) fn checkpoint_before_restore(
        &self,
        seq: Seq,
        progress: Progress<'_>,
    ) -> Result<(), ComputerError> {
        if seq > self.log.head().seq {
            return Err(kernel::Rejection::NotYet { seq }.into());
        }
        let caller = Caller::system(Actor::CHECKPOINTS);
        let message = format!("Before restoring event {seq}");
        self.request_checkpoint(&caller, CheckpointReason::Restore, &message, progress)?;
        let last = self.writer.inspect(|view| view.computer.checkpoint.clone())?;
        let Some((commit, at)) = last else { return Ok(()) };
        let keep = || -> Result<(), CheckpointError> {
            let commit = commit.parse::<CommitId>()?;
            self.checkpoint_repo()?.backup(&format!("before-restore-{at}"), &commit)
        };
        keep().map_err(|e| {
            ComputerError::new(
                ErrorCode::Failed,
                format!("no backup could be made, so nothing was restored: {e}"),
            )
        })
    }

    /// Makes a checkpoint if one is due by the settings, and returns how long to wait until the next is due by time.
    pub fn checkpoint_if_due(&self, progress: Progress<'_>) -> Option<Duration> {
        let (operations, seconds) = (self.config.auto_operations, self.config.auto_seconds);
        let now = ids::now().millis();
        let interval = Duration::from_secs(seconds);
        let mut retry = self.checkpoint_retry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) =
            retry.map(|at| at.saturating_duration_since(Instant::now())).filter(|w| !w.is_zero())
        {
            return Some(wait);
        }
        let (due, wait) = self
            .writer
            .inspect(move |view| {
                let unsaved = view.computer.unsaved;
                let since = view.computer.unsaved_since.filter(|_| unsaved > 0);
                let waited =
                    since.map(|since| Duration::from_millis((now - since.millis()).max(0).unsigned_abs()));
                let wait = waited.filter(|_| seconds > 0).map(|waited| interval.saturating_sub(waited));
                let by_count = operations > 0 && unsaved >= operations;
                let due = unsaved > 0 && (by_count || wait == Some(Duration::ZERO));
                (due.then_some(unsaved), wait)
            })
            .ok()?;
        let Some(count) = due else { return wait };
        let caller = Caller::system(Actor::CHECKPOINTS);
        let message = format!("After {count} operations");
        let made = self.request_checkpoint(&caller, CheckpointReason::Automatic, &message, progress);
        // A failed checkpoint is retried after a while, not with every event.
        *retry = made.is_err().then(|| Instant::now() + RETRY);
        retry.map(|_| RETRY)
    }

    /// Deletes bytes for good. A content that is in the workspace now is refused: it would be captured again.
    pub(super) fn purge(
        &self,
        caller: &Caller,
        hashes: &[ContentHash],
        paths: &[FilePath],
        reason: &str,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let mut named: Vec<ContentHash> = hashes.to_vec();
        for path in paths {
            let versions = self.versions(path)?;
            if versions.is_empty() {
                return Err(ComputerError::new(
                    ErrorCode::NotFound,
                    format!("the log has never held a file at {path}"),
                ));
            }
            named.extend(versions);
        }
        named.sort_unstable();
        named.dedup();
        for hash in hashes {
            if !self.log.has_content(hash)? {
                return Err(ComputerError::new(
                    ErrorCode::NotFound,
                    format!("content {hash} is not in this computer"),
                ));
            }
        }
        if let Some(seq) = self.batch_list_among(&named)? {
            let message = format!("one of these is the file list of event {seq}, which the log needs");
            return Err(ComputerError::new(ErrorCode::Refused, message));
        }
        let wanted = named.clone();
        let in_use = self.writer.inspect(move |view| {
            let held =
                |node: &FileNode| node.content().is_some_and(|c| wanted.binary_search(&c.hash).is_ok());
            view.files.sorted().into_iter().find(|(_, node)| held(node)).map(|(path, _)| path.clone())
        })?;
        if let Some(path) = in_use {
            let message = format!("{path} still holds these bytes; delete or change it first, then purge");
            return Err(ComputerError::new(ErrorCode::Refused, message));
        }
        let action = Action::RequestPurge { effect: ids::new_effect(), hashes: named, reason: reason.into() };
        let outcome = self.submit(caller, ChangeRequest::Do(action), Vec::new(), Mode::Commit)?;
        let mut done = self.describe(caller.origin.op, &outcome, Mode::Commit);
        self.project(progress)?;
        done.notes.extend(self.run_due_effects(progress)?.notes);
        self.project(progress)?;
        Ok(done)
    }

    /// The event whose list of files is among the hashes. Such a list belongs to the log, not to the person's files.
    fn batch_list_among(&self, hashes: &[ContentHash]) -> Result<Option<Seq>, ComputerError> {
        let mut found = None;
        self.log.scan(Seq(1), &mut |stored| {
            if stored.name == "file.batch"
                && let Ok(Payload::File(FileEvent::Batch(batch))) = stored.decode().map(|event| event.payload)
                && hashes.contains(&batch.list.hash)
            {
                found = Some(stored.seq);
                return std::ops::ControlFlow::Break(());
            }
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Every content that a path ever had.
    fn versions(&self, path: &FilePath) -> Result<Vec<ContentHash>, ComputerError> {
        let seqs = self.projector().views().touches(path)?;
        let mut hashes = Vec::new();
        for seq in seqs {
            let mut found = Ok(());
            self.log.scan(seq, &mut |stored| {
                match decode_event(&*self.log, stored) {
                    Ok(event) => {
                        if let Payload::File(file) = &event.payload {
                            hashes.extend(file.changes().iter().flat_map(|change| contents_at(change, path)));
                        }
                    }
                    Err(e) => found = Err(e),
                }
                std::ops::ControlFlow::Break(())
            })?;
            found?;
        }
        Ok(hashes)
    }
}

fn contents_at(change: &shared_types::payload::file::FileChange, path: &FilePath) -> Vec<ContentHash> {
    use shared_types::payload::file::FileChange;
    let nodes: Vec<&FileNode> = match change {
        FileChange::Write(p) if p.path == *path => std::iter::once(&p.node).chain(&p.prev).collect(),
        FileChange::Delete(p) if p.path == *path => vec![&p.prev],
        FileChange::Move(p) if p.from == *path || p.to == *path => vec![&p.node],
        FileChange::Write(_) | FileChange::Delete(_) | FileChange::Move(_) => Vec::new(),
    };
    nodes.into_iter().filter_map(|node| node.content().map(|c| c.hash)).collect()
}

/// Why a checkpoint could not be made.
#[derive(Debug, thiserror::Error)]
enum CheckpointFailure {
    #[error(transparent)]
    Git(#[from] CheckpointError),
    #[error(transparent)]
    Computer(#[from] ComputerError),
    #[error(transparent)]
    Writer(#[from] event_log::writer::SubmitError),
}
