//! A run, folded from its own events, even if the view has dropped it.

use std::ops::ControlFlow;

use event_log::{EventLog, decode_event};
use kernel::run::{Run, RunPhase, Task, TaskState};
use kernel::{Call, View, evolve};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{PauseReason, RunEvent};
use shared_types::payload::task::TaskEvent;
use shared_types::payload::tool::ToolEvent;
use shared_types::wire::{Agent, AgentState, RunCost, RunLine, RunState};
use shared_types::{Event, OpId, Payload, RunId, Seq, TaskId, Timestamp};

use super::display;
use crate::error::ComputerError;

/// The longest description of an agent's activity.
const MAX_ACTIVITY_CHARS: usize = 120;

/// The events of one run, and the state that they fold to.
#[derive(Debug, Clone)]
pub(crate) struct RunRecord {
    pub(super) id: RunId,
    pub(super) events: Vec<Event>,
    pub(super) run: Run,
    /// Folded from these events alone, so it contains only this run.
    view: View,
}

/// The events of a run after one of the log, in order.
pub(super) fn events_of(log: &dyn EventLog, run: RunId, after: Seq) -> Result<Vec<Event>, ComputerError> {
    if after == Seq::ZERO {
        let all = log.run(run)?;
        return Ok(all.iter().map(|stored| decode_event(log, stored)).collect::<Result<_, _>>()?);
    }
    let mut found = Vec::new();
    log.scan(after.next(), &mut |stored| {
        if stored.run_id == Some(run) {
            found.push(decode_event(log, stored));
        }
        ControlFlow::Continue(())
    })?;
    Ok(found.into_iter().collect::<Result<_, _>>()?)
}

impl RunRecord {
    /// `None` if the events do not start a run.
    pub(super) fn of(id: RunId, events: Vec<Event>) -> Option<Self> {
        let mut view = View::default();
        events.iter().for_each(|event| follow(&mut view, event));
        let run = view.runs.get(&id)?.clone();
        Some(Self { id, events, run, view })
    }

    /// Adds later events.
    pub(super) fn extend(&mut self, events: Vec<Event>) {
        events.iter().for_each(|event| follow(&mut self.view, event));
        if let Some(run) = self.view.runs.get(&self.id) {
            self.run = run.clone();
        }
        self.events.extend(events);
    }

    pub(super) fn state(&self) -> RunState {
        state(&self.run)
    }

    /// When the run ended.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        let over = |event: &&Event| {
            matches!(
                event.payload,
                Payload::Run(RunEvent::Cancel(_) | RunEvent::Fail(_) | RunEvent::Complete(_))
            )
        };
        let ended = self.events.iter().rev().find(over).map(|event| event.ts);
        ended.filter(|_| self.run.phase.is_over())
    }

    pub(super) fn line(&self, undone: bool) -> RunLine {
        line(self.id, &self.run, self.ended(), undone)
    }

    pub(super) fn agents(&self) -> Vec<Agent> {
        self.run.tasks.iter().map(|task| self.agent(task)).collect()
    }

    fn agent(&self, task: &Task) -> Agent {
        Agent {
            id: task.id,
            parent: task.parent,
            role: task.role.to_string(),
            title: task.title.to_string(),
            state: match task.state {
                TaskState::Working => AgentState::Working,
                TaskState::Done => AgentState::Done,
                TaskState::Failed => AgentState::Failed,
                TaskState::Cancelled => AgentState::Cancelled,
            },
            doing: self.doing(task),
            cost: cost(&task.spent),
            taint: task.taint.clone(),
        }
    }

    /// What an agent does now, in a few words.
    fn doing(&self, task: &Task) -> String {
        match task.state {
            TaskState::Done => return "done".into(),
            TaskState::Cancelled => return "stopped".into(),
            TaskState::Failed => {
                let ended = self.events.iter().rev().find_map(|event| match &event.payload {
                    Payload::Task(TaskEvent::End(p)) if p.task == task.id => Some(&p.outcome),
                    _ => None,
                });
                return match ended {
                    Some(shared_types::payload::task::TaskOutcome::Failed(why)) => {
                        display::line(&format!("failed: {why}"), MAX_ACTIVITY_CHARS)
                    }
                    Some(_) | None => "failed".into(),
                };
            }
            TaskState::Working => {}
        }
        if self.run.questions().any(|ask| ask.task == task.id) {
            return "waits for the person".into();
        }
        if self.run.asks.iter().any(|ask| ask.task == task.id) {
            return "has a call in the outbox".into();
        }
        if let Some(words) = self.calls_of(task.id) {
            return words;
        }
        match &self.run.phase {
            RunPhase::Paused(_) => return "paused".into(),
            RunPhase::Cancelled | RunPhase::Failed(_) | RunPhase::Completed => return "stopped".into(),
            RunPhase::Working => {}
        }
        // An agent whose last event is a reply or a delegation waits for its helpers.
        let newest = self.newest_of(task.id);
        let has_said = matches!(newest.map(|event| &event.payload), Some(Payload::Llm(LlmEvent::Reply(_))));
        let handed_on = newest.is_some_and(|event| self.is_task(&event.op));
        let waits = if has_said || handed_on { self.waits_for(task.id) } else { None };
        waits.unwrap_or_else(|| if has_said { "is working" } else { "waits for the model" }.into())
    }

    /// The open calls of an agent. A call that started a helper counts as waiting for the helper.
    fn calls_of(&self, task: TaskId) -> Option<String> {
        let open: Vec<(&OpId, &Call)> =
            self.view.calls.iter().filter(|(_, call)| call.task == Some(task)).collect();
        let (waits, mut runs): (Vec<_>, Vec<_>) = open.into_iter().partition(|(op, _)| self.is_task(op));
        runs.sort_by_key(|(_, call)| call.seq);
        match runs.as_slice() {
            [] if waits.is_empty() => None,
            [] => self.waits_for(task),
            [(_, call)] => Some(display::line(&format!("runs {}", call.title), MAX_ACTIVITY_CHARS)),
            [(_, call), more @ ..] => Some(display::line(
                &format!("runs {} and {} more", call.title, more.len()),
                MAX_ACTIVITY_CHARS,
            )),
        }
    }

    /// Whether an operation is a call that started a helper.
    fn is_task(&self, op: &OpId) -> bool {
        let first = self.run.tasks.first().map(|first| first.id);
        let task = TaskId::from_bytes(*op.as_bytes());
        Some(task) != first && self.run.task(task).is_some()
    }

    /// The roles of the helpers that an agent waits for.
    fn waits_for(&self, task: TaskId) -> Option<String> {
        let working = |other: &&Task| other.parent == Some(task) && other.state == TaskState::Working;
        let mut roles: Vec<&str> = self.run.tasks.iter().filter(working).map(|task| &*task.role).collect();
        roles.dedup();
        (!roles.is_empty()).then(|| format!("waits for {}", roles.join(", ")))
    }

    /// The newest event of an agent, or message to it.
    fn newest_of(&self, task: TaskId) -> Option<&Event> {
        let first = self.run.tasks.first().map(|task| task.id);
        let calls: Vec<OpId> = self.events.iter().filter_map(|event| called_by(event, task)).collect();
        self.events.iter().rev().find(|event| match &event.payload {
            Payload::Task(TaskEvent::Message(p)) => p.from == task || p.to == task,
            Payload::Task(TaskEvent::Start(p)) => p.task == task,
            Payload::Run(RunEvent::Steer(p)) => p.task.or(first) == Some(task),
            Payload::Run(RunEvent::Answer(p)) => p.task == task,
            Payload::Run(RunEvent::Ask(p)) => p.task == task,
            Payload::Llm(LlmEvent::Reply(p)) => p.task == task,
            Payload::Llm(LlmEvent::Fail(p)) => p.task == task,
            Payload::Tool(_) => calls.contains(&event.op),
            _ => false,
        })
    }
}

fn called_by(event: &Event, task: TaskId) -> Option<OpId> {
    match &event.payload {
        Payload::Tool(ToolEvent::Call(p)) if p.task == Some(task) => Some(event.op),
        _ => None,
    }
}

/// Folds only the events of the run itself, not its changes to files.
fn follow(view: &mut View, event: &Event) {
    if let Payload::Run(_) | Payload::Task(_) | Payload::Llm(_) | Payload::Tool(_) = event.payload {
        evolve(view, event);
    }
}

pub(super) fn state(run: &Run) -> RunState {
    match &run.phase {
        RunPhase::Working if !run.waits_for_person() => RunState::Running,
        RunPhase::Working => RunState::Waiting,
        RunPhase::Paused(_) => RunState::Paused,
        RunPhase::Cancelled => RunState::Cancelled,
        RunPhase::Failed(_) => RunState::Failed,
        RunPhase::Completed => RunState::Completed,
    }
}

pub(super) fn line(id: RunId, run: &Run, ended: Option<Timestamp>, undone: bool) -> RunLine {
    let reason = match &run.phase {
        RunPhase::Paused(PauseReason::Person) => Some("you paused it".to_owned()),
        RunPhase::Paused(PauseReason::TakenOver) => Some("you took over".to_owned()),
        RunPhase::Paused(PauseReason::Budget(why) | PauseReason::Model(why)) | RunPhase::Failed(why) => {
            Some(why.to_string())
        }
        RunPhase::Working | RunPhase::Cancelled | RunPhase::Completed => None,
    };
    RunLine {
        run: id,
        title: run.title.to_string(),
        state: state(run),
        reason,
        seq: run.seq,
        started: run.started,
        ended,
        cost: cost(&run.spent),
        open_questions: run.questions().count() as u64,
        undone,
    }
}

pub(super) fn cost(spent: &kernel::run::Spent) -> RunCost {
    let kernel::run::Spent { steps, tokens, micros, unpriced } = *spent;
    RunCost { turns: steps, tokens, micros, unpriced }
}
