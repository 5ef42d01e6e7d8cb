//! What a path holds, as a node: by the ledger where its stat can be trusted, by reading where not.

use std::time::{SystemTime, UNIX_EPOCH};

use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::scan::{CacheEntry, is_trusted};
use crate::workspace::{DiskError, Kind, Observed, Workspace, hash_file};

/// The wall clock for the stat cache; it never reaches an event.
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// What stands at a path, with the stat to remember it by. A thing that the log cannot hold counts as nothing.
pub(crate) fn identify(
    workspace: &Workspace,
    path: &FilePath,
    seen: &Observed,
    known: Option<&CacheEntry>,
) -> Result<Option<CacheEntry>, DiskError> {
    if let Some(known) = known
        && is_trusted(known, &seen.stat)
    {
        return Ok(Some(known.clone()));
    }
    let checked_at_ns = now_ns();
    let (node, stat) = match &seen.kind {
        Kind::File { .. } => match hash_file(workspace, path) {
            Ok((content, stat)) => (FileNode::file(content, stat.permissions()), stat),
            Err(e) if e.is_absence() => return Ok(None),
            Err(e) => return Err(e),
        },
        Kind::Symlink { target } => (FileNode::Symlink { target: target.clone() }, seen.stat),
        Kind::Folder => (FileNode::Folder, seen.stat),
        Kind::Other => return Ok(None),
    };
    Ok(Some(CacheEntry { node, stat, checked_at_ns }))
}

/// The same for a path nobody has looked at yet.
pub(crate) fn look(
    workspace: &Workspace,
    path: &FilePath,
    known: Option<&CacheEntry>,
) -> Result<Option<CacheEntry>, DiskError> {
    match workspace.observe(path) {
        Ok(Some(seen)) => identify(workspace, path, &seen, known),
        Ok(None) => Ok(None),
        Err(e) if e.is_absence() => Ok(None),
        Err(e) => Err(e),
    }
}
