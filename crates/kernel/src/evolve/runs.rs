//! Applying events to runs and their agents.

use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{PauseReason, RunEvent};
use shared_types::payload::task::{TaskEvent, TaskOutcome};
use shared_types::{Event, RunId, Seq, Taint, TaskId};

use crate::run::{Ask, DaySpent, Run, RunPhase, Spent, Task, TaskState, day_of};
use crate::{Call, CallState, View};

/// How many ended runs are kept.
const KEPT_RUNS: usize = 50;
/// The days for which spending is kept.
const KEPT_DAYS: i64 = 62;

pub(super) fn evolve(view: &mut View, event: &Event, run: &RunEvent) {
    let Some(id) = event.run_id else { return };
    match run {
        RunEvent::Start(p) => {
            let run = Run {
                title: p.title.clone(),
                seq: event.seq,
                started: event.ts,
                model: p.model.clone(),
                budget: p.budget,
                phase: RunPhase::Working,
                spent: Spent::default(),
                tasks: Vec::new(),
                asks: Vec::new(),
                worked: 0,
                clock_since: Some(event.ts),
                rewound: Seq::ZERO,
                void_calls: Vec::new(),
            };
            view.runs.insert(id, run);
        }
        RunEvent::Steer(p) => change(view, event, |run| {
            let first = TaskId::from_bytes(*id.as_bytes());
            if let Some(task) = run.task_mut(p.task.unwrap_or(first)) {
                task.last_steer = event.seq;
            }
        }),
        RunEvent::Pause(p) => change(view, event, |run| run.phase = RunPhase::Paused(p.why.clone())),
        RunEvent::Resume(p) => change(view, event, |run| {
            if matches!(run.phase, RunPhase::Paused(PauseReason::Budget(_))) {
                run.tasks.iter_mut().for_each(|task| task.spent_at_resume = (task.spent, task.worked));
            }
            run.phase = RunPhase::Working;
            run.budget = p.budget.unwrap_or(run.budget);
        }),
        // No time counts while the server was down.
        RunEvent::Wake(_) => change(view, event, |run| run.clock_since = None),
        RunEvent::Ask(p) => change(view, event, |run| {
            run.asks.retain(|ask| ask.id != p.ask);
            run.asks.push(Ask { id: p.ask, task: p.task, about: p.about.clone() });
        }),
        RunEvent::Answer(p) => change(view, event, |run| run.asks.retain(|ask| ask.id != p.ask)),
        RunEvent::Rewind(p) => change(view, event, |run| {
            run.phase = RunPhase::Working;
            run.asks.clear();
            run.tasks.retain(|task| !p.gone.contains(&task.id));
            for again in &p.again {
                if let Some(task) = run.task_mut(again.task) {
                    task.state = TaskState::Working;
                    task.taint.clone_from(&again.taint);
                    // The agent reads the run again from the start, steering included.
                    task.last_steer = Seq::ZERO;
                }
            }
            run.rewound = event.seq;
            run.void_calls.extend(&p.void);
        }),
        RunEvent::Cancel(_) => end(view, event, RunPhase::Cancelled),
        RunEvent::Fail(p) => end(view, event, RunPhase::Failed(p.reason.clone())),
        RunEvent::Complete(_) => end(view, event, RunPhase::Completed),
    }
}

pub(super) fn evolve_task(view: &mut View, event: &Event, task: &TaskEvent) {
    match task {
        TaskEvent::Start(p) => change(view, event, |run| {
            run.tasks.push(Task {
                id: p.task,
                parent: p.parent,
                role: p.role.clone(),
                title: p.title.clone(),
                state: TaskState::Working,
                spent: Spent::default(),
                worked: 0,
                counted: event.ts,
                spent_at_resume: (Spent::default(), 0),
                last_steer: Seq::ZERO,
                taint: event.taint.clone(),
            });
        }),
        TaskEvent::Message(p) => add_taint(view, event, Some(p.to)),
        TaskEvent::End(p) => {
            change(view, event, |run| {
                run.asks.retain(|ask| ask.task != p.task);
                if let Some(task) = run.task_mut(p.task) {
                    task.state = match p.outcome {
                        TaskOutcome::Done => TaskState::Done,
                        TaskOutcome::Failed(_) => TaskState::Failed,
                        TaskOutcome::Cancelled => TaskState::Cancelled,
                    };
                }
            });
            if p.outcome == TaskOutcome::Cancelled {
                drop_oldest_runs(view);
            }
        }
        TaskEvent::Trust(p) => change(view, event, |run| {
            if let Some(task) = run.task_mut(p.task) {
                task.taint.clear();
            }
        }),
    }
}

pub(super) fn evolve_llm(view: &mut View, event: &Event, llm: &LlmEvent) {
    match llm {
        LlmEvent::Reply(p) => {
            let (tokens, micros) = (p.tokens.total(), p.micros);
            change(view, event, |run| {
                run.spent.add(tokens, micros);
                if let Some(task) = run.task_mut(p.task) {
                    task.spent.add(tokens, micros);
                    task.work(p.millis, event.ts);
                }
            });
            on_day(view, event, |day| day.spent.add(tokens, micros));
        }
        LlmEvent::Fail(p) if p.tokens.total() > 0 => {
            let (tokens, micros) = (p.tokens.total(), p.micros);
            change(view, event, |run| {
                run.spent.add_failed(tokens, micros);
                if let Some(task) = run.task_mut(p.task) {
                    task.spent.add_failed(tokens, micros);
                }
            });
            on_day(view, event, |day| day.spent.add_failed(tokens, micros));
        }
        LlmEvent::Fail(_) => {}
    }
}

/// A call started or is held: the run's clock is brought up to date.
pub(super) fn call_changed(view: &mut View, event: &Event) {
    change(view, event, |_| ());
}

/// Adds the duration of a call to its agent's work.
pub(super) fn call_ended(view: &mut View, event: &Event, task: Option<TaskId>, millis: u64) {
    change(view, event, |run| {
        if let Some(task) = task.and_then(|task| run.task_mut(task)) {
            task.work(millis, event.ts);
        }
    });
}

/// Adds the labels of what an agent read to its own: everything it writes from then on carries them.
pub(super) fn add_taint(view: &mut View, event: &Event, task: Option<TaskId>) {
    let is_new = |known: &[Taint]| event.taint.iter().any(|label| !known.contains(label));
    let Some((run, task)) = event.run_id.zip(task) else { return };
    if view.runs.get(&run).and_then(|run| run.task(task)).is_none_or(|task| !is_new(&task.taint)) {
        return;
    }
    change(view, event, |run| {
        if let Some(task) = run.task_mut(task) {
            let new =
                event.taint.iter().filter(|label| !task.taint.contains(label)).cloned().collect::<Vec<_>>();
            task.taint.extend(new);
        }
    });
}

/// Changes the run of an event, and counts the time that it worked until now.
fn change(view: &mut View, event: &Event, with: impl FnOnce(&mut Run)) {
    let Some(id) = event.run_id else { return };
    let Some(mut run) = view.runs.get(&id).cloned() else { return };
    let before = run.worked;
    with(&mut run);
    let is_running = |call: &Call| call.run == Some(id) && call.state == CallState::Running;
    run.tick(event.ts, view.calls.iter().any(|(_, call)| is_running(call)));
    let worked = run.worked.saturating_sub(before);
    view.runs.insert(id, run);
    if worked > 0 {
        on_day(view, event, |day| day.worked = day.worked.saturating_add(worked));
    }
}

fn end(view: &mut View, event: &Event, phase: RunPhase) {
    change(view, event, |run| {
        run.phase = phase;
        run.asks.clear();
    });
    drop_oldest_runs(view);
}

/// Drops the oldest of the ended runs.
fn drop_oldest_runs(view: &mut View) {
    // A run with unfinished tasks or calls stays.
    let is_finished = |id: &RunId| view.unfinished_in(*id).is_none();
    let over = view.runs.iter().filter(|(id, run)| run.phase.is_over() && is_finished(id));
    let mut over: Vec<_> = over.map(|(id, run)| (run.seq, *id)).collect();
    over.sort_unstable();
    let oldest: Vec<RunId> = over.iter().rev().skip(KEPT_RUNS).map(|(_, id)| *id).collect();
    for id in oldest {
        view.runs.remove(&id);
        let theirs = view.grants.iter().filter(|(_, grant)| grant.run == Some(id)).map(|(id, _)| *id);
        for grant in theirs.collect::<Vec<_>>() {
            view.grants.remove(&grant);
        }
    }
}

fn on_day(view: &mut View, event: &Event, add: impl FnOnce(&mut DaySpent)) {
    let day = day_of(event.ts);
    let mut taken = view.spending.get(&day).copied().unwrap_or_default();
    add(&mut taken);
    view.spending.insert(day, taken);
    let old: Vec<i64> =
        view.spending.iter().map(|(day, _)| *day).filter(|old| *old < day - KEPT_DAYS).collect();
    for day in old {
        view.spending.remove(&day);
    }
}
