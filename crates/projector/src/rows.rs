//! Applies one event to the rows of the read models. Applying the same events to empty tables gives the same rows.

mod calls;
mod files;
mod operations;
mod runs;

use event_log::{ContentError, EventLog, read_content};
use shared_types::payload::checkpoint::CheckpointEvent;
use shared_types::payload::revert::RevertEvent;
use shared_types::payload::system::SystemEvent;
use shared_types::{ContentHash, ContentRef, Event, OpId, Payload};

use crate::error::ProjectError;
use crate::views::Views;

/// Larger files are found by name only.
const INDEX_LIMIT: u64 = 1024 * 1024;

/// Applies one event; the caller holds the transaction.
pub(crate) fn apply(views: &Views, log: &dyn EventLog, event: &Event) -> Result<(), ProjectError> {
    operations::add(views, event)?;
    match &event.payload {
        Payload::File(change) => files::apply(views, log, event, change),
        Payload::Checkpoint(CheckpointEvent::Create(p)) => {
            let mut statement = views.prepare(
                "INSERT OR REPLACE INTO checkpoints (at, seq, \"commit\", ts, message) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let row = (event.seq.0 as i64, p.seq.0 as i64, &p.commit, event.ts.millis(), &p.message);
            views.map(statement.execute(row))?;
            Ok(())
        }
        Payload::Tool(tool) => Ok(calls::apply(views, event, tool)?),
        Payload::Run(run) => Ok(runs::apply(views, event, run)?),
        Payload::Task(task) => Ok(runs::apply_task(views, event, task)?),
        Payload::Llm(llm) => Ok(runs::apply_llm(views, event, llm)?),
        Payload::Revert(RevertEvent::Undo(p)) => set_undone(views, p.root, &p.steps, Some(event.op)),
        Payload::Revert(RevertEvent::Redo(p)) => set_undone(views, p.root, &p.steps, None),
        Payload::System(SystemEvent::Purge(p)) => purge(views, &p.hashes),
        Payload::System(SystemEvent::Purged(_) | SystemEvent::Import(_))
        | Payload::Checkpoint(CheckpointEvent::Request(_) | CheckpointEvent::Fail(_))
        | Payload::Revert(RevertEvent::Restore(_))
        | Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::User(_)
        | Payload::Capability(_)
        | Payload::Unknown(_) => Ok(()),
    }
}

/// Marks an operation, or a run and its steps, as undone or not.
fn set_undone(views: &Views, root: OpId, steps: &[OpId], by: Option<OpId>) -> Result<(), ProjectError> {
    runs::set_undone(views, root, by)?;
    for op in [root].iter().chain(steps) {
        operations::set_undone(views, *op, by)?;
    }
    Ok(())
}

/// Removes purged text from the read models too.
fn purge(views: &Views, hashes: &[ContentHash]) -> Result<(), ProjectError> {
    for hash in hashes {
        files::purge(views, hash)?;
    }
    // A search index only marks deleted rows; rewriting it removes the words themselves.
    views.map(views.conn.execute_batch("INSERT INTO files_text (files_text) VALUES ('optimize')"))?;
    Ok(())
}

/// The text of a content, if it is small enough, is text and still exists.
fn text_of(log: &dyn EventLog, content: ContentRef) -> Result<Option<String>, ProjectError> {
    if content.size > INDEX_LIMIT {
        return Ok(None);
    }
    match read_content(log, &content.hash) {
        Ok(bytes) if kernel::merge::is_text(&bytes) => Ok(String::from_utf8(bytes).ok()),
        Ok(_) | Err(ContentError::Missing(_) | ContentError::Purged(_) | ContentError::Damaged(_)) => {
            Ok(None)
        }
        // If the log cannot be read now, the batch fails: the row must not stay without its text.
        Err(e @ ContentError::Storage(_)) => Err(e.into()),
    }
}
