//! A run as its events tell it. Folding the same events gives the same history, live and after a crash.

use std::collections::BTreeMap;

use kernel::View;
use kernel::run::{Run, Task, TaskState};
use shared_types::payload::llm::{LlmEvent, ReplyEnd, RequestedCall};
use shared_types::payload::run::{AskKind, Reply, RunAsk, RunEvent, RunStart};
use shared_types::payload::task::{MessageKind, TaskEvent, TaskOutcome};
use shared_types::payload::tool::{ToolEvent, ToolReport, ToolStatus};
use shared_types::{AskId, ContentRef, Event, OpId, Payload, RunId, Seq, TaskId};

use crate::plan::outbox_of;

/// Everything that happened in a run.
#[derive(Debug, Clone)]
pub struct History {
    pub id: RunId,
    pub start: Option<RunStart>,
    pub tasks: BTreeMap<TaskId, TaskHistory>,
    /// What the person answered, by question.
    pub answers: BTreeMap<AskId, Reply>,
    /// Files that its calls changed.
    pub changed: std::collections::BTreeSet<shared_types::FilePath>,
    /// What recorded calls were given.
    inputs: BTreeMap<OpId, ContentRef>,
    /// What recorded calls are called.
    pub titles: BTreeMap<OpId, Box<str>>,
    /// Which tools they use.
    pub tools: BTreeMap<OpId, Box<str>>,
    /// How often the run was taken up again since anything else was recorded in it.
    pub wakes: usize,
    /// What the person said before there was anybody to hear it.
    early: Vec<Entry>,
    view: View,
    seq: Seq,
}

/// What one agent was told and did, in order.
#[derive(Debug, Clone)]
pub struct TaskHistory {
    pub id: TaskId,
    pub parent: Option<TaskId>,
    pub role: Box<str>,
    pub instruction: ContentRef,
    /// Whether whoever gave it had read nothing untrusted.
    pub is_clean: bool,
    pub entries: Vec<Entry>,
    /// How its work ended.
    pub outcome: Option<TaskOutcome>,
    /// Turns that no model took, since the last one that was taken or the run last went on.
    pub failures: Vec<Box<str>>,
}

/// Something in the life of an agent.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A model spoke for it.
    Said {
        seq: Seq,
        seen: Seq,
        reply: ContentRef,
        ended: ReplyEnd,
        calls: Vec<RequestedCall>,
        /// Whether it had read nothing untrusted by then.
        is_clean: bool,
    },
    /// A call was answered.
    Got {
        call: OpId,
        tool: Box<str>,
        input: Option<ContentRef>,
        status: ToolStatus,
        report: ToolReport,
        is_clean: bool,
    },
    /// Somebody told it something.
    Heard { seq: Seq, from: Speaker, words: ContentRef, is_clean: bool },
}

/// Who told an agent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
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
            changed: std::collections::BTreeSet::new(),
            inputs: BTreeMap::new(),
            titles: BTreeMap::new(),
            tools: BTreeMap::new(),
            wakes: 0,
            early: Vec::new(),
            view: View::default(),
            seq: Seq::ZERO,
        }
    }

    pub fn of(id: RunId, events: &[Event]) -> Self {
        let (mut history, is_gone) = (Self::new(id), kernel::run::is_rewound(id, events));
        for event in events {
            if is_gone(event) { history.pass_over(event) } else { history.add(event) }
        }
        history
    }

    /// The run as the kernel sees it; nothing before it has begun.
    pub fn run(&self) -> Option<&Run> {
        self.view.runs.get(&self.id)
    }

    /// The newest event that is told here.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The first agent.
    pub fn first(&self) -> TaskId {
        TaskId::from_bytes(*self.id.as_bytes())
    }

    /// Calls that were recorded and are not answered.
    pub fn is_open(&self, call: OpId) -> bool {
        self.view.calls.contains(&call)
    }

    pub fn has_open_calls(&self, task: TaskId) -> bool {
        self.view.calls.iter().any(|(_, call)| call.task == Some(task))
    }

    pub fn state(&self, task: TaskId) -> Option<&Task> {
        self.run().and_then(|run| run.task(task))
    }

    pub fn is_working(&self, task: TaskId) -> bool {
        self.state(task).is_some_and(|task| task.state == TaskState::Working)
    }

    /// Agents that work for another.
    pub fn helpers(&self, task: TaskId) -> impl Iterator<Item = &TaskHistory> {
        self.tasks.values().filter(move |other| other.parent == Some(task) && self.is_working(other.id))
    }

    /// Takes in an event that counts no more, but for what it took.
    fn pass_over(&mut self, event: &Event) {
        self.seq = event.seq;
        if !matches!(event.payload, Payload::File(_)) {
            kernel::evolve(&mut self.view, event);
        }
    }

    /// Takes in the next event of the run. One that goes back to an earlier step is not for here: see [`History::of`].
    pub fn add(&mut self, event: &Event) {
        self.seq = event.seq;
        let is_wake = matches!(event.payload, Payload::Run(RunEvent::Wake(_)));
        self.wakes = if is_wake { self.wakes + 1 } else { 0 };
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
                    is_clean: event.taint.is_empty(),
                    entries: if p.parent.is_none() { std::mem::take(&mut self.early) } else { Vec::new() },
                    outcome: None,
                    failures: Vec::new(),
                };
                self.tasks.insert(p.task, task);
            }
            Payload::Task(TaskEvent::Message(p)) => {
                let from = Speaker::Agent { task: p.from, kind: p.kind };
                let is_clean = event.taint.is_empty();
                self.note(p.to, Entry::Heard { seq: event.seq, from, words: p.body, is_clean });
            }
            Payload::Task(TaskEvent::End(p)) => {
                if let Some(task) = self.tasks.get_mut(&p.task) {
                    task.outcome = Some(p.outcome.clone());
                }
            }
            Payload::Task(TaskEvent::Trust(_)) => {}
            Payload::Llm(LlmEvent::Reply(p)) => {
                if let Some(task) = self.tasks.get_mut(&p.task) {
                    task.failures.clear();
                }
                let said = Entry::Said {
                    seq: event.seq,
                    seen: p.seen,
                    reply: p.reply,
                    ended: p.ended,
                    calls: p.calls.clone(),
                    is_clean: event.taint.is_empty(),
                };
                self.note(p.task, said);
            }
            Payload::Llm(LlmEvent::Fail(p)) => {
                if let Some(task) = self.tasks.get_mut(&p.task) {
                    task.failures.push(p.reason.clone());
                }
            }
            Payload::Tool(ToolEvent::Result(p)) => {
                if let (Some(task), Some(tool)) = (task_of_call, tool_of_call) {
                    let (status, report) = (p.status.clone(), p.report.clone());
                    let input = self.inputs.get(&event.op).copied();
                    let is_clean = event.taint.is_empty();
                    self.note(task, Entry::Got { call: event.op, tool, input, status, report, is_clean });
                }
            }
            Payload::File(_) => {
                let touched = kernel::touched_files(std::slice::from_ref(event));
                self.changed.extend(touched.into_iter().map(|(path, _)| path));
            }
            Payload::Tool(ToolEvent::Call(p)) => {
                self.inputs.insert(event.op, p.input);
                self.titles.insert(event.op, p.title.clone());
                self.tools.insert(event.op, p.tool.clone());
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
                let task = p.task.unwrap_or(self.first());
                let (seq, from) = (event.seq, Speaker::Person);
                let heard = Entry::Heard { seq, from, words: p.words, is_clean: true };
                if self.tasks.is_empty() { self.early.push(heard) } else { self.note(task, heard) }
            }
            RunEvent::Answer(p) => drop(self.answers.insert(p.ask, p.reply.clone())),
            // What is asked for anew is held anew.
            RunEvent::Ask(RunAsk { about: AskKind::Approval { call, .. }, .. }) => {
                self.answers.remove(&outbox_of(*call));
            }
            RunEvent::Resume(_) => self.tasks.values_mut().for_each(|task| task.failures.clear()),
            RunEvent::Pause(_)
            | RunEvent::Wake(_)
            | RunEvent::Rewind(_)
            | RunEvent::Ask(_)
            | RunEvent::Cancel(_)
            | RunEvent::Fail(_)
            | RunEvent::Complete(_) => {}
        }
    }

    fn note(&mut self, task: TaskId, entry: Entry) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.entries.push(entry);
        }
    }
}

/// The newest turn of an agent's model, and what has come of it.
#[derive(Debug)]
pub struct Turn<'a> {
    pub seen: Seq,
    pub reply: ContentRef,
    pub ended: ReplyEnd,
    pub calls: &'a [RequestedCall],
}

/// A call that was cut off: the reply that asked for it, and the place where it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub call: OpId,
    pub reply: ContentRef,
    pub place: usize,
}

impl TaskHistory {
    pub fn last_turn(&self) -> Option<Turn<'_>> {
        self.turns_back().next()
    }

    /// The turns of its model, the newest first.
    fn turns_back(&self) -> impl Iterator<Item = Turn<'_>> {
        self.entries.iter().rev().filter_map(|entry| match entry {
            Entry::Said { seen, reply, ended, calls, .. } => {
                Some(Turn { seen: *seen, reply: *reply, ended: *ended, calls })
            }
            Entry::Got { .. } | Entry::Heard { .. } => None,
        })
    }

    pub fn result(&self, wanted: OpId) -> Option<(&ToolStatus, &ToolReport)> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Got { call, status, report, .. } if *call == wanted => Some((status, report)),
            Entry::Got { .. } | Entry::Said { .. } | Entry::Heard { .. } => None,
        })
    }

    /// Whether it wanted a call before it had read anything untrusted, whatever it has read since.
    pub fn wanted_clean(&self, call: OpId) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::Said { calls, is_clean, .. } => {
                *is_clean && calls.iter().any(|wanted| wanted.call == call)
            }
            Entry::Got { .. } | Entry::Heard { .. } => false,
        })
    }

    /// Calls of the turn before that were cut off, if its last turn wants this call and nothing else.
    pub fn cut_off_before(&self, call: OpId) -> Vec<Cut> {
        let mut turns = self.turns_back();
        let (Some(last), Some(before)) = (turns.next(), turns.next()) else { return Vec::new() };
        if !last.calls.iter().map(|wanted| wanted.call).eq([call]) {
            return Vec::new();
        }
        let is_cut = |call| matches!(self.result(call), Some((ToolStatus::Interrupted { .. }, _)));
        let cut = before.calls.iter().enumerate().filter(|(_, wanted)| is_cut(wanted.call));
        cut.map(|(place, wanted)| Cut { call: wanted.call, reply: before.reply, place }).collect()
    }

    /// Whether it was told something that its model has not seen.
    pub fn has_news(&self, seen: Seq) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Heard { seq, .. } if *seq > seen))
    }

    /// How often in a row, up to now, its model neither called anything nor came to an end.
    pub fn stumbles(&self) -> usize {
        let said = self.entries.iter().rev().filter_map(|entry| match entry {
            Entry::Said { ended, calls, .. } => Some(*ended != ReplyEnd::Whole && calls.is_empty()),
            Entry::Got { .. } | Entry::Heard { .. } => None,
        });
        said.take_while(|stumbled| *stumbled).count()
    }

    /// Whether it asked its requester something in its last turn, and the requester is not done with hearing it.
    pub fn has_asked(&self, parent: &Self) -> bool {
        let Some(turn) = self.last_turn() else { return false };
        let is_done = |turn: &Turn<'_>| turn.calls.iter().all(|wanted| parent.result(wanted.call).is_some());
        let seen = parent.last_turn().filter(is_done).map_or(Seq::ZERO, |turn| turn.seen);
        parent.entries.iter().any(|entry| match entry {
            Entry::Heard { seq, from: Speaker::Agent { task, kind: MessageKind::Question }, .. } => {
                *task == self.id && *seq > turn.seen && *seq > seen
            }
            Entry::Heard { .. } | Entry::Said { .. } | Entry::Got { .. } => false,
        })
    }

    pub fn turns(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, Entry::Said { .. })).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u8) -> OpId {
        OpId::from_bytes([number; 16])
    }

    fn content() -> ContentRef {
        ContentRef::of(b"words")
    }

    fn said(number: u8, is_clean: bool) -> Entry {
        Entry::Said {
            seq: Seq(1),
            seen: Seq::ZERO,
            reply: ContentRef::of(&[number]),
            ended: ReplyEnd::Whole,
            calls: vec![RequestedCall { call: call(number), tool: "fetch".into() }],
            is_clean,
        }
    }

    fn got(number: u8, status: ToolStatus) -> Entry {
        Entry::Got {
            call: call(number),
            tool: "fetch".into(),
            input: Some(content()),
            status,
            report: ToolReport::default(),
            is_clean: false,
        }
    }

    fn task(entries: Vec<Entry>) -> TaskHistory {
        TaskHistory {
            id: TaskId::from_bytes([9; 16]),
            parent: None,
            role: "researcher".into(),
            instruction: content(),
            is_clean: true,
            entries,
            outcome: None,
            failures: Vec::new(),
        }
    }

    #[test]
    fn a_call_is_as_clean_as_the_turn_that_wanted_it_whatever_was_read_since() {
        let fine = ToolStatus::Exited { code: 0 };
        let task = task(vec![said(1, true), got(2, fine), said(3, false)]);
        assert!(task.wanted_clean(call(1)));
        assert!(!task.wanted_clean(call(3)));
        assert!(!task.wanted_clean(call(4)), "nobody wanted it");
    }

    #[test]
    fn only_the_next_call_can_be_one_that_was_cut_off() {
        let cut = || got(2, ToolStatus::Interrupted { reason: "it stopped".into() });
        let fine = |number| got(number, ToolStatus::Exited { code: 0 });
        let found = |entries: Vec<Entry>, number| task(entries).cut_off_before(call(number));
        let past = [said(1, true), fine(1), said(2, true), cut()];
        let with = |more: Vec<Entry>| past.iter().cloned().chain(more).collect::<Vec<_>>();
        let reply = match &past[2] {
            Entry::Said { reply, .. } => *reply,
            Entry::Got { .. } | Entry::Heard { .. } => panic!("nobody said anything"),
        };
        assert_eq!(found(with(vec![said(3, true)]), 3), [Cut { call: call(2), reply, place: 0 }]);
        assert_eq!(found(with(vec![said(3, true)]), 4), [], "another turn's");
        assert_eq!(
            found(with(vec![said(3, true), fine(3), said(4, true)]), 4),
            [],
            "something was done meanwhile"
        );
        let mut both = said(3, true);
        if let Entry::Said { calls, .. } = &mut both {
            calls.push(RequestedCall { call: call(4), tool: "fetch".into() });
        }
        assert_eq!(found(with(vec![both]), 3), [], "it is not alone");
        assert_eq!(found(vec![said(1, true), fine(1), said(2, true)], 2), [], "nothing was cut off");
    }
}
