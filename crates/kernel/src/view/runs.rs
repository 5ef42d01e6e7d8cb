//! Questions to the view about all runs together.

use shared_types::{RunId, Timestamp};

use super::View;
use crate::run::{DaySpent, TaskState, day_of};

impl View {
    /// What all runs have used on the day of `now`, including work that is still running.
    pub fn spent_on_day(&self, now: Timestamp) -> DaySpent {
        let mut day = self.spending.get(&day_of(now)).copied().unwrap_or_default();
        let since = self.runs.iter().map(|(_, run)| run.worked_until(now).saturating_sub(run.worked));
        day.worked = day.worked.saturating_add(since.sum());
        day
    }

    /// Why a run cannot end yet, in words; none if nothing is unfinished.
    pub fn unfinished_in(&self, id: RunId) -> Option<&'static str> {
        let run = self.runs.get(&id)?;
        if run.tasks.iter().any(|task| task.state == TaskState::Working) {
            return Some("an agent is still working");
        }
        if self.calls.iter().any(|(_, call)| call.run == Some(id)) {
            return Some("a call has no result yet");
        }
        (!run.asks.is_empty()).then_some("a question to the person is open")
    }
}
