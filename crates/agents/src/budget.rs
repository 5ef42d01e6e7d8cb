//! Whether a run may go on. The worst case of every turn under way counts as spent.

use std::time::Duration;

use kernel::run::{Run, Spent, Task};
use models::WorstCase;
use shared_types::Timestamp;
use shared_types::payload::run::Budget;

use crate::port::RunContext;

/// What is said of something that took longer than a budget left for it.
pub(crate) const TIME_IS_OVER: &str = "nobody waited for it any longer: a budget left no more time";

pub(crate) fn whole_millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// What comes of something, if it comes within the time that a budget leaves for it.
pub(crate) async fn within<T>(left: Option<Duration>, coming: impl Future<Output = T>) -> Option<T> {
    match left {
        Some(left) => tokio::time::timeout(left, coming).await.ok(),
        None => Some(coming.await),
    }
}

/// What turns that are under way take at most.
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

/// Who works, and within which bounds.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    pub run: &'a Run,
    pub task: Option<&'a Task>,
    pub standing: &'a RunContext,
    pub now: Timestamp,
}

impl Bounds<'_> {
    /// The bounds of the agent's role.
    fn of_role(&self) -> Option<(&Task, &Budget)> {
        let task = self.task?;
        let (_, budget) = self.standing.agents.iter().find(|(role, _)| **role == *task.role)?;
        Some((task, budget))
    }

    /// Seconds that may be worked, milliseconds that were, and what is said when they are over.
    fn clocks(&self) -> impl Iterator<Item = (u64, u64, String)> {
        let run = self.run.budget.seconds.map(|seconds| {
            let said = format!("it has worked for the {seconds} seconds that it was given");
            (seconds, self.run.worked_until(self.now), said)
        });
        let role = self.of_role().and_then(|(task, budget)| {
            let (seconds, role) = (budget.seconds?, &task.role);
            let said = format!("the {role} has worked for the {seconds} seconds that a {role} may");
            Some((seconds, task.spent_of_limits().1, said))
        });
        let day = self.standing.daily.seconds.map(|seconds| {
            let said =
                format!("today's runs have worked for the {seconds} seconds that all runs of a day may");
            (seconds, self.standing.today.worked, said)
        });
        [run, role, day].into_iter().flatten()
    }

    /// Why nothing more is begun that takes time.
    pub fn out_of_time(&self) -> Option<String> {
        let mut over = self.clocks().filter(|(seconds, worked, _)| *worked >= seconds.saturating_mul(1000));
        over.next().map(|(_, _, said)| said)
    }

    /// How long something may take that is begun now.
    pub fn time_left(&self) -> Option<Duration> {
        let left =
            self.clocks().map(|(seconds, worked, _)| seconds.saturating_mul(1000).saturating_sub(worked));
        left.min().map(Duration::from_millis)
    }

    /// Why one more turn would be too much, in a sentence for the person. What is reserved for the run and for the day
    /// holds the turn already.
    pub fn exceeded(&self, of_run: &Reserved, of_day: &Reserved, turn: &WorstCase) -> Option<String> {
        let spent = self.standing.spent.unwrap_or(self.run.spent);
        let run = || over(&self.run.budget, &spent, of_run, turn, "this run");
        // An agent takes one turn at a time.
        let role = || {
            let (task, budget) = self.of_role()?;
            let mut reserved = Reserved::default();
            reserved.add(turn);
            over(budget, &task.spent_of_limits().0, &reserved, turn, &format!("a {}", task.role))
        };
        let day = || {
            let (daily, today) = (&self.standing.daily, &self.standing.today.spent);
            over(daily, today, of_day, turn, "all runs of a day")
        };
        self.out_of_time().or_else(run).or_else(role).or_else(day)
    }
}

fn over(budget: &Budget, spent: &Spent, reserved: &Reserved, turn: &WorstCase, what: &str) -> Option<String> {
    if let Some(steps) = budget.steps.filter(|most| spent.steps + reserved.steps > *most) {
        return Some(format!("the next turn would be beyond the {steps} that {what} may take"));
    }
    if let Some(tokens) = budget.tokens.filter(|most| spent.tokens.saturating_add(reserved.tokens) > *most) {
        return Some(format!(
            "the next turn could go beyond the {tokens} tokens that {what} may take ({} are used)",
            spent.tokens
        ));
    }
    let most = budget.micros?;
    if turn.micros.is_none() {
        return Some(format!(
            "nobody knows what this model costs, and {what} may cost {} at most",
            dollars(most)
        ));
    }
    (spent.micros.saturating_add(reserved.micros) > most).then(|| {
        format!(
            "the next turn could go beyond the {} that {what} may cost ({} are spent)",
            dollars(most),
            dollars(spent.micros)
        )
    })
}

/// Money in words.
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

    /// How the bounds of seconds of a run, a role and a day stand, when ten, four and sixty were worked.
    fn bounded(
        of_run: Option<u64>,
        of_role: Option<u64>,
        of_day: Option<u64>,
    ) -> (Option<String>, Option<u64>) {
        let seconds = |seconds| Budget { seconds, ..Budget::default() };
        let standing = RunContext {
            today: DaySpent { worked: 60_000, ..DaySpent::default() },
            daily: seconds(of_day),
            agents: vec![("terminal".into(), seconds(of_role)), ("writer".into(), seconds(Some(0)))],
            ..RunContext::default()
        };
        let (run, task) = (run(of_run), task(4_000));
        let (task, now) = (Some(&task), Timestamp::from_millis(NOW));
        let bounds = Bounds { run: &run, task, standing: &standing, now };
        (bounds.out_of_time(), bounds.time_left().map(|left| left.as_secs()))
    }

    #[test]
    fn time_is_over_when_that_of_the_run_the_role_or_the_day_is() {
        assert_eq!(bounded(None, None, None), (None, None));
        assert_eq!(bounded(Some(15), Some(30), Some(90)), (None, Some(5)));
        assert_eq!(bounded(Some(15), Some(6), Some(90)), (None, Some(2)));
        assert_eq!(bounded(Some(15), Some(30), Some(61)), (None, Some(1)));
        let why = |of_run, of_role, of_day| {
            let (why, left) = bounded(of_run, of_role, of_day);
            assert_eq!(left, Some(0));
            why.unwrap()
        };
        assert!(why(Some(10), None, None).contains("it has worked for the 10 seconds"));
        assert!(why(None, Some(4), None).contains("the terminal has worked for the 4 seconds"));
        assert!(why(None, None, Some(60)).contains("all runs of a day"));
    }
}
