//! The state of a run: its phase, its agents, its open questions and what it has used.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::RunEvent;
use shared_types::payload::run::{AskKind, Budget, PauseReason};
use shared_types::{AskId, Event, OpId, Payload, RunId, Seq, Taint, TaskId, Timestamp};

/// The most agents that one run may have.
pub const MAX_TASKS: usize = 200;

/// A run. Ended runs are kept for a while, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub title: Box<str>,
    /// The event that started it, and its time.
    pub seq: Seq,
    pub started: Timestamp,
    /// The model that the person chose for all roles.
    pub model: Option<Box<str>>,
    pub budget: Budget,
    pub phase: RunPhase,
    pub spent: Spent,
    /// In the order in which they started.
    pub tasks: Vec<Task>,
    /// Open questions.
    pub asks: Vec<Ask>,
    /// Milliseconds of work up to `clock_since`.
    pub worked: u64,
    /// The start of the current stretch of work, if the run is working.
    pub clock_since: Option<Timestamp>,
    /// The event that last rewound it. Results that were computed before that are refused.
    pub rewound: Seq,
    /// Calls that were requested in turns that a rewind removed.
    pub void_calls: Vec<OpId>,
}

/// The phase of a run. Whether it waits for the person follows from its open questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPhase {
    Working,
    Paused(PauseReason),
    Cancelled,
    Failed(Box<str>),
    Completed,
}

impl RunPhase {
    pub fn is_over(&self) -> bool {
        match self {
            Self::Working | Self::Paused(_) => false,
            Self::Cancelled | Self::Failed(_) | Self::Completed => true,
        }
    }
}

/// What a run or an agent has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    pub steps: u64,
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micros: u64,
    /// Steps without a known price.
    pub unpriced: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, tokens: u64, micros: Option<u64>) {
        self.steps += 1;
        self.add_failed(tokens, micros);
    }

    /// Adds the cost of a turn that failed.
    pub(crate) fn add_failed(&mut self, tokens: u64, micros: Option<u64>) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.micros = self.micros.saturating_add(micros.unwrap_or_default());
        self.unpriced += u64::from(micros.is_none());
    }
}

/// What all runs used on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DaySpent {
    pub spent: Spent,
    /// Milliseconds of work, added up over all runs.
    pub worked: u64,
}

/// Days since the epoch.
pub(crate) fn day_of(moment: Timestamp) -> i64 {
    moment.millis().div_euclid(24 * 60 * 60 * 1000)
}

/// One agent of a run, and its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub parent: Option<TaskId>,
    pub role: Box<str>,
    pub title: Box<str>,
    pub state: TaskState,
    pub spent: Spent,
    /// Milliseconds of model turns and calls; times that overlap count once.
    pub worked: u64,
    /// The time up to which `worked` is counted.
    pub counted: Timestamp,
    /// What it had used when the person last resumed the run after its budget ran out: its own limits count from there.
    pub spent_at_resume: (Spent, u64),
    /// The person's last message to it.
    pub last_steer: Seq,
    /// The taint labels of its transcript.
    pub taint: Vec<Taint>,
}

impl Task {
    /// Adds work that took `millis` and ended `now`.
    pub(crate) fn work(&mut self, millis: u64, now: Timestamp) {
        let since = now.millis().saturating_sub(self.counted.millis());
        self.worked = self.worked.saturating_add(millis.min(u64::try_from(since).unwrap_or_default()));
        self.counted = self.counted.max(now);
    }

    /// What it has used of its own limits, with the milliseconds of work.
    pub fn spent_of_limits(&self) -> (Spent, u64) {
        let (spent, worked) = self.spent_at_resume;
        let used = Spent {
            steps: self.spent.steps.saturating_sub(spent.steps),
            tokens: self.spent.tokens.saturating_sub(spent.tokens),
            micros: self.spent.micros.saturating_sub(spent.micros),
            unpriced: self.spent.unpriced.saturating_sub(spent.unpriced),
        };
        (used, self.worked.saturating_sub(worked))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    Working,
    Done,
    Failed,
    Cancelled,
}

/// An open question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: AskId,
    pub task: TaskId,
    pub about: AskKind,
}

impl Run {
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    pub(crate) fn task_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }

    pub fn ask(&self, id: AskId) -> Option<&Ask> {
        self.asks.iter().find(|ask| ask.id == id)
    }

    /// Whether an agent waits for the person.
    pub fn waits_for_person(&self) -> bool {
        self.questions().next().is_some()
    }

    /// The open questions that only the person can answer.
    pub fn questions(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|ask| ask.about.needs_answer())
    }

    /// Whether its clock runs: one of its calls is running, or an agent is working that waits neither for the person
    /// nor for a helper.
    fn is_busy(&self, has_calls: bool) -> bool {
        match self.phase {
            RunPhase::Working => {
                has_calls || self.tasks.is_empty() || self.tasks.iter().any(|t| self.is_active(t))
            }
            // Calls that started before the pause still run.
            RunPhase::Paused(_) => has_calls,
            RunPhase::Cancelled | RunPhase::Failed(_) | RunPhase::Completed => false,
        }
    }

    fn is_active(&self, task: &Task) -> bool {
        let is_working = |task: &Task| task.state == TaskState::Working;
        is_working(task)
            && !self.questions().any(|ask| ask.task == task.id)
            && !self.tasks.iter().any(|helper| helper.parent == Some(task.id) && is_working(helper))
    }

    /// Updates the clock after a change.
    pub(crate) fn tick(&mut self, now: Timestamp, has_calls: bool) {
        self.worked = self.worked_until(now);
        self.clock_since = self.is_busy(has_calls).then_some(now);
    }

    /// Milliseconds of work until `now`.
    pub fn worked_until(&self, now: Timestamp) -> u64 {
        let running = self.clock_since.map_or(0, |since| now.millis().saturating_sub(since.millis()));
        self.worked.saturating_add(u64::try_from(running).unwrap_or_default())
    }
}

/// The event at which each operation of a run counts as started: for a call, the turn that requested it, even if it ran
/// much later. Events of the run itself count one by one.
#[derive(Debug)]
pub struct OperationStarts(HashMap<OpId, Seq>);

impl OperationStarts {
    /// `events` are all of the run, in order.
    pub fn of(id: RunId, events: &[Event]) -> Self {
        let own = OpId::from_bytes(*id.as_bytes());
        let mut starts = HashMap::new();
        for event in events {
            if let Payload::Llm(LlmEvent::Reply(p)) = &event.payload {
                starts.extend(p.calls.iter().map(|wanted| (wanted.call, event.seq)));
            }
            if event.op != own {
                starts.entry(event.op).or_insert(event.seq);
            }
        }
        Self(starts)
    }

    /// The start of the operation that an event is part of.
    pub fn of_event(&self, event: &Event) -> Seq {
        self.0.get(&event.op).copied().unwrap_or(event.seq)
    }
}

/// Tells which events of a run were removed by a rewind. `events` are all events of the run, in order.
pub fn is_rewound(id: RunId, events: &[Event]) -> impl Fn(&Event) -> bool + use<> {
    let starts = OperationStarts::of(id, events);
    let rewinds: Vec<(Seq, Seq)> = events
        .iter()
        .filter_map(|event| {
            let Payload::Run(RunEvent::Rewind(p)) = &event.payload else { return None };
            Some((p.to, event.seq))
        })
        .collect();
    move |event| rewinds.iter().any(|(to, at)| *to <= starts.of_event(event) && event.seq < *at)
}
