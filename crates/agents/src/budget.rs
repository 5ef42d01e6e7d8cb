//! Whether a run may take one more turn. The worst case of every turn under way counts as spent.

use kernel::run::{Run, Spent, Task};
use models::WorstCase;
use shared_types::Timestamp;
use shared_types::payload::run::Budget;

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

/// Why one more turn would be too much, in a sentence for the person. `reserved` holds the turn already.
pub fn exceeded(run: &Run, now: Timestamp, reserved: &Reserved, turn: &WorstCase) -> Option<String> {
    let budget = &run.budget;
    if let Some(seconds) = budget.seconds
        && run.worked_until(now) >= seconds.saturating_mul(1000)
    {
        return Some(format!("it has worked for the {seconds} seconds that it was given"));
    }
    over(budget, &run.spent, reserved, turn, "this run")
}

/// The same for one agent, which takes one turn at a time.
pub fn exceeded_by(task: &Task, budget: &Budget, turn: &WorstCase) -> Option<String> {
    let (spent, worked) = task.taken();
    let what = format!("a {}", task.role);
    if let Some(seconds) = budget.seconds.filter(|seconds| worked >= seconds.saturating_mul(1000)) {
        return Some(format!("the {} has worked for the {seconds} seconds that {what} may", task.role));
    }
    let mut reserved = Reserved::default();
    reserved.add(turn);
    over(budget, &spent, &reserved, turn, &what)
}

/// The same for all runs of a day together.
pub fn exceeded_today(
    daily: &Budget,
    today: &Spent,
    reserved: &Reserved,
    turn: &WorstCase,
) -> Option<String> {
    over(daily, today, reserved, turn, "all runs of a day")
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
