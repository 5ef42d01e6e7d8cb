//! Runs and their agents, as events leave them.

use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{PauseReason, RunEvent};
use shared_types::payload::task::{TaskEvent, TaskOutcome};
use shared_types::{Event, RunId, Seq, Taint, TaskId};

use crate::run::{Ask, Day, Phase, Run, Spent, Task, TaskState, day_of};
use crate::{Call, CallState, View};

/// Runs that are over are kept up to this many.
const KEPT_RUNS: usize = 50;
/// Days for which spending is kept.
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
                phase: Phase::Working,
                spent: Spent::default(),
                tasks: Vec::new(),
                asks: Vec::new(),
                worked: 0,
                ticking: Some(event.ts),
                rewound: Seq::ZERO,
                void: Vec::new(),
            };
            view.runs.insert(id, run);
        }
        RunEvent::Steer(p) => change(view, event, |run| {
            let first = TaskId::from_bytes(*id.as_bytes());
            if let Some(task) = run.task_mut(p.task.unwrap_or(first)) {
                task.told = event.seq;
            }
        }),
        RunEvent::Pause(p) => change(view, event, |run| run.phase = Phase::Paused(p.why.clone())),
        RunEvent::Resume(p) => change(view, event, |run| {
            if matches!(run.phase, Phase::Paused(PauseReason::Budget(_))) {
                run.tasks.iter_mut().for_each(|task| task.allowed = (task.spent, task.worked));
            }
            run.phase = Phase::Working;
            run.budget = p.budget.unwrap_or(run.budget);
        }),
        // Nobody worked while there was no server.
        RunEvent::Wake(_) => change(view, event, |run| run.ticking = None),
        RunEvent::Ask(p) => change(view, event, |run| {
            run.asks.retain(|ask| ask.id != p.ask);
            run.asks.push(Ask { id: p.ask, task: p.task, about: p.about.clone() });
        }),
        RunEvent::Answer(p) => change(view, event, |run| run.asks.retain(|ask| ask.id != p.ask)),
        RunEvent::Rewind(p) => change(view, event, |run| {
            run.phase = Phase::Working;
            run.asks.clear();
            run.tasks.retain(|task| !p.gone.contains(&task.id));
            for again in &p.again {
                if let Some(task) = run.task_mut(again.task) {
                    task.state = TaskState::Working;
                    task.taint.clone_from(&again.taint);
                    // Whoever reads the run anew knows what it was told.
                    task.told = Seq::ZERO;
                }
            }
            run.rewound = event.seq;
            run.void.extend(&p.void);
        }),
        RunEvent::Cancel(_) => end(view, event, Phase::Cancelled),
        RunEvent::Fail(p) => end(view, event, Phase::Failed(p.reason.clone())),
        RunEvent::Complete(_) => end(view, event, Phase::Completed),
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
                allowed: (Spent::default(), 0),
                told: Seq::ZERO,
                taint: event.taint.clone(),
            });
        }),
        TaskEvent::Message(p) => heard(view, event, Some(p.to)),
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
                let_go(view);
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

/// A call began, or waits to be kept.
pub(super) fn call_changed(view: &mut View, event: &Event) {
    change(view, event, |_| ());
}

/// Counts the time that a call took as its agent's.
pub(super) fn call_ended(view: &mut View, event: &Event, task: Option<TaskId>, millis: u64) {
    change(view, event, |run| {
        if let Some(task) = task.and_then(|task| run.task_mut(task)) {
            task.work(millis, event.ts);
        }
    });
}

/// What an agent was told carries its labels into everything that the agent says from then on.
pub(super) fn heard(view: &mut View, event: &Event, task: Option<TaskId>) {
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

fn end(view: &mut View, event: &Event, phase: Phase) {
    change(view, event, |run| {
        run.phase = phase;
        run.asks.clear();
    });
    let_go(view);
}

/// Lets go of the oldest runs that are over.
fn let_go(view: &mut View) {
    // One in which something is still being put away stays, however old it is.
    let is_settled = |id: &RunId| view.pending_in(*id).is_none();
    let over = view.runs.iter().filter(|(id, run)| run.phase.is_over() && is_settled(id));
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

fn on_day(view: &mut View, event: &Event, add: impl FnOnce(&mut Day)) {
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
