//! The writer's thread: requests become groups, and a group becomes durable with one flush.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use kernel::{Action, Decision, RunAction, View, evolve, react};
use shared_types::{CommandId, ContentHash, Event, INLINE_LIMIT};

use super::replies::{Answer, Replies};
use super::{Intent, Look, Mode, Options, Outcome, Reply, Request, Submission, SubmitError};
use crate::replay::{SnapshotNeed, snapshot_need, snapshot_of, view_at};
use crate::{Append, AppendError, Appended, ContentError, EventLog, understand};

/// Requests that wait for one flush at most.
const GROUP: usize = 512;
/// Nobody asked for this long: there is time for a snapshot.
const IDLE: Duration = Duration::from_millis(20);

pub(super) struct State {
    pub(super) log: Arc<dyn EventLog>,
    pub(super) view: View,
    pub(super) options: Options,
    pub(super) last_ts: i64,
    replies: Replies,
    /// The changes that the newest snapshot holds, as the view counts them.
    saved: u64,
    /// How many took part in the last two groups.
    took_part: [usize; 2],
}

/// Submissions that were decided and wait for the flush. Those that change something have an append, in order.
#[derive(Default)]
struct Group {
    members: Vec<Member>,
    appends: Vec<Append>,
    /// Those who want to see the present. Nobody is shown what is not durable, and nobody who writes is kept from
    /// sharing the flush by somebody who only looks.
    looks: Vec<Look>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.members.len() + self.looks.len() >= GROUP
    }

    /// Whether something that the log will hold only after the flush could matter to this submission.
    fn concerns(&self, submission: &Submission) -> bool {
        let has = |is: &dyn Fn(&Event) -> bool| self.appends.iter().flat_map(|append| &append.events).any(is);
        match &submission.intent {
            Intent::Do(Action::StartCall(_) | Action::MakeCall { .. }) => {
                has(&|event| event.op == submission.op)
            }
            Intent::Do(Action::Run(RunAction::Start(_))) => has(&|event| event.run_id == submission.run_id),
            Intent::Do(_) => false,
            Intent::Undo { .. }
            | Intent::UndoRun { .. }
            | Intent::RetryRun { .. }
            | Intent::Restore { .. } => !self.appends.is_empty(),
        }
    }
}

struct Member {
    submission: Box<Submission>,
    reply: Reply,
    /// Whether one of the appends is this member's, and how many of its contents the submission brought.
    brought: Option<usize>,
}

impl State {
    pub(super) fn new(log: Arc<dyn EventLog>, view: View, options: Options, replies: Replies) -> Self {
        Self { log, view, options, replies, saved: 0, last_ts: i64::MIN, took_part: [0; 2] }
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

    /// The first request of a group. While nobody asks, there is time for a snapshot.
    fn next(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        match snapshot_need(&self.view, self.saved) {
            SnapshotNeed::None => {}
            SnapshotNeed::Overdue => self.save_snapshot(),
            SnapshotNeed::Due => match requests.recv_timeout(IDLE) {
                Err(RecvTimeoutError::Timeout) => self.save_snapshot(),
                other => return other.ok(),
            },
        }
        requests.recv().ok()
    }

    /// One more for the group. Writers who ask again as soon as they are answered fall into two groups, of which one
    /// is answered while the other is flushed: a flush for a few who are early would keep the others waiting.
    fn more(&self, requests: &Receiver<Request>, members: usize) -> Option<Request> {
        let half = self.took_part.iter().sum::<usize>() / 2;
        loop {
            match requests.try_recv() {
                Err(TryRecvError::Empty) if members < half && self.replies.give_next() => {}
                other => return other.ok(),
            }
        }
    }

    /// Decides what waits, in order. False if something waits for the group to be committed first.
    fn take_all(&mut self, waiting: &mut VecDeque<Request>, group: &mut Group) -> bool {
        while let Some(request) = waiting.pop_front() {
            match request {
                Request::Inspect(look) if group.members.is_empty() => look(&mut self.view),
                Request::Inspect(look) => group.looks.push(look),
                // What is decided from the log is decided when the log holds all that the view has seen.
                Request::Submit { submission, mode, reply } if group.concerns(&submission) => {
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

    /// Decides a submission. It comes back if it needs bytes that another of the group brings along.
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
                reply(self.first_answer(submission.command).unwrap_or(Err(error)));
                return Ok(());
            }
        };
        if mode == Mode::Preview {
            reply(Ok(Outcome { decision, ..Outcome::default() }));
            return Ok(());
        }
        if decision.events.is_empty() {
            // What is as wanted only through events of this group is acknowledged with them.
            if group.members.is_empty() {
                reply(self.nothing_to_do(submission.command));
            } else {
                group.members.push(Member { submission, reply, brought: None });
            }
            return Ok(());
        }
        let merged = match self.small_ones(decision.contents) {
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
            command: submission.command,
            expected,
            events: decision.events,
            contents,
        });
        group.members.push(Member { submission, reply, brought });
        Ok(())
    }

    /// Makes blobs of the larger contents and returns the others, which travel with the append.
    fn small_ones(
        &self,
        mut contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Vec<(ContentHash, Vec<u8>)>, ContentError> {
        for (_, bytes) in contents.extract_if(.., |(_, bytes)| bytes.len() > INLINE_LIMIT) {
            let _ = self.log.stage(&mut bytes.as_slice())?;
        }
        Ok(contents)
    }

    /// Appends the group. What has to be decided again goes back to the front of those that wait.
    fn commit(&mut self, group: Group, waiting: &mut VecDeque<Request>) {
        let Group { members, appends, looks } = group;
        if members.is_empty() {
            return;
        }
        self.took_part = [self.took_part[1], members.len()];
        let answers = self.log.append(&appends);
        let mut appended = appends.into_iter().zip(answers);
        let mut again = Vec::new();
        let mut replies = Vec::with_capacity(members.len());
        let mut clean = true;
        for Member { mut submission, reply, brought } in members {
            let Some((brought, (append, answer))) = brought.and_then(|n| Some((n, appended.next()?))) else {
                match clean {
                    true => replies.push((reply, self.nothing_to_do(submission.command))),
                    false => again.push((submission, reply)),
                }
                continue;
            };
            match answer {
                Ok(place) if place.first == append.expected.next() => {
                    replies.push(self.acknowledge(reply, append, place));
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
        looks.into_iter().for_each(|look| look(&mut self.view));
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
    fn nothing_to_do(&self, command: CommandId) -> Result<Outcome, SubmitError> {
        self.first_answer(command).unwrap_or_else(|| Ok(Outcome::default()))
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
                return ControlFlow::Break(());
            }
            match understand(&*self.log, stored) {
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

    /// Back to what the log holds. If even reading fails, the view stays at an older seq, and appends are refused by
    /// their seq until reading works again.
    pub(super) fn reload(&mut self) {
        if let Ok(view) = view_at(&*self.log, self.log.head().seq) {
            self.view = view;
            self.saved = 0;
        }
    }

    /// A snapshot only makes opening quicker: one that cannot be saved is tried again later.
    fn save_snapshot(&mut self) {
        if self.log.save_snapshot(&snapshot_of(&mut self.view)).is_ok() {
            self.saved = self.view.changes();
        }
    }
}
