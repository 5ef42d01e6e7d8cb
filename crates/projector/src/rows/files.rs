//! The `files`, `touches` and `files_text` tables.

use event_log::EventLog;
use rusqlite::OptionalExtension;
use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::{ContentHash, Event, FilePath};

use super::text_of;
use crate::error::ProjectError;
use crate::views::{Views, ViewsError};

pub(super) fn apply(
    views: &Views,
    log: &dyn EventLog,
    event: &Event,
    change: &FileEvent,
) -> Result<(), ProjectError> {
    change.changes().iter().try_for_each(|change| apply_one(views, log, event, change))
}

fn apply_one(
    views: &Views,
    log: &dyn EventLog,
    event: &Event,
    change: &FileChange,
) -> Result<(), ProjectError> {
    match change {
        FileChange::Write(p) => set(views, log, event, &p.path, &p.node),
        FileChange::Delete(p) => remove(views, event, &p.path),
        FileChange::Move(p) => {
            remove(views, event, &p.from)?;
            set(views, log, event, &p.to, &p.node)
        }
    }
}

fn set(
    views: &Views,
    log: &dyn EventLog,
    event: &Event,
    path: &FilePath,
    node: &FileNode,
) -> Result<(), ProjectError> {
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
    let body = match node.content() {
        Some(content) => text_of(log, content)?,
        None => None,
    };
    Ok(index(views, id, path.as_str(), &body.unwrap_or_default())?)
}

fn remove(views: &Views, event: &Event, path: &FilePath) -> Result<(), ProjectError> {
    touch(views, event, path)?;
    let mut delete = views.prepare("DELETE FROM files WHERE path = ?1 RETURNING id")?;
    let id: Option<i64> = views.map(delete.query_row([path.as_str()], |row| row.get(0)).optional())?;
    if let Some(id) = id {
        let mut unindex = views.prepare("DELETE FROM files_text WHERE rowid = ?1")?;
        views.map(unindex.execute([id]))?;
    }
    Ok(())
}

/// Removes the text of purged files from the index; they are still found by their names.
pub(super) fn purge(views: &Views, hash: &ContentHash) -> Result<(), ProjectError> {
    let mut holders = views.prepare("SELECT id, path FROM files WHERE hash = ?1")?;
    let rows = holders.query_map([hash.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
    let found: Vec<(i64, String)> = views.map(rows.and_then(Iterator::collect))?;
    for (id, path) in found {
        index(views, id, &path, "")?;
    }
    Ok(())
}

/// Replaces the entry of a file in the search index.
fn index(views: &Views, id: i64, path: &str, body: &str) -> Result<(), ViewsError> {
    let mut insert =
        views.prepare("INSERT OR REPLACE INTO files_text (rowid, path, body) VALUES (?1, ?2, ?3)")?;
    views.map(insert.execute((id, path, body))).map(drop)
}

fn touch(views: &Views, event: &Event, path: &FilePath) -> Result<(), ViewsError> {
    let mut insert = views.prepare("INSERT OR IGNORE INTO touches (path, seq, op) VALUES (?1, ?2, ?3)")?;
    views.map(insert.execute((path.as_str(), event.seq.0 as i64, event.op.as_bytes()))).map(drop)
}
