//! When nothing is known of the disk (a new computer over an existing folder, or lost read models), the workspace is
//! compared with the present as a whole, and the ledger is filled from what is really there.
//!
//! A file that is not as the log has it, and never was at that path, is an edit of the person's: the ledger then
//! claims that the log's version was there, so that the capture records the difference. A file that the log once had
//! there is an older projection and is replaced. Nothing is written here: what is missing is owed.

use std::collections::{HashMap, HashSet};

use event_log::{EventLog, Head};
use shared_types::payload::file::FileNode;
use shared_types::{FilePath, Seq};

use crate::error::ProjectError;
use crate::history::each_change;
use crate::identify::identify;
use crate::ledger::{Ledger, Reason};
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
    let mut strange = HashMap::new();
    for (index, (path, seen)) in scan.entries.iter().enumerate() {
        if index % 256 == 0 {
            progress(index as u64, total);
        }
        let Some(node) = files.get(path) else { continue };
        // What cannot be read is not as it should be, as far as anybody knows; it stays owed.
        let Ok(Some(found)) = identify(workspace, path, seen, None) else { continue };
        let known = if found.node == *node { &mut entries } else { &mut strange };
        known.insert(path.clone(), found);
    }
    let earlier = earlier_projections(log, &strange)?;
    for (path, found) in strange {
        let is_earlier = earlier.contains(&path);
        let entry = if is_earlier { found } else { pretend(&files[&path], &found) };
        entries.insert(path, entry);
    }
    views.transaction(|| {
        for (path, node) in &files {
            let entry = entries.get(path);
            ledger.record(path, entry)?;
            if entry.is_none_or(|entry| entry.node != *node) {
                ledger.owe(path, Some(node), &Reason::Blocked("it is not written yet".into()))?;
            }
        }
        Ok(views.set_position(Position::Disk, at)?)
    })
}

/// The log's version, with a stat that can never be trusted.
fn pretend(node: &FileNode, found: &CacheEntry) -> CacheEntry {
    CacheEntry { node: node.clone(), stat: found.stat, checked_at_ns: 0 }
}

/// Those of the paths at which the log once had just what is there.
fn earlier_projections(
    log: &dyn EventLog,
    strange: &HashMap<FilePath, CacheEntry>,
) -> Result<HashSet<FilePath>, ProjectError> {
    let mut earlier = HashSet::new();
    if !strange.is_empty() {
        each_change(log, Seq(1), &mut |path, node| {
            if strange.get(path).is_some_and(|found| Some(&found.node) == node) {
                earlier.insert(path.clone());
            }
        })?;
    }
    Ok(earlier)
}
