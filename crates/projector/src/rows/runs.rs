//! The `runs` and `asks` tables: the state of each run, what it used, and its open questions.

use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{PauseReason, RunEvent};
use shared_types::payload::task::TaskEvent;
use shared_types::wire::RunState;
use shared_types::{Event, OpId, RunId};

use crate::query::state_word;
use crate::views::{Views, ViewsError};

pub(super) fn apply(views: &Views, event: &Event, run: &RunEvent) -> Result<(), ViewsError> {
    let Some(id) = event.run_id else { return Ok(()) };
    match run {
        RunEvent::Start(p) => {
            forget_asks(views, id)?;
            let mut insert = views.prepare(
                "INSERT OR REPLACE INTO runs (
                    run, title, first, started, state, steps, tokens, micros, unpriced, tasks)
                 VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, 0, 0)",
            )?;
            let state = state_word(RunState::Running);
            let row = (id.as_bytes(), &p.title, event.seq.0 as i64, event.ts.millis(), state);
            views.map(insert.execute(row)).map(drop)
        }
        RunEvent::Steer(_) | RunEvent::Wake(_) => Ok(()),
        RunEvent::Pause(p) => set_state(views, id, RunState::Paused, why(&p.why)),
        RunEvent::Resume(_) => set_state(views, id, RunState::Running, None),
        RunEvent::Rewind(_) => {
            forget_asks(views, id)?;
            let mut update = views.prepare("UPDATE runs SET ended = NULL WHERE run = ?1")?;
            views.map(update.execute([id.as_bytes()]))?;
            set_state(views, id, RunState::Running, None)
        }
        RunEvent::Ask(p) if !p.about.needs_answer() => Ok(()),
        RunEvent::Ask(p) => {
            let mut insert =
                views.prepare("INSERT OR REPLACE INTO asks (run, ask, task) VALUES (?1, ?2, ?3)")?;
            views.map(insert.execute((id.as_bytes(), p.ask.as_bytes(), p.task.as_bytes()))).map(drop)
        }
        RunEvent::Answer(p) => {
            let mut delete = views.prepare("DELETE FROM asks WHERE run = ?1 AND ask = ?2")?;
            views.map(delete.execute((id.as_bytes(), p.ask.as_bytes()))).map(drop)
        }
        RunEvent::Cancel(_) => end(views, event, id, RunState::Cancelled, None),
        RunEvent::Fail(p) => end(views, event, id, RunState::Failed, Some(&p.reason)),
        RunEvent::Complete(_) => end(views, event, id, RunState::Completed, None),
    }
}

pub(super) fn apply_task(views: &Views, event: &Event, task: &TaskEvent) -> Result<(), ViewsError> {
    let Some(id) = event.run_id else { return Ok(()) };
    match task {
        TaskEvent::Start(_) => {
            let mut update = views.prepare("UPDATE runs SET tasks = tasks + 1 WHERE run = ?1")?;
            views.map(update.execute([id.as_bytes()])).map(drop)
        }
        TaskEvent::End(p) => {
            let mut delete = views.prepare("DELETE FROM asks WHERE run = ?1 AND task = ?2")?;
            views.map(delete.execute((id.as_bytes(), p.task.as_bytes()))).map(drop)
        }
        TaskEvent::Message(_) | TaskEvent::Trust(_) => Ok(()),
    }
}

pub(super) fn apply_llm(views: &Views, event: &Event, llm: &LlmEvent) -> Result<(), ViewsError> {
    let Some(id) = event.run_id else { return Ok(()) };
    let (steps, tokens, micros) = match llm {
        LlmEvent::Reply(p) => (1, p.tokens.total(), p.micros),
        LlmEvent::Fail(p) if p.tokens.total() > 0 => (0, p.tokens.total(), p.micros),
        LlmEvent::Fail(_) => return Ok(()),
    };
    // Sums saturate at SQLite's largest integer.
    let mut update = views.prepare(
        "UPDATE runs SET steps = steps + ?5, tokens = min(tokens, 9223372036854775807 - ?2) + ?2,
            micros = min(micros, 9223372036854775807 - ?3) + ?3, unpriced = unpriced + ?4 WHERE run = ?1",
    )?;
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let (tokens, unpriced) = (number(tokens), micros.is_none());
    let micros = number(micros.unwrap_or_default());
    views.map(update.execute((id.as_bytes(), tokens, micros, unpriced, steps))).map(drop)
}

/// Marks a run as undone, if the operation is that of a run.
pub(super) fn set_undone(views: &Views, root: OpId, by: Option<OpId>) -> Result<(), ViewsError> {
    let mut update = views.prepare("UPDATE runs SET undone_by = ?2 WHERE run = ?1")?;
    views.map(update.execute((root.as_bytes(), by.as_ref().map(OpId::as_bytes)))).map(drop)
}

fn why(reason: &PauseReason) -> Option<&str> {
    match reason {
        PauseReason::Person | PauseReason::TakenOver => None,
        PauseReason::Budget(why) | PauseReason::Model(why) => Some(why),
    }
}

fn set_state(views: &Views, run: RunId, state: RunState, reason: Option<&str>) -> Result<(), ViewsError> {
    let mut update = views.prepare("UPDATE runs SET state = ?2, reason = ?3 WHERE run = ?1")?;
    views.map(update.execute((run.as_bytes(), state_word(state), reason))).map(drop)
}

fn end(
    views: &Views,
    event: &Event,
    run: RunId,
    state: RunState,
    reason: Option<&str>,
) -> Result<(), ViewsError> {
    forget_asks(views, run)?;
    set_state(views, run, state, reason)?;
    let mut update = views.prepare("UPDATE runs SET ended = ?2 WHERE run = ?1")?;
    views.map(update.execute((run.as_bytes(), event.ts.millis()))).map(drop)
}

fn forget_asks(views: &Views, run: RunId) -> Result<(), ViewsError> {
    let mut delete = views.prepare("DELETE FROM asks WHERE run = ?1")?;
    views.map(delete.execute([run.as_bytes()])).map(drop)
}
