//! Filling the ledger when nothing is known about the disk: for a new computer over an existing folder, or after the
//! read models were lost. The whole workspace is compared with the current view.
//!
//! A file that differs from the log, and never was in the log at that path, is an edit of the person: the ledger then
//! records the log's version, so that the capture finds the difference. A file that the log once had at that path is an
//! older projection and is replaced. Nothing is written here: missing files become pending writes.

use std::collections::{HashMap, HashSet};

use event_log::{EventLog, Head};
use shared_types::payload::file::FileNode;
use shared_types::{FilePath, Seq};

use crate::error::ProjectError;
use crate::history::each_change;
use crate::identify::identify;
use crate::ledger::{Ledger, PendingReason};
use crate::scan::{CacheEntry, scan};
use crate::views::{Position, Views};
use crate::workspace::Workspace;

pub(crate) fn reconcile(
    workspace: &Workspace,
    views: &Views,
    log: &dyn EventLog,
    at: Head,
    files: HashMap<FilePath, FileNode>,
    progress: &dyn Fn(u64, u64),
) -> Result<(), ProjectError> {
    let ledger = Ledger::new(views);
    if files.is_empty() {
        return Ok(views.set_position(Position::Disk, at)?);
    }
    let scan = scan(workspace, files.keys())?;
    let total = scan.entries.len() as u64;
    let mut entries = HashMap::new();
    let mut different = HashMap::new();
    for (index, (path, seen)) in scan.entries.iter().enumerate() {
        if index % 256 == 0 {
            progress(index as u64, total);
        }
        let Some(node) = files.get(path) else { continue };
        // A file that cannot be read counts as missing and becomes a pending write.
        let Ok(Some(found)) = identify(workspace, path, seen, None) else { continue };
        let known = if found.node == *node { &mut entries } else { &mut different };
        known.insert(path.clone(), found);
    }
    let earlier = earlier_projections(log, &different)?;
    for (path, found) in different {
        let is_earlier = earlier.contains(&path);
        let entry = if is_earlier { found } else { untrusted(&files[&path], &found) };
        entries.insert(path, entry);
    }
    views.transaction(|| {
        for (path, node) in &files {
            let entry = entries.get(path);
            ledger.record(path, entry)?;
            if entry.is_none_or(|entry| entry.node != *node) {
                ledger.add_pending(
                    path,
                    Some(node),
                    &PendingReason::Blocked("it is not written yet".into()),
                )?;
            }
        }
        Ok(views.set_position(Position::Disk, at)?)
    })
}

/// The log's version, with a stat that is never trusted.
fn untrusted(node: &FileNode, found: &CacheEntry) -> CacheEntry {
    CacheEntry { node: node.clone(), stat: found.stat, checked_at_ns: 0 }
}

/// The paths at which the log once had exactly the node that is on disk.
fn earlier_projections(
    log: &dyn EventLog,
    different: &HashMap<FilePath, CacheEntry>,
) -> Result<HashSet<FilePath>, ProjectError> {
    let mut earlier = HashSet::new();
    if !different.is_empty() {
        each_change(log, Seq(1), &mut |path, node| {
            if different.get(path).is_some_and(|found| Some(&found.node) == node) {
                earlier.insert(path.clone());
            }
        })?;
    }
    Ok(earlier)
}
