//! The `files`, `touches` and `files_text` tables.

use event_log::EventLog;
use rusqlite::OptionalExtension;
use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::{Event, FilePath};

use super::text_of;
use crate::views::{Views, ViewsError};

pub(super) fn apply(
    views: &Views,
    log: &dyn EventLog,
    event: &Event,
    change: &FileEvent,
) -> Result<(), ViewsError> {
    for change in change.changes() {
        match &change {
            FileChange::Write(p) => set(views, log, event, &p.path, &p.node)?,
            FileChange::Delete(p) => remove(views, event, &p.path)?,
            FileChange::Move(p) => {
                remove(views, event, &p.from)?;
                set(views, log, event, &p.to, &p.node)?;
            }
        }
    }
    Ok(())
}

fn set(
    views: &Views,
    log: &dyn EventLog,
    event: &Event,
    path: &FilePath,
    node: &FileNode,
) -> Result<(), ViewsError> {
    touch(views, event, path)?;
    let (kind, hash, size, mode, target) = match node {
        FileNode::File { hash, size, mode } => ("file", Some(hash.as_bytes()), *size as i64, *mode, None),
        FileNode::Symlink { target } => ("symlink", None, 0, 0, Some(target)),
        FileNode::Folder => ("folder", None, 0, 0, None),
    };
    let mut upsert = views.prepare(
        "INSERT INTO files (path, kind, hash, size, mode, target, seq, op) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (path) DO UPDATE SET kind = ?2, hash = ?3, size = ?4, mode = ?5, target = ?6, seq = ?7, op = ?8
         RETURNING id",
    )?;
    let row = (path.as_str(), kind, hash, size, mode, target, event.seq.0 as i64, event.op.as_bytes());
    let id: i64 = views.map(upsert.query_row(row, |row| row.get(0)))?;
    unindex(views, id)?;
    let body = node.content().and_then(|content| text_of(log, content));
    let mut index = views.prepare("INSERT INTO files_text (rowid, path, body) VALUES (?1, ?2, ?3)")?;
    views.map(index.execute((id, path.as_str(), body.unwrap_or_default()))).map(drop)
}

fn remove(views: &Views, event: &Event, path: &FilePath) -> Result<(), ViewsError> {
    touch(views, event, path)?;
    let mut delete = views.prepare("DELETE FROM files WHERE path = ?1 RETURNING id")?;
    match views.map(delete.query_row([path.as_str()], |row| row.get(0)).optional())? {
        Some(id) => unindex(views, id),
        None => Ok(()),
    }
}

fn unindex(views: &Views, id: i64) -> Result<(), ViewsError> {
    let mut delete = views.prepare("DELETE FROM files_text WHERE rowid = ?1")?;
    views.map(delete.execute([id])).map(drop)
}

fn touch(views: &Views, event: &Event, path: &FilePath) -> Result<(), ViewsError> {
    let mut insert = views.prepare("INSERT OR IGNORE INTO touches (path, seq, op) VALUES (?1, ?2, ?3)")?;
    views.map(insert.execute((path.as_str(), event.seq.0 as i64, event.op.as_bytes()))).map(drop)
}
