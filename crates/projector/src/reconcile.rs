//! When nothing is known of the disk (a new computer over an existing folder, or lost read models), the workspace is
//! compared with the present as a whole, and the ledger is filled from what is really there.
//!
//! A file that differs from the log and whose bytes the log does not hold is an edit of the person's: the ledger then
//! claims that the log's version was there, so that the capture records the difference. A file whose bytes the log
//! holds already is an older projection and may be replaced.

use std::collections::HashMap;

use event_log::EventLog;
use shared_types::payload::file::FileNode;
use shared_types::{FilePath, Seq};

use crate::error::ProjectError;
use crate::identify::identify;
use crate::ledger::Ledger;
use crate::materialize::{Desired, Materialized, materialize};
use crate::scan::{CacheEntry, scan};
use crate::views::{Position, Views};
use crate::workspace::Workspace;

pub(crate) fn reconcile(
    workspace: &Workspace,
    views: &Views,
    log: &dyn EventLog,
    seq: Seq,
    files: HashMap<FilePath, FileNode>,
    progress: &dyn Fn(u64, u64),
) -> Result<(), ProjectError> {
    let ledger = Ledger::new(views);
    if files.is_empty() {
        return Ok(views.set_position(Position::Disk, seq)?);
    }
    let scan = scan(workspace, files.keys())?;
    let total = scan.entries.len() as u64;
    let mut entries = Vec::new();
    for (index, (path, seen)) in scan.entries.iter().enumerate() {
        if index % 256 == 0 {
            progress(index as u64, total);
        }
        let Some(node) = files.get(path) else { continue };
        let Some(found) = identify(workspace, path, seen, None)? else { continue };
        let held = found.node.content().is_some_and(|c| log.has_content(&c.hash).unwrap_or(false));
        let entry = if found.node == *node || held { found } else { pretend(node, &found) };
        entries.push((path.clone(), entry));
    }
    views.transaction(|| {
        entries.iter().try_for_each(|(path, entry)| Ok::<_, ProjectError>(ledger.put(path, entry)?))
    })?;
    // What was edited outside is left to the capture; the rest goes to disk now.
    let desired: Desired = files
        .into_iter()
        .filter(|(path, _)| {
            entries
                .binary_search_by(|(known, _)| known.cmp(path))
                .map_or(true, |at| entries[at].1.checked_at_ns > 0)
        })
        .map(|(path, node)| (path, Some(node)))
        .collect();
    match materialize(workspace, views, log, &desired, seq)? {
        Materialized::Done { .. } => Ok(()),
        // Somebody edits while we look: the position is set all the same, and the capture sorts it out.
        Materialized::Edited(_) | Materialized::Blocked(_) => Ok(views.set_position(Position::Disk, seq)?),
    }
}

/// The log's version, with a stat that can never be trusted.
fn pretend(node: &FileNode, found: &CacheEntry) -> CacheEntry {
    CacheEntry { node: node.clone(), stat: found.stat, checked_at_ns: 0 }
}
