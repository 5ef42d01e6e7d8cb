//! Queries of runs: the list of runs, and the operations of one.

use shared_types::wire::RunState;
use shared_types::{RunId, Seq};

use super::OperationRow;
use crate::views::{Views, ViewsError};

/// One run, as a person sees it in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub run: RunId,
    pub title: String,
    /// The event that started it.
    pub first: Seq,
    pub started: i64,
    pub ended: Option<i64>,
    pub state: RunState,
    /// Why it is paused or failed.
    pub reason: Option<String>,
    /// Model turns.
    pub steps: u64,
    pub tokens: u64,
    /// Millionths of a dollar, for steps with a known price.
    pub micros: u64,
    /// Steps without a known price.
    pub unpriced: u64,
    /// The number of agents.
    pub tasks: u64,
    /// The number of open questions to the person.
    pub asks: u64,
    /// Whether the whole run is undone.
    pub undone: bool,
}

const RUN: &str =
    "SELECT run, title, first, started, ended, state, reason, steps, tokens, micros, unpriced, tasks,
     undone_by, (SELECT count(*) FROM asks WHERE asks.run = runs.run) FROM runs";

/// The name of a state in table `runs`. Whether the run waits for the person follows from table `asks`.
pub(crate) fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Running | RunState::Waiting => "running",
        RunState::Paused => "paused",
        RunState::Cancelled => "cancelled",
        RunState::Failed => "failed",
        RunState::Completed => "completed",
    }
}

fn state(word: &str, asks: u64) -> RunState {
    match word {
        "paused" => RunState::Paused,
        "cancelled" => RunState::Cancelled,
        "failed" => RunState::Failed,
        "completed" => RunState::Completed,
        // The column holds only names of `state_word`.
        _ if asks > 0 => RunState::Waiting,
        _ => RunState::Running,
    }
}

fn run_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunRow> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let (word, asks) = (row.get::<_, String>(5)?, count(13)?);
    Ok(RunRow {
        run: RunId::from_bytes(row.get(0)?),
        title: row.get(1)?,
        first: Seq(count(2)?),
        started: row.get(3)?,
        ended: row.get(4)?,
        state: state(&word, asks),
        reason: row.get(6)?,
        steps: count(7)?,
        tokens: count(8)?,
        micros: count(9)?,
        unpriced: count(10)?,
        tasks: count(11)?,
        asks,
        undone: row.get::<_, Option<Vec<u8>>>(12)?.is_some(),
    })
}

impl Views {
    pub fn run(&self, run: RunId) -> Result<Option<RunRow>, ViewsError> {
        let mut statement = self.prepare(&format!("{RUN} WHERE run = ?1"))?;
        let rows = statement.query_map([run.as_bytes()], run_row);
        Ok(self.map(rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>))?.pop())
    }

    /// The newest runs that started before a seq, newest first.
    pub fn runs(&self, before: Option<Seq>, count: u32) -> Result<Vec<RunRow>, ViewsError> {
        let mut statement = self.prepare(&format!("{RUN} WHERE first < ?1 ORDER BY first DESC LIMIT ?2"))?;
        let before = before.and_then(|seq| i64::try_from(seq.0).ok()).unwrap_or(i64::MAX);
        let rows = statement.query_map((before, count), run_row).and_then(Iterator::collect);
        self.map(rows)
    }

    /// The operations of a run in the order in which they started, with the run's own operation.
    pub fn operations_of(&self, run: RunId) -> Result<Vec<OperationRow>, ViewsError> {
        self.operations("WHERE run = ?1 ORDER BY first", [run.as_bytes()])
    }
}
