//! The node at a path on disk: from the ledger if its stat can be trusted, otherwise by reading the file.

use std::time::{SystemTime, UNIX_EPOCH};

use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::scan::{CacheEntry, is_trusted};
use crate::workspace::{DiskError, Observed, ObservedKind, Workspace, hash_file};

/// The wall clock for the stat cache; it never reaches an event.
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The node that was observed at a path, with its stat. Something that the log cannot hold counts as nothing.
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
        ObservedKind::File { .. } => match hash_file(workspace, path) {
            Ok((content, stat)) => (FileNode::file(content, stat.permissions()), stat),
            Err(e) if e.is_absence() => return Ok(None),
            Err(e) => return Err(e),
        },
        ObservedKind::Symlink { target } => (FileNode::Symlink { target: target.clone() }, seen.stat),
        ObservedKind::Folder => (FileNode::Folder, seen.stat),
        ObservedKind::Other => return Ok(None),
    };
    Ok(Some(CacheEntry { node, stat, checked_at_ns }))
}

/// The same for a path that was not observed yet.
pub(crate) fn read_node(
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
