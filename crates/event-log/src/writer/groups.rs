//! The writer's thread: requests become groups, and a group becomes durable with one flush.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use kernel::{Action, Decision, RunAction, View, evolve, react};
use shared_types::{CommandId, ContentHash, Event, INLINE_LIMIT};

use super::replies::{Answer, Replies};
use super::{ChangeRequest, Inspection, Mode, Options, Outcome, Reply, Request, Submission, SubmitError};
use crate::replay::view_at;
use crate::snapshot::{SnapshotNeed, snapshot_need, snapshot_of};
use crate::{Append, AppendError, Appended, ContentError, EventLog, decode_event};

/// The largest group: requests that share one flush.
const GROUP: usize = 512;
/// After this long without a request the thread has time to save a snapshot.
const IDLE: Duration = Duration::from_millis(20);
/// After this long without a request the log's caches are given up.
const QUIET: Duration = Duration::from_secs(3);

/// Everything that the writer's thread owns.
pub(super) struct WriterThread {
    pub(super) log: Arc<dyn EventLog>,
    pub(super) view: View,
    pub(super) options: Options,
    pub(super) last_ts: i64,
    replies: Replies,
    /// `View::changes` at the newest snapshot.
    saved: u64,
    /// The number of members of the last two groups.
    group_sizes: [usize; 2],
}

/// Submissions that are decided and wait for the flush. Each that changes something has an append, in the same order.
#[derive(Default)]
struct Group {
    members: Vec<Member>,
    appends: Vec<Append>,
    /// Inspections run after the flush: they must not see events that are not durable, and ending the group for them
    /// would cost the writers an extra flush.
    inspections: Vec<Inspection>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.members.len() + self.inspections.len() >= GROUP
    }

    /// Whether the submission may depend on events of this group, which the log holds only after the flush.
    fn may_affect(&self, submission: &Submission) -> bool {
        let has = |is: &dyn Fn(&Event) -> bool| self.appends.iter().flat_map(|append| &append.events).any(is);
        match &submission.change {
            ChangeRequest::Do(Action::StartCall(_) | Action::MakeCall { .. }) => {
                has(&|event| event.op == submission.origin.op)
            }
            ChangeRequest::Do(Action::Run(RunAction::Start(_))) => {
                has(&|event| event.run_id == submission.origin.run_id)
            }
            ChangeRequest::Do(_) | ChangeRequest::WriteFile { .. } => false,
            ChangeRequest::Undo { .. }
            | ChangeRequest::UndoRun { .. }
            | ChangeRequest::RetryRun { .. }
            | ChangeRequest::Restore { .. } => !self.appends.is_empty(),
        }
    }
}

struct Member {
    submission: Box<Submission>,
    reply: Reply,
    /// How many contents the submission brought to its append; none for a no-op, which has no append.
    brought: Option<usize>,
}

impl WriterThread {
    pub(super) fn new(log: Arc<dyn EventLog>, view: View, options: Options, replies: Replies) -> Self {
        Self { log, view, options, replies, saved: 0, last_ts: i64::MIN, group_sizes: [0; 2] }
    }

    pub(super) fn run(&mut self, requests: &Receiver<Request>) {
        while let Some(first) = self.next(requests) {
            let mut waiting = VecDeque::from([first]);
            let mut group = Group::default();
            while self.take_all(&mut waiting, &mut group)
                && !group.is_full()
                && let Some(next) = self.more(requests, group.members.len())
            {
                waiting.push_back(next);
            }
            self.commit(group, &mut waiting);
            while !waiting.is_empty() {
                let mut group = Group::default();
                self.take_all(&mut waiting, &mut group);
                self.commit(group, &mut waiting);
            }
        }
    }

    /// Waits for the first request of a group. While none comes, saves a snapshot that is due and gives memory back.
    fn next(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        match snapshot_need(&self.view, self.saved) {
            SnapshotNeed::None => {}
            SnapshotNeed::Overdue => self.save_snapshot(),
            SnapshotNeed::Due => match requests.recv_timeout(IDLE) {
                Err(RecvTimeoutError::Timeout) => self.save_snapshot(),
                other => return other.ok(),
            },
        }
        match requests.recv_timeout(QUIET) {
            Err(RecvTimeoutError::Timeout) => self.log.release_memory(),
            other => return other.ok(),
        }
        requests.recv().ok()
    }

    /// One more request for the group. Callers that submit again as soon as they get a reply form two groups: one gets
    /// its replies while the other is flushed. So a group smaller than usual first hands out pending replies, instead
    /// of flushing for the few requests that came early.
    fn more(&self, requests: &Receiver<Request>, members: usize) -> Option<Request> {
        let half = self.group_sizes.iter().sum::<usize>() / 2;
        loop {
            match requests.try_recv() {
                Err(TryRecvError::Empty) if members < half && self.replies.send_next() => {}
                other => return other.ok(),
            }
        }
    }

    /// Decides the waiting requests in order. False if one of them needs the group to be committed first.
    fn take_all(&mut self, waiting: &mut VecDeque<Request>, group: &mut Group) -> bool {
        while let Some(request) = waiting.pop_front() {
            match request {
                Request::Inspect(look) if group.members.is_empty() => look(&mut self.view),
                Request::Inspect(look) => group.inspections.push(look),
                // A decision that reads the log needs a log that holds everything the view has seen.
                Request::Submit { submission, mode, reply } if group.may_affect(&submission) => {
                    waiting.push_front(Request::Submit { submission, mode, reply });
                    return false;
                }
                Request::Submit { submission, mode, reply } => {
                    if let Err(early) = self.take(submission, mode, reply, group) {
                        waiting.push_front(early);
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Decides a submission. Returns it if it needs contents that another member of the group brings.
    fn take(
        &mut self,
        mut submission: Box<Submission>,
        mode: Mode,
        reply: Reply,
        group: &mut Group,
    ) -> Result<(), Request> {
        let decision = match self.decide(&submission) {
            Ok(decision) => decision,
            Err(SubmitError::NoContent(_) | SubmitError::Content(ContentError::Missing(_)))
                if !group.appends.is_empty() =>
            {
                return Err(Request::Submit { submission, mode, reply });
            }
            Err(error) => {
                reply(self.first_answer(submission.origin.command).unwrap_or(Err(error)));
                return Ok(());
            }
        };
        if mode == Mode::Preview {
            reply(Ok(Outcome { decision, ..Outcome::default() }));
            return Ok(());
        }
        if decision.events.is_empty() {
            // No-ops that depend on this group are acknowledged with it.
            if group.members.is_empty() {
                reply(self.no_op(submission.origin.command));
            } else {
                group.members.push(Member { submission, reply, brought: None });
            }
            return Ok(());
        }
        let merged = match self.stage_large(decision.contents) {
            Ok(merged) => merged,
            Err(error) => {
                reply(Err(error.into()));
                return Ok(());
            }
        };
        let brought = Some(submission.contents.len());
        let mut contents = std::mem::take(&mut submission.contents);
        contents.extend(merged);
        let expected = self.view.seq();
        for event in &decision.events {
            evolve(&mut self.view, event);
        }
        group.appends.push(Append {
            command: submission.origin.command,
            expected,
            events: decision.events,
            contents,
        });
        group.members.push(Member { submission, reply, brought });
        Ok(())
    }

    /// Stages the larger contents as blobs and returns the small ones, which go into the append.
    fn stage_large(
        &self,
        mut contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Vec<(ContentHash, Vec<u8>)>, ContentError> {
        for (_, bytes) in contents.extract_if(.., |(_, bytes)| bytes.len() > INLINE_LIMIT) {
            let _ = self.log.stage(&mut bytes.as_slice())?;
        }
        Ok(contents)
    }

    /// Appends the group. Submissions that must be decided again return to the front of the queue.
    fn commit(&mut self, group: Group, waiting: &mut VecDeque<Request>) {
        let Group { members, appends, inspections } = group;
        if members.is_empty() {
            return;
        }
        self.group_sizes = [self.group_sizes[1], members.len()];
        let answers = self.log.append(&appends);
        let mut answered = appends.into_iter().zip(answers);
        let mut again = Vec::new();
        let mut replies = Vec::with_capacity(members.len());
        // False after the first append that failed or repeated an older one: later decisions are void.
        let mut clean = true;
        for Member { mut submission, reply, brought } in members {
            let Some((brought, (append, answer))) = brought.and_then(|n| Some((n, answered.next()?))) else {
                match clean {
                    true => replies.push((reply, self.no_op(submission.origin.command))),
                    false => again.push((submission, reply)),
                }
                continue;
            };
            match answer {
                Ok(appended) if appended.first == append.expected.next() => {
                    replies.push(self.acknowledge(reply, append, appended));
                }
                Ok(first) => {
                    clean = false;
                    replies.push((reply, self.repeat(first)));
                }
                Err(AppendError::WrongSeq { .. }) if !clean => {
                    submission.contents = append.contents;
                    submission.contents.truncate(brought);
                    again.push((submission, reply));
                }
                Err(error) => {
                    clean = false;
                    replies.push((reply, Err(error.into())));
                }
            }
        }
        self.replies.send(replies);
        if !clean {
            self.reload();
        }
        inspections.into_iter().for_each(|look| look(&mut self.view));
        for (submission, reply) in again.into_iter().rev() {
            waiting.push_front(Request::Submit { submission, mode: Mode::Commit, reply });
        }
    }

    fn acknowledge(&self, reply: Reply, append: Append, appended: Appended) -> Answer {
        if let Some(effects) = &self.options.effects {
            for effect in append.events.iter().flat_map(|event| react(&self.view, event)) {
                let _ = effects.send(effect);
            }
        }
        let decision = Decision { events: append.events, contents: Vec::new() };
        (reply, Ok(Outcome { appended: Some(appended), resent: false, decision }))
    }

    /// The answer to a command that changes nothing.
    fn no_op(&self, command: CommandId) -> Result<Outcome, SubmitError> {
        self.first_answer(command).unwrap_or_else(|| Ok(Outcome::default()))
    }

    /// The recorded answer, if the command is a resend.
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
                return ControlFlow::Break(());
            }
            match decode_event(&*self.log, stored) {
                Ok(event) => events.push(event),
                Err(e) => failure = Some(e),
            }
            ControlFlow::Continue(())
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

    /// Returns the view to what the log holds. If reading fails, the view stays at an older seq, and the log refuses
    /// appends for their seq until reading works again.
    pub(super) fn reload(&mut self) {
        if let Ok(view) = view_at(&*self.log, self.log.head().seq) {
            self.view = view;
            self.saved = 0;
        }
    }

    /// A snapshot only speeds up opening, so a failure is ignored and tried again later.
    fn save_snapshot(&mut self) {
        if self.log.save_snapshot(&snapshot_of(&mut self.view)).is_ok() {
            self.saved = self.view.changes();
        }
    }
}
