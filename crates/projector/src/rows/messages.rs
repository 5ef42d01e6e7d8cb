//! The `conversations`, `messages` and `messages_text` tables. Only older logs hold conversations.

use event_log::EventLog;
use shared_types::payload::message::{MessageEvent, Role};
use shared_types::{ContentHash, Event};

use super::text_of;
use crate::error::ProjectError;
use crate::views::Views;

pub(super) fn apply(
    views: &Views,
    log: &dyn EventLog,
    event: &Event,
    message: &MessageEvent,
) -> Result<(), ProjectError> {
    let (seq, ts) = (event.seq.0 as i64, event.ts.millis());
    match message {
        MessageEvent::Start(p) => {
            let mut insert = views.prepare(
                "INSERT OR REPLACE INTO conversations (id, title, started, messages, last) VALUES (?1, ?2, ?3, 0, ?4)",
            )?;
            views.map(insert.execute((p.conversation.as_bytes(), &p.title, ts, seq)))?;
        }
        MessageEvent::Post(p) => {
            let role = match p.role {
                Role::Person => "person",
                Role::Agent => "agent",
                Role::System => "system",
            };
            let body = text_of(log, p.body)?;
            let mut insert = views.prepare(
                "INSERT OR REPLACE INTO messages (seq, id, conversation, ts, role, actor, hash, size, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?;
            views.map(insert.execute((
                seq,
                p.message.as_bytes(),
                p.conversation.as_bytes(),
                ts,
                role,
                event.actor.as_str(),
                p.body.hash.as_bytes(),
                p.body.size as i64,
                &body,
            )))?;
            let mut index = views.prepare("INSERT INTO messages_text (rowid, body) VALUES (?1, ?2)")?;
            views.map(index.execute((seq, body.unwrap_or_default())))?;
            let mut count =
                views.prepare("UPDATE conversations SET messages = messages + 1, last = ?2 WHERE id = ?1")?;
            views.map(count.execute((p.conversation.as_bytes(), seq)))?;
        }
    }
    Ok(())
}

/// Removes the text of purged messages.
pub(super) fn purge(views: &Views, hash: &ContentHash) -> Result<(), ProjectError> {
    for sql in [
        "DELETE FROM messages_text WHERE rowid IN (SELECT seq FROM messages WHERE hash = ?1)",
        "UPDATE messages SET body = NULL WHERE hash = ?1",
    ] {
        let mut statement = views.prepare(sql)?;
        views.map(statement.execute([hash.as_bytes()]))?;
    }
    Ok(())
}
