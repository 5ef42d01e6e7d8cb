//! Going back to before a turn of a model: the run is again as it was, and what its calls did since is taken back.

use std::collections::BTreeSet;

use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{RunRewind, WorksAgain};
use shared_types::{Event, OpId, Payload, Reversal, RunId, Seq};

use super::Draft;
use super::undo::{Mark, is_revert, take_back};
use crate::command::Contents;
use crate::operation::Operation;
use crate::run::{Begun, Run, TaskState, gone};
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
    let is_gone = gone(id, events);
    let is_turn = |event: &Event| matches!(event.payload, Payload::Llm(LlmEvent::Reply(_)));
    if !events.iter().any(|event| event.seq == to && is_turn(event) && !is_gone(event)) {
        let reason = format!("event {to} is no turn of a model that counts in this run");
        return Err(Rejection::Invalid { what: "a step", reason });
    }
    let begun = Begun::of(id, events);
    let (since, before): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| begun.of_event(event) >= to);
    let Some(then) = as_it_was(id, &before) else { return Err(Rejection::NoRun { run: id }) };
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
            .map(|task| WorksAgain { task: task.id, taint: task.taint.clone() })
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
    let reversible = since.iter().filter(in_effect).filter(|e| e.payload.reversal() == Reversal::Reversible);
    let mut steps = reversible.map(|event| event.op).filter(|op| known.insert(*op));
    // What can be taken back was done by some operation, so there is a first.
    let Some(first) = steps.next() else { return Ok(()) };
    let mark = Mark::Undo { target: first, root: first, steps: steps.collect() };
    take_back(view, draft, mark, &operation, resolutions, contents)
}

/// The run as its events left it.
fn as_it_was(id: RunId, events: &[&Event]) -> Option<Run> {
    let mut view = View::default();
    let tells = |event: &&&Event| {
        matches!(event.payload, Payload::Run(_) | Payload::Task(_) | Payload::Llm(_) | Payload::Tool(_))
    };
    events.iter().filter(tells).for_each(|event| evolve(&mut view, event));
    view.runs.get(&id).cloned()
}
