//! From one event to the rows of the read models. Applying the same events again from nothing gives the same rows.

mod files;
mod messages;
mod operations;

use event_log::EventLog;
use shared_types::payload::checkpoint::CheckpointEvent;
use shared_types::payload::revert::RevertEvent;
use shared_types::payload::setting::SettingEvent;
use shared_types::payload::system::SystemEvent;
use shared_types::{Event, Payload};

use crate::views::{Views, ViewsError};

/// Texts beyond this size are found by name only.
pub(crate) const INDEX_LIMIT: u64 = 1024 * 1024;

/// Applies one event; the caller holds the transaction.
pub(crate) fn apply(views: &Views, log: &dyn EventLog, event: &Event) -> Result<(), ViewsError> {
    operations::note(views, event)?;
    match &event.payload {
        Payload::File(change) => files::apply(views, log, event, change),
        Payload::Message(message) => messages::apply(views, log, event, message),
        Payload::Setting(SettingEvent::Set(p)) => {
            let mut statement =
                views.prepare("INSERT OR REPLACE INTO settings (key, value, seq) VALUES (?1, ?2, ?3)")?;
            views.map(statement.execute((&p.key, p.value.to_string(), event.seq.0 as i64))).map(drop)
        }
        Payload::Setting(SettingEvent::Clear(p)) => {
            let mut statement = views.prepare("DELETE FROM settings WHERE key = ?1")?;
            views.map(statement.execute([&p.key])).map(drop)
        }
        Payload::Checkpoint(CheckpointEvent::Create(p)) => {
            let mut statement = views.prepare(
                "INSERT OR REPLACE INTO checkpoints (at, seq, \"commit\", ts, message) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let row = (event.seq.0 as i64, p.seq.0 as i64, &p.commit, event.ts.millis(), &p.message);
            views.map(statement.execute(row)).map(drop)
        }
        Payload::Revert(RevertEvent::Undo(p)) => operations::set_undone(views, p.root, Some(event.op)),
        Payload::Revert(RevertEvent::Redo(p)) => operations::set_undone(views, p.root, None),
        Payload::System(SystemEvent::Purge(p)) => messages::forget(views, &p.hashes),
        Payload::System(SystemEvent::Purged(_) | SystemEvent::Import(_))
        | Payload::Checkpoint(CheckpointEvent::Request(_) | CheckpointEvent::Fail(_))
        | Payload::Revert(RevertEvent::Restore(_))
        | Payload::Window(_)
        | Payload::Note(_)
        | Payload::User(_)
        | Payload::Unknown(_) => Ok(()),
    }
}

/// The text behind a content, if it is small enough, is text and is still there.
pub(crate) fn text_of(log: &dyn EventLog, content: shared_types::ContentRef) -> Option<String> {
    use std::io::Read;
    if content.size > INDEX_LIMIT {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(content.size).unwrap_or_default());
    log.content(&content.hash).ok()?.read_to_end(&mut bytes).ok()?;
    if kernel::merge::is_text(&bytes) { String::from_utf8(bytes).ok() } else { None }
}
