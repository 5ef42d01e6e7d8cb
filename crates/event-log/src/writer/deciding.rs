//! From a submission to a decision. The kernel reads nothing, so the writer adds the events, views and contents that
//! deciding needs.

use std::collections::HashSet;
use std::sync::Arc;

use kernel::{Action, Command, Decision, Rejection, RunAction, decide};
use shared_types::payload::file::FileNode;
use shared_types::payload::run::AskKind;
use shared_types::{ContentHash, ContentRef, Event, OpId, RunId, StoredEvent, Timestamp};

use super::groups::WriterThread;
use super::{ChangeRequest, Submission, SubmitError};
use crate::replay::view_at;
use crate::{decode_event, read_content};

impl WriterThread {
    pub(super) fn decide(&mut self, submission: &Submission) -> Result<Decision, SubmitError> {
        if self.view.seq() < self.log.head().seq {
            self.reload();
        }
        let ts = (self.options.clock)().millis().max(self.last_ts);
        self.last_ts = ts;
        let action = self.action(&submission.change)?;
        self.check_ids(&action, submission.origin.op, submission.origin.run_id)?;
        self.check_contents(&action, &submission.contents)?;
        let mut command = Command {
            origin: submission.origin.clone(),
            ts: Timestamp::from_millis(ts),
            action,
            contents: kernel::Contents::new(),
        };
        loop {
            match decide(&self.view, &command) {
                Err(Rejection::Missing { hashes })
                    if !hashes.iter().all(|h| command.contents.contains_key(h)) =>
                {
                    for hash in hashes {
                        let bytes = self.bytes(&hash, &submission.contents)?;
                        command.contents.insert(hash, bytes);
                    }
                }
                other => {
                    let decision = other?;
                    self.check_restored_contents(&command.action, &decision)?;
                    return Ok(decision);
                }
            }
        }
    }

    /// Undo and restore must not bring back files whose bytes were purged since.
    fn check_restored_contents(&self, action: &Action, decision: &Decision) -> Result<(), SubmitError> {
        if !matches!(
            action,
            Action::Undo { .. } | Action::UndoRun { .. } | Action::RetryRun { .. } | Action::Restore { .. }
        ) {
            return Ok(());
        }
        let new: HashSet<_> = decision.contents.iter().map(|(hash, _)| *hash).collect();
        for (_, node) in kernel::touched_files(&decision.events) {
            let Some(content) = node.as_ref().and_then(FileNode::content) else { continue };
            if !new.contains(&content.hash) && !self.log.has_content(&content.hash)? {
                return Err(SubmitError::NoContent(content.hash));
            }
        }
        Ok(())
    }

    fn bytes(&self, hash: &ContentHash, given: &[(ContentHash, Vec<u8>)]) -> Result<Vec<u8>, SubmitError> {
        if let Some((_, bytes)) = given.iter().find(|(known, _)| known == hash) {
            return Ok(bytes.clone());
        }
        Ok(read_content(&*self.log, hash)?)
    }

    /// Completes a change from the log.
    fn action(&self, change: &ChangeRequest) -> Result<Action, SubmitError> {
        Ok(match change {
            ChangeRequest::Do(action) => action.clone(),
            ChangeRequest::WriteFile { path, content, mode, base } => {
                let kept = || match self.view.files.get(path) {
                    Some(FileNode::File { mode, .. }) => *mode,
                    Some(FileNode::Symlink { .. } | FileNode::Folder) | None => FileNode::DEFAULT_MODE,
                };
                let node = FileNode::file(*content, mode.unwrap_or_else(kept));
                Action::WriteFile { path: path.clone(), node, base: *base }
            }
            ChangeRequest::Undo { target, resolutions } => {
                let events = self.decode_all(&self.log.operation(*target)?)?;
                Action::Undo { target: *target, events, resolutions: resolutions.clone() }
            }
            ChangeRequest::UndoRun { run, resolutions } => {
                let events = self.decode_all(&self.log.run(*run)?)?;
                Action::UndoRun { run: *run, events, resolutions: resolutions.clone() }
            }
            ChangeRequest::RetryRun { run, to, resolutions } => {
                let events = self.decode_all(&self.log.run(*run)?)?;
                Action::RetryRun { run: *run, to: *to, events, resolutions: resolutions.clone() }
            }
            ChangeRequest::Restore { seq } => {
                if *seq > self.view.seq() {
                    return Err(Rejection::NotYet { seq: *seq }.into());
                }
                Action::Restore { seq: *seq, target: Arc::new(view_at(&*self.log, *seq)?) }
            }
        })
    }

    fn decode_all(&self, stored: &[StoredEvent<'_>]) -> Result<Vec<Event>, SubmitError> {
        Ok(stored.iter().map(|event| decode_event(&*self.log, event)).collect::<Result<_, _>>()?)
    }

    /// The ids of a new call and of a new run must be unused. The kernel knows the open ones; the log knows those that
    /// have ended.
    fn check_ids(&self, action: &Action, call: OpId, run: Option<RunId>) -> Result<(), SubmitError> {
        if matches!(action, Action::StartCall(_) | Action::MakeCall { .. })
            && !self.log.operation(call)?.is_empty()
        {
            return Err(Rejection::CallTaken { call }.into());
        }
        if let (Action::Run(RunAction::Start(_)), Some(run)) = (action, run)
            && !self.log.run(run)?.is_empty()
        {
            return Err(Rejection::RunTaken { run }.into());
        }
        Ok(())
    }

    /// No event may name contents that are not stored.
    fn check_contents(&self, action: &Action, given: &[(ContentHash, Vec<u8>)]) -> Result<(), SubmitError> {
        let given: HashSet<_> = given.iter().map(|(hash, _)| *hash).collect();
        let check = |content: ContentRef| {
            let here = given.contains(&content.hash) || self.log.has_content(&content.hash)?;
            if here { Ok(()) } else { Err(SubmitError::NoContent(content.hash)) }
        };
        named_contents(action).into_iter().try_for_each(check)
    }
}

fn named_in_run(action: &RunAction) -> Option<ContentRef> {
    match action {
        RunAction::Start(p) => Some(p.objective),
        RunAction::Steer(p) => Some(p.words),
        RunAction::HandBack { words, .. } => Some(*words),
        RunAction::Complete(p) => Some(p.summary),
        RunAction::Ask(p) | RunAction::AskAgain(p) => match &p.about {
            AskKind::Approval { input, .. } | AskKind::Outgoing { input, .. } => Some(*input),
            AskKind::Question { .. } | AskKind::Interrupted { .. } => None,
        },
        RunAction::StartTask(p) => Some(p.instruction),
        RunAction::Tell(p) => Some(p.body),
        RunAction::EndTask { report, .. } => report.as_ref().map(|report| report.body),
        RunAction::RecordReply(p) => Some(p.reply),
        RunAction::Pause(_)
        | RunAction::Resume(_)
        | RunAction::Wake
        | RunAction::Cancel
        | RunAction::Fail { .. }
        | RunAction::Answer { .. }
        | RunAction::Trust(_)
        | RunAction::RecordFailure { .. }
        | RunAction::RecordLoss(_) => None,
    }
}

/// The contents that an action names and the caller must have supplied or stored.
fn named_contents(action: &Action) -> Vec<ContentRef> {
    match action {
        Action::WriteFile { node, .. } => node.content().into_iter().collect(),
        Action::CaptureEdits { edits } => {
            edits.iter().filter_map(|edit| edit.now.as_ref()?.content()).collect()
        }
        Action::StartCall(call) => vec![call.input],
        Action::MakeCall { call, report, edits, also, .. } => {
            let files = edits.iter().filter_map(|edit| edit.now.as_ref()?.content());
            let run = also.as_deref().and_then(named_in_run);
            [call.input].into_iter().chain(report.output).chain(files).chain(run).collect()
        }
        Action::Run(action) => named_in_run(action).into_iter().collect(),
        Action::HoldCall { report, .. } => report.output.into_iter().collect(),
        Action::FinishCall { report, edits, .. } => {
            let files = edits.iter().filter_map(|edit| edit.now.as_ref()?.content());
            report.output.into_iter().chain(files).collect()
        }
        Action::WriteFiles { files } | Action::ImportFiles { files, .. } => {
            files.iter().filter_map(|(_, node)| node.content()).collect()
        }
        Action::CreateUser { .. }
        | Action::DeletePaths { .. }
        | Action::MovePaths { .. }
        | Action::SetWindow { .. }
        | Action::CloseWindow { .. }
        | Action::SetSetting { .. }
        | Action::ClearSetting { .. }
        | Action::RequestCheckpoint { .. }
        | Action::RecordCheckpoint { .. }
        | Action::FailCheckpoint { .. }
        | Action::RequestPurge { .. }
        | Action::RecordPurge { .. }
        | Action::RecordRequest { .. }
        | Action::Revoke { .. }
        | Action::Undo { .. }
        | Action::UndoRun { .. }
        | Action::RetryRun { .. }
        | Action::Restore { .. } => Vec::new(),
    }
}
