//! Whether a run may continue within its budgets. The worst case of every turn in progress counts as spent. At the limit
//! `Job::pause_for_budget` pauses the run, before a turn of a model or before a call that takes time.

use std::time::Duration;

use kernel::run::{Run, Spent, Task};
use models::WorstCase;
use shared_types::Timestamp;
use shared_types::payload::run::Budget;

use crate::port::RunContext;

/// The result of a call that was stopped because a budget left no more time. Models read it.
pub(crate) const OUT_OF_TIME: &str = "nobody waited for it any longer: a budget left no more time";

pub(crate) fn whole_millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Waits for a future for at most the time that a budget leaves; `None` if that was too short.
pub(crate) async fn with_time_limit<T>(left: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match left {
        Some(left) => tokio::time::timeout(left, future).await.ok(),
        None => Some(future.await),
    }
}

/// The most that the turns in progress can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reserved {
    pub steps: u64,
    pub tokens: u64,
    pub micros: u64,
}

impl Reserved {
    pub fn add(&mut self, turn: &WorstCase) {
        self.steps += 1;
        self.tokens = self.tokens.saturating_add(turn.tokens);
        self.micros = self.micros.saturating_add(turn.micros.unwrap_or_default());
    }

    pub fn remove(&mut self, turn: &WorstCase) {
        self.steps = self.steps.saturating_sub(1);
        self.tokens = self.tokens.saturating_sub(turn.tokens);
        self.micros = self.micros.saturating_sub(turn.micros.unwrap_or_default());
    }
}

/// A run, one of its agents and the limits that apply to them: of the run, of the agent's role and of the day.
#[derive(Debug, Clone, Copy)]
pub struct BudgetCheck<'a> {
    pub run: &'a Run,
    pub task: Option<&'a Task>,
    pub context: &'a RunContext,
    pub now: Timestamp,
}

impl BudgetCheck<'_> {
    /// The agent and the budget of its role, if that has one.
    fn role_budget(&self) -> Option<(&Task, &Budget)> {
        let task = self.task?;
        let (_, budget) = self.context.agents.iter().find(|(role, _)| **role == *task.role)?;
        Some((task, budget))
    }

    /// For each time limit: its seconds, the milliseconds used, and the sentence for the person when it is reached.
    fn time_limits(&self) -> impl Iterator<Item = (u64, u64, String)> {
        let run = self.run.budget.seconds.map(|seconds| {
            let reason = format!("the run has used its {seconds} seconds of working time");
            (seconds, self.run.worked_until(self.now), reason)
        });
        let role = self.role_budget().and_then(|(task, budget)| {
            let (seconds, role) = (budget.seconds?, &task.role);
            let reason = format!("the {role} has used the {seconds} seconds of working time for a {role}");
            Some((seconds, task.spent_of_limits().1, reason))
        });
        let day = self.context.daily.seconds.map(|seconds| {
            let reason = format!("today's runs have used the {seconds} seconds of working time for a day");
            (seconds, self.context.today.worked, reason)
        });
        [run, role, day].into_iter().flatten()
    }

    /// The reached time limit, if there is one: then nothing that takes time is started.
    pub fn out_of_time(&self) -> Option<String> {
        let mut reached =
            self.time_limits().filter(|(seconds, worked, _)| *worked >= seconds.saturating_mul(1000));
        reached.next().map(|(_, _, reason)| reason)
    }

    /// How long a step that starts now may take.
    pub fn time_left(&self) -> Option<Duration> {
        let left = self
            .time_limits()
            .map(|(seconds, worked, _)| seconds.saturating_mul(1000).saturating_sub(worked));
        left.min().map(Duration::from_millis)
    }

    /// The limit that one more turn could exceed, in a sentence for the person. The reservations of the run and of the day
    /// include this turn already.
    pub fn exceeded(
        &self,
        run_reserved: &Reserved,
        day_reserved: &Reserved,
        turn: &WorstCase,
    ) -> Option<String> {
        let spent = self.context.spent.unwrap_or(self.run.spent);
        let run = || exceeded_limit(&self.run.budget, &spent, run_reserved, turn, "this run");
        // An agent takes one turn at a time.
        let role = || {
            let (task, budget) = self.role_budget()?;
            let mut reserved = Reserved::default();
            reserved.add(turn);
            exceeded_limit(budget, &task.spent_of_limits().0, &reserved, turn, &format!("a {}", task.role))
        };
        let day = || {
            let (daily, today) = (&self.context.daily, &self.context.today.spent);
            exceeded_limit(daily, today, day_reserved, turn, "all runs of a day")
        };
        self.out_of_time().or_else(run).or_else(role).or_else(day)
    }
}

/// `owner` names whose budget it is.
fn exceeded_limit(
    budget: &Budget,
    spent: &Spent,
    reserved: &Reserved,
    turn: &WorstCase,
    owner: &str,
) -> Option<String> {
    if let Some(steps) = budget.steps.filter(|limit| spent.steps + reserved.steps > *limit) {
        return Some(format!("the next turn would exceed the limit of {steps} turns for {owner}"));
    }
    if let Some(tokens) = budget.tokens.filter(|limit| spent.tokens.saturating_add(reserved.tokens) > *limit)
    {
        return Some(format!(
            "the next turn could exceed the limit of {tokens} tokens for {owner} ({} used)",
            spent.tokens
        ));
    }
    let limit = budget.micros?;
    if turn.micros.is_none() {
        return Some(format!(
            "the price of this model is unknown, and {owner} has a limit of {}",
            dollars(limit)
        ));
    }
    (spent.micros.saturating_add(reserved.micros) > limit).then(|| {
        format!(
            "the next turn could exceed the limit of {} for {owner} ({} spent)",
            dollars(limit),
            dollars(spent.micros)
        )
    })
}

/// An amount of money as text.
pub fn dollars(micros: u64) -> String {
    format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use kernel::run::{DaySpent, RunPhase, TaskState};
    use shared_types::{Seq, TaskId};

    use super::*;

    const NOW: i64 = 100_000;

    fn task(worked: u64) -> Task {
        Task {
            id: TaskId::from_bytes([1; 16]),
            parent: None,
            role: "terminal".into(),
            title: "It".into(),
            state: TaskState::Working,
            spent: Spent::default(),
            worked,
            counted: Timestamp::from_millis(NOW),
            spent_at_resume: (Spent::default(), 0),
            last_steer: Seq::ZERO,
            taint: Vec::new(),
        }
    }

    /// A run that has worked for ten seconds.
    fn run(seconds: Option<u64>) -> Run {
        Run {
            title: "It".into(),
            seq: Seq(1),
            started: Timestamp::from_millis(NOW - 10_000),
            model: None,
            budget: Budget { seconds, ..Budget::default() },
            phase: RunPhase::Working,
            spent: Spent::default(),
            tasks: Vec::new(),
            asks: Vec::new(),
            worked: 0,
            clock_since: Some(Timestamp::from_millis(NOW - 10_000)),
            rewound: Seq::ZERO,
            void_calls: Vec::new(),
        }
    }

    /// Which time limit is reached and how many seconds are left, for limits of a run, a role and a day of which ten, four
    /// and sixty seconds are used.
    fn check_time(
        run_limit: Option<u64>,
        role_limit: Option<u64>,
        day_limit: Option<u64>,
    ) -> (Option<String>, Option<u64>) {
        let seconds = |seconds| Budget { seconds, ..Budget::default() };
        let context = RunContext {
            today: DaySpent { worked: 60_000, ..DaySpent::default() },
            daily: seconds(day_limit),
            agents: vec![("terminal".into(), seconds(role_limit)), ("writer".into(), seconds(Some(0)))],
            ..RunContext::default()
        };
        let (run, task) = (run(run_limit), task(4_000));
        let (task, now) = (Some(&task), Timestamp::from_millis(NOW));
        let budget_check = BudgetCheck { run: &run, task, context: &context, now };
        (budget_check.out_of_time(), budget_check.time_left().map(|left| left.as_secs()))
    }

    #[test]
    fn time_is_up_when_the_run_the_role_or_the_day_has_used_its_seconds() {
        assert_eq!(check_time(None, None, None), (None, None));
        assert_eq!(check_time(Some(15), Some(30), Some(90)), (None, Some(5)));
        assert_eq!(check_time(Some(15), Some(6), Some(90)), (None, Some(2)));
        assert_eq!(check_time(Some(15), Some(30), Some(61)), (None, Some(1)));
        let why = |run_limit, role_limit, day_limit| {
            let (why, left) = check_time(run_limit, role_limit, day_limit);
            assert_eq!(left, Some(0));
            why.unwrap()
        };
        assert!(why(Some(10), None, None).contains("the run has used its 10 seconds"));
        assert!(why(None, Some(4), None).contains("the terminal has used the 4 seconds"));
        assert!(why(None, None, Some(60)).contains("today's runs have used the 60 seconds"));
    }
}
