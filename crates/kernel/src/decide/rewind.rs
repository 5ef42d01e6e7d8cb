//! Rewinding a run to before a turn of a model: the run's state returns to that point, and what its calls did since is
//! undone.

use std::collections::BTreeSet;

use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{ResumedTask, RunRewind};
use shared_types::{Event, OpId, Payload, Reversibility, RunId, Seq};

use super::Draft;
use super::undo::{Mark, is_revert, revert_operation};
use crate::command::Contents;
use crate::operation::Operation;
use crate::run::{OperationStarts, Run, TaskState, is_rewound};
use crate::{Rejection, Resolutions, View, evolve};

pub(super) fn retry(
    view: &View,
    draft: &mut Draft,
    id: RunId,
    to: Seq,
    events: &[Event],
    resolutions: &Resolutions,
    contents: &Contents,
) -> Result<(), Rejection> {
    let run = view.runs.get(&id).ok_or(Rejection::NoRun { run: id })?;
    let own = OpId::from_bytes(*id.as_bytes());
    if view.undone.contains(&own) {
        return Err(Rejection::AlreadyUndone { op: own });
    }
    if let Some(call) = view.calls.iter().filter(|(_, call)| call.run == Some(id)).map(|(op, _)| *op).min() {
        return Err(Rejection::CallIsOpen { call });
    }
    let is_rewound = is_rewound(id, events);
    let is_turn = |event: &Event| matches!(event.payload, Payload::Llm(LlmEvent::Reply(_)));
    if !events.iter().any(|event| event.seq == to && is_turn(event) && !is_rewound(event)) {
        let reason = format!("event {to} is not a current model turn of this run");
        return Err(Rejection::Invalid { what: "a step", reason });
    }
    let starts = OperationStarts::of(id, events);
    let (since, before): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| starts.of_event(event) >= to);
    let Some(then) = run_after(id, &before) else { return Err(Rejection::NoRun { run: id }) };
    let works = |task: &&crate::run::Task| task.state == TaskState::Working;
    let made: BTreeSet<OpId> = events.iter().map(|event| event.op).collect();
    let wanted = since.iter().filter_map(|event| {
        let Payload::Llm(LlmEvent::Reply(p)) = &event.payload else { return None };
        Some(p.calls.iter().map(|wanted| wanted.call))
    });
    draft.event(RunRewind {
        to,
        again: then
            .tasks
            .iter()
            .filter(works)
            .map(|task| ResumedTask { task: task.id, taint: task.taint.clone() })
            .collect(),
        gone: run.tasks.iter().map(|task| task.id).filter(|task| then.task(*task).is_none()).collect(),
        void: wanted.flatten().filter(|call| !made.contains(call)).collect(),
    });
    let reverts: BTreeSet<OpId> =
        since.iter().filter(|event| is_revert(event)).map(|event| event.op).collect();
    let in_effect = |event: &&&Event| !view.undone.contains(&event.op) && !reverts.contains(&event.op);
    let operation = Operation::of(since.iter().filter(in_effect).copied());
    if operation.is_empty() {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    let reversible =
        since.iter().filter(in_effect).filter(|e| e.payload.reversibility() == Reversibility::Reversible);
    let mut steps = reversible.map(|event| event.op).filter(|op| known.insert(*op));
    // The operation is not empty, so there is a first step.
    let Some(first) = steps.next() else { return Ok(()) };
    let mark = Mark::Undo { target: first, root: first, steps: steps.collect() };
    revert_operation(view, draft, mark, &operation, resolutions, contents)
}

/// The run after these events.
fn run_after(id: RunId, events: &[&Event]) -> Option<Run> {
    let mut view = View::default();
    let is_of_run = |event: &&&Event| {
        matches!(event.payload, Payload::Run(_) | Payload::Task(_) | Payload::Llm(_) | Payload::Tool(_))
    };
    events.iter().filter(is_of_run).for_each(|event| evolve(&mut view, event));
    view.runs.get(&id).cloned()
}
