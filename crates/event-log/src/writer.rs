//! The one writer of a user: a thread that owns the present and turns commands into durable events.
//!
//! It takes the commands that wait, decides each on a speculative view, appends them as one group with one flush, and
//! only then answers. If the flush fails, everybody in the group is refused and the view goes back to what the log
//! holds. It never waits for a model, a network or a command. Dropping the last handle ends the thread.

mod replies;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError};
use std::thread::JoinHandle;

use kernel::{Action, Command, Decision, Effect, Rejection, Resolutions, View, decide, evolve, react};
use shared_types::payload::file::FileNode;
use shared_types::{
    Actor, CommandId, ContentHash, ContentRef, Event, EventId, INLINE_LIMIT, OpId, RunId, Seq, Source, Taint,
    Timestamp,
};
use thiserror::Error;

use crate::replay::{SnapshotNeed, snapshot_need, snapshot_of, view_at};
use crate::{Append, AppendError, Appended, ContentError, EventLog, ReadError, read_content, understand};
use replies::{Answer, Replies};

/// Commands that may wait before a caller has to.
const MAILBOX: usize = 1024;
/// Commands that share one flush at most.
const GROUP: usize = 512;

/// What somebody wants, before it is stamped.
#[derive(Debug, Clone)]
pub struct Submission {
    pub command: CommandId,
    pub op: OpId,
    pub source: Source,
    pub actor: Actor,
    pub run_id: Option<RunId>,
    pub cause: Option<EventId>,
    pub taint: Vec<Taint>,
    pub intent: Intent,
    /// Small contents that the intent names.
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

/// An action, or one for which the writer first reads the log.
#[derive(Debug, Clone)]
pub enum Intent {
    Do(Action),
    Undo { target: OpId, resolutions: Resolutions },
    Restore { seq: Seq },
}

/// Whether a decision takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Commit,
    /// Only say what would happen.
    Preview,
}

/// What became of a submission. No events means that all was as wanted already.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Where the events stand; absent if there are none, and for a preview.
    pub appended: Option<Appended>,
    /// True if this command was answered before, and this is that answer again.
    pub resent: bool,
    pub decision: Decision,
}

/// Why a submission did not take effect. Nothing was changed.
#[derive(Debug, Error)]
pub enum SubmitError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("content {0} is named but is not here: it was purged, or never stored")]
    NoContent(ContentHash),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("the writer has stopped: {0}")]
    Stopped(String),
}

type Reply = Box<dyn FnOnce(Result<Outcome, SubmitError>) + Send>;

enum Request {
    Submit { submission: Box<Submission>, mode: Mode, reply: Reply },
    Inspect(Box<dyn FnOnce(&mut View) + Send>),
}

/// A handle on the writer; cheap to clone.
#[derive(Clone)]
pub struct Writer {
    mailbox: SyncSender<Request>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

/// What a writer is given.
pub struct Options {
    pub clock: Box<dyn Fn() -> Timestamp + Send>,
    /// Woken with every effect that becomes owed, and at the start with all that are.
    pub effects: Option<Sender<Effect>>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Options")
    }
}

impl Writer {
    /// Loads the present and starts the thread.
    pub fn start(log: Arc<dyn EventLog>, options: Options) -> Result<(Self, JoinHandle<()>), ReadError> {
        let view = view_at(&*log, log.head().seq)?;
        let (mailbox, requests) = mpsc::sync_channel(MAILBOX);
        if let Some(effects) = &options.effects {
            for (id, kind) in view.pending.iter() {
                let _ = effects.send(Effect { id: *id, kind: kind.clone() });
            }
        }
        let snapshot = log.snapshots()?.last().map_or(Seq::ZERO, |(seq, _)| *seq);
        let spawned = Replies::start().and_then(|replies| {
            let mut state = State { log, view, options, snapshot, replies, last_ts: i64::MIN };
            std::thread::Builder::new().name("writer".into()).spawn(move || state.run(&requests))
        });
        let thread = spawned.map_err(|e| ReadError::Broken { seq: Seq::ZERO, reason: e.to_string() })?;
        Ok((Self { mailbox }, thread))
    }

    /// Hands a submission over; `reply` is called on a thread of the writer's and must not block.
    pub fn submit_with(
        &self,
        submission: Submission,
        mode: Mode,
        reply: impl FnOnce(Result<Outcome, SubmitError>) + Send + 'static,
    ) {
        let request = Request::Submit { submission: Box::new(submission), mode, reply: Box::new(reply) };
        if let Err(mpsc::SendError(Request::Submit { reply, .. })) = self.mailbox.send(request) {
            reply(Err(SubmitError::Stopped("its thread is gone".into())));
        }
    }

    /// Submits and waits for the answer.
    pub fn submit(&self, submission: Submission, mode: Mode) -> Result<Outcome, SubmitError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit_with(submission, mode, move |answer| {
            let _ = sender.send(answer);
        });
        receiver.recv().map_err(|_| SubmitError::Stopped("it ended before answering".into()))?
    }

    /// Looks at the present, between two groups.
    pub fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut View) -> T + Send + 'static,
    ) -> Result<T, SubmitError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let request = Request::Inspect(Box::new(move |view| {
            let _ = sender.send(look(view));
        }));
        let stopped = |_| SubmitError::Stopped("its thread is gone".into());
        self.mailbox.send(request).map_err(|_| stopped(()))?;
        receiver.recv().map_err(|_| stopped(()))
    }
}

struct State {
    log: Arc<dyn EventLog>,
    view: View,
    options: Options,
    snapshot: Seq,
    replies: Replies,
    last_ts: i64,
}

/// A submission that was decided and waits for the flush.
struct Decided {
    submission: Box<Submission>,
    reply: Reply,
    decision: Decision,
    expected: Seq,
}

impl State {
    fn run(&mut self, requests: &Receiver<Request>) {
        while let Some(first) = self.next(requests) {
            let mut waiting = VecDeque::from([first]);
            let mut group = Vec::new();
            while self.take_all(&mut waiting, &mut group)
                && group.len() < GROUP
                && let Some(next) = self.more(requests)
            {
                waiting.push_back(next);
            }
            self.commit(group, &mut waiting);
            while !waiting.is_empty() {
                let mut group = Vec::new();
                self.take_all(&mut waiting, &mut group);
                self.commit(group, &mut waiting);
            }
        }
    }

    /// The first request of a group. Before it waits for one, there is time for a snapshot.
    fn next(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        let need = snapshot_need(&self.view, self.snapshot);
        let next = requests.try_recv().ok();
        if need == SnapshotNeed::Overdue || need == SnapshotNeed::Due && next.is_none() {
            self.save_snapshot();
        }
        next.or_else(|| requests.recv().ok())
    }

    /// One more for the group. While callers of the last group are still being answered, more will come: a flush
    /// for the few who are early would keep the others waiting.
    fn more(&self, requests: &Receiver<Request>) -> Option<Request> {
        loop {
            match requests.try_recv() {
                Err(TryRecvError::Empty) if self.replies.give_next() => {}
                other => return other.ok(),
            }
        }
    }

    /// Decides what waits, in order. False if something waits for the group to be committed first.
    fn take_all(&mut self, waiting: &mut VecDeque<Request>, group: &mut Vec<Decided>) -> bool {
        while let Some(request) = waiting.pop_front() {
            match request {
                // Nobody is shown what is not durable.
                Request::Inspect(look) if !group.is_empty() => {
                    waiting.push_front(Request::Inspect(look));
                    return false;
                }
                Request::Inspect(look) => look(&mut self.view),
                Request::Submit { submission, mode, reply } => self.take(submission, mode, reply, group),
            }
        }
        true
    }

    fn take(&mut self, submission: Box<Submission>, mode: Mode, reply: Reply, group: &mut Vec<Decided>) {
        let decision = match self.decide(&submission) {
            Ok(decision) => decision,
            Err(error) => return reply(self.first_answer(submission.command).unwrap_or(Err(error))),
        };
        if mode == Mode::Preview {
            return reply(Ok(Outcome { decision, ..Outcome::default() }));
        }
        // What is as wanted only through events of this group is acknowledged with them.
        if decision.events.is_empty() && group.is_empty() {
            let nothing = Ok(Outcome::default());
            return reply(self.first_answer(submission.command).unwrap_or(nothing));
        }
        let expected = self.view.seq();
        for event in &decision.events {
            evolve(&mut self.view, event);
        }
        group.push(Decided { submission, reply, decision, expected });
    }

    /// The answer this command got before, if it is a resend.
    fn first_answer(&self, command: CommandId) -> Option<Result<Outcome, SubmitError>> {
        match self.log.answer(command) {
            Ok(None) => None,
            Ok(Some(appended)) => Some(self.repeat(appended)),
            Err(e) => Some(Err(e.into())),
        }
    }

    fn repeat(&self, appended: Appended) -> Result<Outcome, SubmitError> {
        let mut events = Vec::new();
        let mut failure = None;
        self.log.scan(appended.first, &mut |stored| {
            if stored.seq > appended.last {
                return std::ops::ControlFlow::Break(());
            }
            match understand(&*self.log, stored) {
                Ok(event) => events.push(event),
                Err(e) => failure = Some(e),
            }
            std::ops::ControlFlow::Continue(())
        })?;
        match failure {
            Some(e) => Err(e.into()),
            None => Ok(Outcome {
                appended: Some(appended),
                resent: true,
                decision: Decision { events, contents: Vec::new() },
            }),
        }
    }

    /// Appends the group. What has to be decided again goes back to the front of those that wait.
    fn commit(&mut self, group: Vec<Decided>, waiting: &mut VecDeque<Request>) {
        if group.is_empty() {
            return;
        }
        let mut appends = Vec::with_capacity(group.len());
        let mut refused = HashMap::new();
        for (index, decided) in group.iter().enumerate().filter(|(_, d)| !d.decision.events.is_empty()) {
            match self.append_of(decided) {
                Ok(append) => appends.push(append),
                // The appends after this one no longer fit; the log refuses them and they are decided again.
                Err(e) => drop(refused.insert(index, e)),
            }
        }
        let mut answers = self.log.append(appends).into_iter();
        let mut again = Vec::new();
        let mut replies = Vec::with_capacity(group.len());
        let mut clean = true;
        for (index, decided) in group.into_iter().enumerate() {
            if decided.decision.events.is_empty() {
                match clean {
                    true => replies.push(self.confirm(decided)),
                    false => again.push(decided),
                }
                continue;
            }
            let answer = match refused.remove(&index) {
                Some(e) => Err(SubmitError::from(e)),
                None => answers.next().unwrap_or(Err(AppendError::Size(0))).map_err(SubmitError::from),
            };
            match answer {
                Ok(appended) if appended.first == decided.expected.next() => {
                    replies.push(self.acknowledge(decided, appended));
                }
                Ok(first) => {
                    clean = false;
                    replies.push((decided.reply, self.repeat(first)));
                }
                Err(SubmitError::Append(AppendError::WrongSeq { .. })) if !clean => again.push(decided),
                Err(error) => {
                    clean = false;
                    replies.push((decided.reply, Err(error)));
                }
            }
        }
        self.replies.send(replies);
        if !clean {
            self.reload();
        }
        for Decided { submission, reply, .. } in again.into_iter().rev() {
            waiting.push_front(Request::Submit { submission, mode: Mode::Commit, reply });
        }
    }

    /// What the log is handed: small contents travel along, larger ones become blobs first.
    fn append_of(&self, decided: &Decided) -> Result<Append, ContentError> {
        let mut contents = decided.submission.contents.clone();
        for (hash, bytes) in &decided.decision.contents {
            if bytes.len() > INLINE_LIMIT {
                let _ = self.log.stage(&mut bytes.as_slice())?;
            } else {
                contents.push((*hash, bytes.clone()));
            }
        }
        Ok(Append {
            command: decided.submission.command,
            expected: decided.expected,
            events: decided.decision.events.clone(),
            contents,
        })
    }

    fn acknowledge(&self, decided: Decided, appended: Appended) -> Answer {
        if let Some(effects) = &self.options.effects {
            for effect in decided.decision.events.iter().flat_map(|event| react(&self.view, event)) {
                let _ = effects.send(effect);
            }
        }
        let outcome = Outcome { appended: Some(appended), resent: false, decision: decided.decision };
        (decided.reply, Ok(outcome))
    }

    /// The answer to a command that changes nothing.
    fn confirm(&self, decided: Decided) -> Answer {
        let nothing = Ok(Outcome::default());
        (decided.reply, self.first_answer(decided.submission.command).unwrap_or(nothing))
    }

    /// Back to what the log holds. If even reading fails, the view stays at an older seq, and appends are refused by
    /// their seq until reading works again.
    fn reload(&mut self) {
        if let Ok(view) = view_at(&*self.log, self.log.head().seq) {
            self.view = view;
        }
    }

    fn decide(&mut self, submission: &Submission) -> Result<Decision, SubmitError> {
        if self.view.seq() < self.log.head().seq {
            self.reload();
        }
        let ts = (self.options.clock)().millis().max(self.last_ts);
        self.last_ts = ts;
        let action = self.action(&submission.intent)?;
        self.check_contents(&action, &submission.contents)?;
        let mut command = Command {
            id: submission.command,
            op: submission.op,
            ts: Timestamp::from_millis(ts),
            source: submission.source,
            actor: submission.actor.clone(),
            run_id: submission.run_id,
            cause: submission.cause,
            taint: submission.taint.clone(),
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
                    self.check_brought_back(&command.action, &decision)?;
                    return Ok(decision);
                }
            }
        }
    }

    /// Going back must not bring back files whose bytes were purged since.
    fn check_brought_back(&self, action: &Action, decision: &Decision) -> Result<(), SubmitError> {
        if !matches!(action, Action::Undo { .. } | Action::Restore { .. }) {
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

    fn action(&self, intent: &Intent) -> Result<Action, SubmitError> {
        Ok(match intent {
            Intent::Do(action) => action.clone(),
            Intent::Undo { target, resolutions } => {
                let stored = self.log.operation(*target)?;
                let events: Result<Vec<Event>, _> =
                    stored.iter().map(|s| understand(&*self.log, s)).collect();
                Action::Undo { target: *target, events: events?, resolutions: resolutions.clone() }
            }
            Intent::Restore { seq } => {
                if *seq > self.view.seq() {
                    return Err(Rejection::NotYet { seq: *seq }.into());
                }
                Action::Restore { seq: *seq, target: Arc::new(view_at(&*self.log, *seq)?) }
            }
        })
    }

    /// No event may name bytes that are not here.
    fn check_contents(&self, action: &Action, given: &[(ContentHash, Vec<u8>)]) -> Result<(), SubmitError> {
        let given: HashSet<_> = given.iter().map(|(hash, _)| *hash).collect();
        let check = |content: ContentRef| {
            let here = given.contains(&content.hash) || self.log.has_content(&content.hash)?;
            if here { Ok(()) } else { Err(SubmitError::NoContent(content.hash)) }
        };
        named_contents(action).into_iter().try_for_each(check)
    }

    /// A snapshot only makes opening quicker: one that cannot be saved is tried again later.
    fn save_snapshot(&mut self) {
        if self.log.save_snapshot(&snapshot_of(&mut self.view)).is_ok() {
            self.snapshot = self.view.seq();
        }
    }
}

/// The contents that an action brings in from outside.
fn named_contents(action: &Action) -> Vec<ContentRef> {
    match action {
        Action::WriteFile { node, .. } => node.content().into_iter().collect(),
        Action::CaptureEdits { edits } => {
            edits.iter().filter_map(|edit| edit.now.as_ref()?.content()).collect()
        }
        Action::ImportFiles { files, .. } => files.iter().filter_map(|(_, node)| node.content()).collect(),
        Action::WriteNote { state, .. } => vec![state.body],
        Action::PostMessage { body, .. } => vec![*body],
        Action::CreateUser { .. }
        | Action::RenameUser { .. }
        | Action::DeletePath { .. }
        | Action::MovePath { .. }
        | Action::SetWindow { .. }
        | Action::CloseWindow { .. }
        | Action::SetSetting { .. }
        | Action::ClearSetting { .. }
        | Action::DeleteNote { .. }
        | Action::StartConversation { .. }
        | Action::RequestCheckpoint { .. }
        | Action::RecordCheckpoint { .. }
        | Action::FailCheckpoint { .. }
        | Action::RequestPurge { .. }
        | Action::RecordPurge { .. }
        | Action::Undo { .. }
        | Action::Restore { .. } => Vec::new(),
    }
}
