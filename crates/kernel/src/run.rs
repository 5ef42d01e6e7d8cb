//! What is kept in mind of a run: how far it is, who works in it, what it waits for and what it has taken.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::RunEvent;
use shared_types::payload::run::{AskKind, Budget, PauseReason};
use shared_types::{AskId, Event, OpId, Payload, RunId, Seq, Taint, TaskId, Timestamp};

use crate::View;

/// Agents of one run.
pub const TASKS: usize = 200;

/// A run. Those that are over are kept for a while, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub title: Box<str>,
    /// Where the log says that it began, and when.
    pub seq: Seq,
    pub started: Timestamp,
    /// The model that the person chose for all roles.
    pub model: Option<Box<str>>,
    pub budget: Budget,
    pub phase: Phase,
    pub spent: Spent,
    /// In the order in which they began.
    pub tasks: Vec<Task>,
    /// What it waits for.
    pub asks: Vec<Ask>,
    /// Milliseconds in which it worked, up to `ticking`.
    pub worked: u64,
    /// Since when its clock runs, if it runs.
    pub ticking: Option<Timestamp>,
    /// When it last went back to before a turn. Whatever was thought before that counts no more.
    pub rewound: Seq,
    /// Calls that were wanted in turns that count no more.
    pub void: Vec<OpId>,
}

/// How far a run is. Whether it waits for the person is told by what it asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    Working,
    Paused(PauseReason),
    Cancelled,
    Failed(Box<str>),
    Completed,
}

impl Phase {
    pub fn is_over(&self) -> bool {
        match self {
            Self::Working | Self::Paused(_) => false,
            Self::Cancelled | Self::Failed(_) | Self::Completed => true,
        }
    }
}

/// What was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    pub steps: u64,
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micros: u64,
    /// Steps whose price nobody knows.
    pub unpriced: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, tokens: u64, micros: Option<u64>) {
        self.steps += 1;
        self.add_failed(tokens, micros);
    }

    /// What a turn took that came to nothing.
    pub(crate) fn add_failed(&mut self, tokens: u64, micros: Option<u64>) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.micros = self.micros.saturating_add(micros.unwrap_or_default());
        self.unpriced += u64::from(micros.is_none());
    }
}

/// What all runs of a day took together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Day {
    pub spent: Spent,
    /// Milliseconds in which runs worked, each counted for itself.
    pub worked: u64,
}

/// Days since the epoch.
pub(crate) fn day_of(moment: Timestamp) -> i64 {
    moment.millis().div_euclid(24 * 60 * 60 * 1000)
}

/// The work of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub parent: Option<TaskId>,
    pub role: Box<str>,
    pub title: Box<str>,
    pub state: TaskState,
    pub spent: Spent,
    /// Milliseconds in which its model answered and its calls ran; those that ran at once count once.
    pub worked: u64,
    /// Up to when that is counted.
    pub counted: Timestamp,
    /// What it had taken when the person last let the run go on beyond a bound: its own bounds count from there.
    pub allowed: (Spent, u64),
    /// The newest thing that the person said to it.
    pub told: Seq,
    /// Where untrusted words in its transcript came from.
    pub taint: Vec<Taint>,
}

impl Task {
    /// Counts something that took so long and is over now.
    pub(crate) fn work(&mut self, millis: u64, now: Timestamp) {
        let since = now.millis().saturating_sub(self.counted.millis());
        self.worked = self.worked.saturating_add(millis.min(u64::try_from(since).unwrap_or_default()));
        self.counted = self.counted.max(now);
    }

    /// What it has taken of its own bounds, with the milliseconds in which it worked.
    pub fn taken(&self) -> (Spent, u64) {
        let (spent, worked) = self.allowed;
        let taken = Spent {
            steps: self.spent.steps.saturating_sub(spent.steps),
            tokens: self.spent.tokens.saturating_sub(spent.tokens),
            micros: self.spent.micros.saturating_sub(spent.micros),
            unpriced: self.spent.unpriced.saturating_sub(spent.unpriced),
        };
        (taken, self.worked.saturating_sub(worked))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    Working,
    Done,
    Failed,
    Cancelled,
}

/// Something that the person has to say.
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
    pub fn waits(&self) -> bool {
        self.questions().next().is_some()
    }

    /// What only the person can answer.
    pub fn questions(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|ask| ask.about.needs_answer())
    }

    /// Whether its clock is to run: a call of it runs, or somebody works who waits neither for the person nor for a
    /// helper.
    fn is_busy(&self, has_calls: bool) -> bool {
        match self.phase {
            Phase::Working => {
                has_calls || self.tasks.is_empty() || self.tasks.iter().any(|t| self.is_active(t))
            }
            // What was begun before goes on.
            Phase::Paused(_) => has_calls,
            Phase::Cancelled | Phase::Failed(_) | Phase::Completed => false,
        }
    }

    fn is_active(&self, task: &Task) -> bool {
        let is_working = |task: &Task| task.state == TaskState::Working;
        is_working(task)
            && !self.questions().any(|ask| ask.task == task.id)
            && !self.tasks.iter().any(|helper| helper.parent == Some(task.id) && is_working(helper))
    }

    /// Brings the clock up to date, after something has changed.
    pub(crate) fn tick(&mut self, now: Timestamp, has_calls: bool) {
        self.worked = self.worked_until(now);
        self.ticking = self.is_busy(has_calls).then_some(now);
    }

    /// Milliseconds in which it worked.
    pub fn worked_until(&self, now: Timestamp) -> u64 {
        let running = self.ticking.map_or(0, |since| now.millis().saturating_sub(since.millis()));
        self.worked.saturating_add(u64::try_from(running).unwrap_or_default())
    }
}

/// When each operation of a run began: a call with the turn that wanted it, however much later it was made. What is of the
/// run itself is told event by event.
#[derive(Debug)]
pub struct Begun(HashMap<OpId, Seq>);

impl Begun {
    /// `events` are all of the run, in order.
    pub fn of(id: RunId, events: &[Event]) -> Self {
        let own = OpId::from_bytes(*id.as_bytes());
        let mut begun = HashMap::new();
        for event in events {
            if let Payload::Llm(LlmEvent::Reply(p)) = &event.payload {
                begun.extend(p.calls.iter().map(|wanted| (wanted.call, event.seq)));
            }
            if event.op != own {
                begun.entry(event.op).or_insert(event.seq);
            }
        }
        Self(begun)
    }

    /// When that began which an event is part of.
    pub fn of_event(&self, event: &Event) -> Seq {
        self.0.get(&event.op).copied().unwrap_or(event.seq)
    }
}

/// Which events of a run count no more, since it went back to before them. `events` are all of the run, in order.
pub fn gone(id: RunId, events: &[Event]) -> impl Fn(&Event) -> bool + use<> {
    let begun = Begun::of(id, events);
    let rewinds: Vec<(Seq, Seq)> = events
        .iter()
        .filter_map(|event| {
            let Payload::Run(RunEvent::Rewind(p)) = &event.payload else { return None };
            Some((p.to, event.seq))
        })
        .collect();
    move |event| rewinds.iter().any(|(to, at)| *to <= begun.of_event(event) && event.seq < *at)
}

impl View {
    /// What all runs have taken on the day of a moment, with the time since which they work.
    pub fn taken_on_day(&self, now: Timestamp) -> Day {
        let mut day = self.spending.get(&day_of(now)).copied().unwrap_or_default();
        let since = self.runs.iter().map(|(_, run)| run.worked_until(now).saturating_sub(run.worked));
        day.worked = day.worked.saturating_add(since.sum());
        day
    }

    /// Why a run cannot be over yet, in words; nothing, if nothing is pending in it.
    pub fn pending_in(&self, id: RunId) -> Option<&'static str> {
        let run = self.runs.get(&id)?;
        if run.tasks.iter().any(|task| task.state == TaskState::Working) {
            return Some("an agent still works");
        }
        if self.calls.iter().any(|(_, call)| call.run == Some(id)) {
            return Some("a call is not answered yet");
        }
        (!run.asks.is_empty()).then_some("the person was asked something")
    }
}
