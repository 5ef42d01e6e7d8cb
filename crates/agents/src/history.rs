//! The state of a run, folded from its events. The same events give the same history, live and after a crash.

use std::collections::BTreeMap;

use kernel::View;
use kernel::run::{Run, Task, TaskState};
use shared_types::payload::llm::{LlmEvent, ReplyEnd, RequestedCall};
use shared_types::payload::run::{AskKind, Reply, RunAsk, RunEvent, RunStart};
use shared_types::payload::task::{MessageKind, TaskEvent, TaskOutcome};
use shared_types::payload::tool::{ToolEvent, ToolReport, ToolStatus};
use shared_types::{AskId, ContentRef, Event, EventId, OpId, Payload, RunId, Seq, TaskId};

use crate::ask_ids::outbox_ask_id;

/// Everything that happened in a run.
#[derive(Debug, Clone)]
pub struct History {
    pub id: RunId,
    pub start: Option<RunStart>,
    pub tasks: BTreeMap<TaskId, TaskHistory>,
    /// The person's answers, by question.
    pub answers: BTreeMap<AskId, Reply>,
    /// Files that its calls changed.
    pub changed_files: std::collections::BTreeSet<shared_types::FilePath>,
    /// The inputs of recorded calls.
    call_inputs: BTreeMap<OpId, ContentRef>,
    /// The titles of recorded calls, for people.
    pub call_titles: BTreeMap<OpId, Box<str>>,
    /// The tools of recorded calls.
    pub call_tools: BTreeMap<OpId, Box<str>>,
    /// How often the server restarted in this run since the last event of another kind.
    pub restarts_in_a_row: usize,
    /// Messages of the person from before the first agent started.
    early_messages: Vec<HistoryEntry>,
    view: View,
    seq: Seq,
    newest: Option<EventId>,
    /// The reply that requested each call.
    call_requests: BTreeMap<OpId, EventId>,
}

/// The conversation and the calls of one agent, in order.
#[derive(Debug, Clone)]
pub struct TaskHistory {
    pub id: TaskId,
    pub parent: Option<TaskId>,
    pub role: Box<str>,
    pub instruction: ContentRef,
    /// Whether the instruction came from the person or from an untainted agent.
    pub is_untainted: bool,
    pub entries: Vec<HistoryEntry>,
    /// The newest event that it received or made.
    newest: EventId,
    /// How its work ended; `None` while it works.
    pub outcome: Option<TaskOutcome>,
    /// Why its model can take no further turn. A later reply or a resume of the run clears it.
    pub permanent_failure: Option<Box<str>>,
}

/// One entry in the history of an agent.
#[derive(Debug, Clone)]
pub enum HistoryEntry {
    /// Its model replied.
    ModelReply {
        seq: Seq,
        seen: Seq,
        reply: ContentRef,
        ended: ReplyEnd,
        calls: Vec<RequestedCall>,
        /// Whether the agent was untainted at this point.
        is_untainted: bool,
    },
    /// A tool call got its result.
    ToolResult {
        call: OpId,
        tool: Box<str>,
        input: Option<ContentRef>,
        status: ToolStatus,
        report: ToolReport,
        is_untainted: bool,
    },
    /// It received a message.
    Message { seq: Seq, from: MessageSender, words: ContentRef, is_untainted: bool },
}

/// The sender of a message to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSender {
    Person,
    Agent { task: TaskId, kind: MessageKind },
}

impl History {
    pub fn new(id: RunId) -> Self {
        Self {
            id,
            start: None,
            tasks: BTreeMap::new(),
            answers: BTreeMap::new(),
            changed_files: std::collections::BTreeSet::new(),
            call_inputs: BTreeMap::new(),
            call_titles: BTreeMap::new(),
            call_tools: BTreeMap::new(),
            restarts_in_a_row: 0,
            early_messages: Vec::new(),
            view: View::default(),
            seq: Seq::ZERO,
            newest: None,
            call_requests: BTreeMap::new(),
        }
    }

    /// Folds all events of a run. Events that a rewind removed only count towards the budgets.
    pub fn from_events(id: RunId, events: &[Event]) -> Self {
        let (mut history, is_rewound) = (Self::new(id), kernel::run::is_rewound(id, events));
        for event in events {
            if is_rewound(event) { history.skip_rewound(event) } else { history.add(event) }
        }
        history
    }

    /// The run in the kernel's view; `None` before its first event.
    pub fn run(&self) -> Option<&Run> {
        self.view.runs.get(&self.id)
    }

    /// The newest event in this history.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The newest event: the cause of what the harness does next.
    pub(crate) fn newest_event(&self) -> Option<EventId> {
        self.newest
    }

    /// The cause of what an agent does next: the newest event that it received or made.
    pub(crate) fn newest_event_of(&self, task: TaskId) -> Option<EventId> {
        self.tasks.get(&task).map(|task| task.newest)
    }

    /// The cause of a call: the reply that requested it.
    pub(crate) fn request_of(&self, call: OpId) -> Option<EventId> {
        self.call_requests.get(&call).copied()
    }

    /// The agent that works on the objective; all others help it.
    pub fn root_task(&self) -> TaskId {
        TaskId::from_bytes(*self.id.as_bytes())
    }

    /// Whether a call is recorded and has no result.
    pub fn is_open(&self, call: OpId) -> bool {
        self.view.calls.contains(&call)
    }

    pub fn has_open_calls(&self, task: TaskId) -> bool {
        self.view.calls.iter().any(|(_, call)| call.task == Some(task))
    }

    /// The task in the kernel's view.
    pub fn task(&self, task: TaskId) -> Option<&Task> {
        self.run().and_then(|run| run.task(task))
    }

    pub fn is_working(&self, task: TaskId) -> bool {
        self.task(task).is_some_and(|task| task.state == TaskState::Working)
    }

    /// Agents that currently work for this one.
    pub fn helpers(&self, task: TaskId) -> impl Iterator<Item = &TaskHistory> {
        self.tasks.values().filter(move |other| other.parent == Some(task) && self.is_working(other.id))
    }

    /// Adds an event that a rewind removed: only its usage counts.
    fn skip_rewound(&mut self, event: &Event) {
        self.seq = event.seq;
        if !matches!(event.payload, Payload::File(_)) {
            kernel::evolve(&mut self.view, event);
        }
    }

    /// Adds the next event of the run. A rewind cannot be added: it needs [`History::from_events`].
    pub fn add(&mut self, event: &Event) {
        (self.seq, self.newest) = (event.seq, Some(event.id));
        let is_wake = matches!(event.payload, Payload::Run(RunEvent::Wake(_)));
        self.restarts_in_a_row = if is_wake { self.restarts_in_a_row + 1 } else { 0 };
        let task_of_call = self.view.calls.get(&event.op).and_then(|call| call.task);
        let tool_of_call = self.view.calls.get(&event.op).map(|call| call.tool.clone());
        if !matches!(event.payload, Payload::File(_)) {
            kernel::evolve(&mut self.view, event);
        }
        match &event.payload {
            Payload::Run(run) => self.add_run(event, run),
            Payload::Task(TaskEvent::Start(p)) => {
                let task = TaskHistory {
                    id: p.task,
                    parent: p.parent,
                    role: p.role.clone(),
                    instruction: p.instruction,
                    is_untainted: event.taint.is_empty(),
                    entries: if p.parent.is_none() {
                        std::mem::take(&mut self.early_messages)
                    } else {
                        Vec::new()
                    },
                    newest: event.id,
                    outcome: None,
                    permanent_failure: None,
                };
                self.tasks.insert(p.task, task);
            }
            Payload::Task(TaskEvent::Message(p)) => {
                let from = MessageSender::Agent { task: p.from, kind: p.kind };
                let is_untainted = event.taint.is_empty();
                self.push_entry(
                    p.to,
                    event,
                    HistoryEntry::Message { seq: event.seq, from, words: p.body, is_untainted },
                );
            }
            Payload::Task(TaskEvent::End(p)) => {
                if let Some(task) = self.tasks.get_mut(&p.task) {
                    task.outcome = Some(p.outcome.clone());
                }
            }
            Payload::Task(TaskEvent::Trust(_)) => {}
            Payload::Llm(LlmEvent::Reply(p)) => {
                if let Some(task) = self.tasks.get_mut(&p.task) {
                    task.permanent_failure = None;
                }
                let entry = HistoryEntry::ModelReply {
                    seq: event.seq,
                    seen: p.seen,
                    reply: p.reply,
                    ended: p.ended,
                    calls: p.calls.clone(),
                    is_untainted: event.taint.is_empty(),
                };
                self.call_requests.extend(p.calls.iter().map(|requested| (requested.call, event.id)));
                self.push_entry(p.task, event, entry);
            }
            Payload::Llm(LlmEvent::Fail(p)) => {
                if let Some(reason) = p.permanent_reason()
                    && let Some(task) = self.tasks.get_mut(&p.task)
                {
                    task.permanent_failure.get_or_insert(reason.into());
                }
            }
            Payload::Tool(ToolEvent::Result(p)) => {
                if let (Some(task), Some(tool)) = (task_of_call, tool_of_call) {
                    let (status, report) = (p.status.clone(), p.report.clone());
                    let input = self.call_inputs.get(&event.op).copied();
                    let is_untainted = event.taint.is_empty();
                    self.push_entry(
                        task,
                        event,
                        HistoryEntry::ToolResult {
                            call: event.op,
                            tool,
                            input,
                            status,
                            report,
                            is_untainted,
                        },
                    );
                }
            }
            Payload::File(_) => {
                let touched = kernel::touched_files(std::slice::from_ref(event));
                self.changed_files.extend(touched.into_iter().map(|(path, _)| path));
            }
            Payload::Tool(ToolEvent::Call(p)) => {
                self.call_inputs.insert(event.op, p.input);
                self.call_titles.insert(event.op, p.title.clone());
                self.call_tools.insert(event.op, p.tool.clone());
            }
            Payload::Tool(ToolEvent::Request(_) | ToolEvent::Hold(_))
            | Payload::Capability(_)
            | Payload::Window(_)
            | Payload::Setting(_)
            | Payload::Message(_)
            | Payload::Note(_)
            | Payload::Checkpoint(_)
            | Payload::Revert(_)
            | Payload::User(_)
            | Payload::System(_)
            | Payload::Unknown(_) => {}
        }
    }

    fn add_run(&mut self, event: &Event, run: &RunEvent) {
        match run {
            RunEvent::Start(p) => self.start = Some(p.clone()),
            RunEvent::Steer(p) => {
                let task = p.task.unwrap_or(self.root_task());
                let (seq, from) = (event.seq, MessageSender::Person);
                let message = HistoryEntry::Message { seq, from, words: p.words, is_untainted: true };
                if self.tasks.is_empty() {
                    self.early_messages.push(message)
                } else {
                    self.push_entry(task, event, message)
                }
            }
            RunEvent::Answer(p) => drop(self.answers.insert(p.ask, p.reply.clone())),
            // A call that needs a new approval also waits in the outbox again.
            RunEvent::Ask(RunAsk { about: AskKind::Approval { call, .. }, .. }) => {
                self.answers.remove(&outbox_ask_id(*call));
            }
            RunEvent::Resume(_) => self.tasks.values_mut().for_each(|task| task.permanent_failure = None),
            RunEvent::Pause(_)
            | RunEvent::Wake(_)
            | RunEvent::Rewind(_)
            | RunEvent::Ask(_)
            | RunEvent::Cancel(_)
            | RunEvent::Fail(_)
            | RunEvent::Complete(_) => {}
        }
    }

    fn push_entry(&mut self, task: TaskId, event: &Event, entry: HistoryEntry) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.entries.push(entry);
            task.newest = event.id;
        }
    }
}

/// One turn of an agent's model.
#[derive(Debug)]
pub struct Turn<'a> {
    pub seen: Seq,
    pub reply: ContentRef,
    pub ended: ReplyEnd,
    pub calls: &'a [RequestedCall],
}

/// A call that was interrupted, with the reply that requested it and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptedCall {
    pub call: OpId,
    pub reply: ContentRef,
    pub index: usize,
}

impl TaskHistory {
    pub fn last_turn(&self) -> Option<Turn<'_>> {
        self.turns_newest_first().next()
    }

    /// The turns of its model, newest first.
    fn turns_newest_first(&self) -> impl Iterator<Item = Turn<'_>> {
        self.entries.iter().rev().filter_map(|entry| match entry {
            HistoryEntry::ModelReply { seen, reply, ended, calls, .. } => {
                Some(Turn { seen: *seen, reply: *reply, ended: *ended, calls })
            }
            HistoryEntry::ToolResult { .. } | HistoryEntry::Message { .. } => None,
        })
    }

    /// The result of a call, if it has one.
    pub fn result(&self, wanted: OpId) -> Option<(&ToolStatus, &ToolReport)> {
        self.entries.iter().rev().find_map(|entry| match entry {
            HistoryEntry::ToolResult { call, status, report, .. } if *call == wanted => {
                Some((status, report))
            }
            HistoryEntry::ToolResult { .. }
            | HistoryEntry::ModelReply { .. }
            | HistoryEntry::Message { .. } => None,
        })
    }

    /// Whether the agent was untainted when it requested a call. What it has read since does not count.
    pub fn was_requested_untainted(&self, call: OpId) -> bool {
        self.entries.iter().any(|entry| match entry {
            HistoryEntry::ModelReply { calls, is_untainted, .. } => {
                *is_untainted && calls.iter().any(|requested| requested.call == call)
            }
            HistoryEntry::ToolResult { .. } | HistoryEntry::Message { .. } => false,
        })
    }

    /// Interrupted calls of the turn before, if the last turn requests this call and no other.
    pub fn interrupted_before(&self, call: OpId) -> Vec<InterruptedCall> {
        let mut turns = self.turns_newest_first();
        let (Some(last), Some(before)) = (turns.next(), turns.next()) else { return Vec::new() };
        if !last.calls.iter().map(|requested| requested.call).eq([call]) {
            return Vec::new();
        }
        let is_interrupted = |call| matches!(self.result(call), Some((ToolStatus::Interrupted { .. }, _)));
        let interrupted =
            before.calls.iter().enumerate().filter(|(_, requested)| is_interrupted(requested.call));
        interrupted
            .map(|(index, requested)| InterruptedCall { call: requested.call, reply: before.reply, index })
            .collect()
    }

    /// Whether it received a message after `seen`, which its model has not read yet.
    pub fn has_unseen_messages(&self, seen: Seq) -> bool {
        self.entries.iter().any(|entry| matches!(entry, HistoryEntry::Message { seq, .. } if *seq > seen))
    }

    /// How many replies in a row, up to now, were empty or cut off and had no calls.
    pub fn incomplete_replies(&self) -> usize {
        let incomplete = self.entries.iter().rev().filter_map(|entry| match entry {
            HistoryEntry::ModelReply { ended, calls, .. } => {
                Some(*ended != ReplyEnd::Whole && calls.is_empty())
            }
            HistoryEntry::ToolResult { .. } | HistoryEntry::Message { .. } => None,
        });
        incomplete.take_while(|is_incomplete| *is_incomplete).count()
    }

    /// Whether it asked its requester something in its last turn, and the requester has not dealt with the question yet.
    pub fn has_open_question(&self, parent: &Self) -> bool {
        let Some(turn) = self.last_turn() else { return false };
        let is_done =
            |turn: &Turn<'_>| turn.calls.iter().all(|requested| parent.result(requested.call).is_some());
        let seen = parent.last_turn().filter(is_done).map_or(Seq::ZERO, |turn| turn.seen);
        parent.entries.iter().any(|entry| match entry {
            HistoryEntry::Message {
                seq,
                from: MessageSender::Agent { task, kind: MessageKind::Question },
                ..
            } => *task == self.id && *seq > turn.seen && *seq > seen,
            HistoryEntry::Message { .. }
            | HistoryEntry::ModelReply { .. }
            | HistoryEntry::ToolResult { .. } => false,
        })
    }

    pub fn turns(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, HistoryEntry::ModelReply { .. })).count()
    }
}

#[cfg(test)]
mod tests;
