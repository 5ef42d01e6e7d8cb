//! The `operations` table: one row per operation, with a label for people.

use shared_types::payload::file::FileEvent;
use shared_types::payload::revert::RevertEvent;
use shared_types::payload::tool::ToolEvent;
use shared_types::{Event, OpId, Payload, Reversibility, RunId, TaskId};

use crate::label::label;
use crate::views::{Views, ViewsError};

/// Adds an event to the row of its operation. The first event names the operation: its label, and what it undid or redid.
pub(super) fn add(views: &Views, event: &Event) -> Result<(), ViewsError> {
    let files = match &event.payload {
        Payload::File(FileEvent::Batch(batch)) => batch.count as i64,
        Payload::File(FileEvent::Write(_) | FileEvent::Delete(_) | FileEvent::Move(_)) => 1,
        Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::Checkpoint(_)
        | Payload::Tool(_)
        | Payload::Run(_)
        | Payload::Task(_)
        | Payload::Llm(_)
        | Payload::Capability(_)
        | Payload::Revert(_)
        | Payload::User(_)
        | Payload::System(_)
        | Payload::Unknown(_) => 0,
    };
    // The operation whose inverse was applied, the one that this is about in the end, and whether it is a redo.
    let reverts = match &event.payload {
        Payload::Revert(RevertEvent::Undo(p)) => Some((p.target, p.root, false)),
        Payload::Revert(RevertEvent::Redo(p)) => Some((p.target, p.root, true)),
        Payload::Revert(RevertEvent::Restore(_))
        | Payload::File(_)
        | Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::Checkpoint(_)
        | Payload::Tool(_)
        | Payload::Run(_)
        | Payload::Task(_)
        | Payload::Llm(_)
        | Payload::Capability(_)
        | Payload::User(_)
        | Payload::System(_)
        | Payload::Unknown(_) => None,
    };
    let task = if let Payload::Tool(ToolEvent::Call(p)) = &event.payload { p.task } else { None };
    let reversible = i64::from(event.payload.reversibility() == Reversibility::Reversible);
    let name = event.payload.name();
    let mut upsert = views.prepare(
        "INSERT INTO operations (
            op, first, last, ts, source, actor, family, label, events, files, reversible, reverts, run, task,
            root, is_redo)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
         ON CONFLICT (op) DO UPDATE SET last = ?2, events = events + 1, files = files + ?8,
            reversible = max(reversible, ?9), reverts = coalesce(reverts, ?10), run = coalesce(run, ?11),
            task = coalesce(task, ?12)",
    )?;
    views
        .map(upsert.execute((
            event.op.as_bytes(),
            event.seq.0 as i64,
            event.ts.millis(),
            event.source.as_str(),
            event.actor.as_str(),
            name.family(),
            label(&event.payload),
            files,
            reversible,
            reverts.as_ref().map(|(target, ..)| target.as_bytes()),
            event.run_id.as_ref().map(RunId::as_bytes),
            task.as_ref().map(TaskId::as_bytes),
            reverts.as_ref().map(|(_, root, _)| root.as_bytes()),
            reverts.map(|(.., is_redo)| is_redo),
        )))
        .map(drop)
}

pub(super) fn set_undone(views: &Views, root: OpId, by: Option<OpId>) -> Result<(), ViewsError> {
    let mut update = views.prepare("UPDATE operations SET undone_by = ?2 WHERE op = ?1")?;
    views.map(update.execute((root.as_bytes(), by.as_ref().map(OpId::as_bytes)))).map(drop)
}
