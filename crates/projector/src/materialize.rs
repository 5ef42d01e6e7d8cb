//! From desired nodes to files on disk, a batch at a time: check, intend, write, one `syncfs`, advance.
//!
//! Before a path is written, the disk must still hold what was put there last. If it does not, somebody edited it
//! outside: nothing is written, and the caller captures that edit first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use event_log::{ContentError, EventLog};
use shared_types::payload::file::FileNode;
use shared_types::{FilePath, Seq};

use crate::error::ProjectError;
use crate::identify::{look, now_ns};
use crate::ledger::{Intent, Ledger};
use crate::scan::CacheEntry;
use crate::views::{Position, Views};
use crate::workspace::{DiskError, Workspace};

/// What should stand at some paths.
pub(crate) type Desired = BTreeMap<FilePath, Option<FileNode>>;

/// How a batch ended.
#[derive(Debug)]
pub(crate) enum Materialized {
    /// All of it is on disk; these files could not be written because their bytes were purged or are damaged.
    Done { unavailable: Vec<FilePath> },
    /// These paths were edited outside and have to be captured first; nothing was written.
    Edited(BTreeSet<FilePath>),
    /// Something that the ledger does not know stands in the way of a path; the position stays.
    Blocked(DiskError),
}

/// One path that has to change.
struct Step {
    path: FilePath,
    old: Option<CacheEntry>,
    new: Option<FileNode>,
}

/// Brings the disk to the desired state and advances the position.
pub(crate) fn materialize(
    workspace: &Workspace,
    views: &Views,
    log: &dyn EventLog,
    desired: &Desired,
    through: Seq,
) -> Result<Materialized, ProjectError> {
    let ledger = Ledger::new(views);
    let mut edited = BTreeSet::new();
    let mut steps = Vec::new();
    let mut records: Vec<(FilePath, Option<CacheEntry>)> = Vec::new();
    for (path, wanted) in desired {
        let known = ledger.get(path)?;
        let found = look(workspace, path, known.as_ref())?;
        let is = found.as_ref().map(|entry| &entry.node);
        let was = known.as_ref().map(|entry| &entry.node);
        if is == wanted.as_ref() {
            if found != known {
                records.push((path.clone(), found));
            }
        } else if is == was || is_implied_folder(is, was) {
            steps.push(Step { path: path.clone(), old: found, new: wanted.clone() });
        } else {
            edited.insert(path.clone());
        }
    }
    if !edited.is_empty() {
        return Ok(Materialized::Edited(edited));
    }
    intend(views, &ledger, &steps)?;
    let unavailable = match write(workspace, &ledger, log, desired, steps, &mut records)? {
        Written::All { unavailable } => unavailable,
        Written::Blocked(by) => return Ok(Materialized::Blocked(by)),
    };
    views.transaction(|| {
        for (path, entry) in &records {
            ledger.record(path, entry.as_ref())?;
        }
        ledger.clear_intents()?;
        views.set_position(Position::Disk, through)
    })?;
    Ok(Materialized::Done { unavailable })
}

/// A folder on disk that the ledger does not list is only there because of what is in it.
fn is_implied_folder(is: Option<&FileNode>, was: Option<&FileNode>) -> bool {
    is == Some(&FileNode::Folder) && was.is_none()
}

fn intend(views: &Views, ledger: &Ledger<'_>, steps: &[Step]) -> Result<(), ProjectError> {
    if steps.is_empty() {
        return Ok(());
    }
    views.transaction(|| {
        for step in steps {
            let old = step.old.as_ref().map(|entry| entry.node.clone());
            ledger.intend(&Intent { path: step.path.clone(), old, new: step.new.clone() })?;
        }
        Ok::<_, ProjectError>(())
    })?;
    Ok(views.flush()?)
}

enum Written {
    All { unavailable: Vec<FilePath> },
    Blocked(DiskError),
}

fn write(
    workspace: &Workspace,
    ledger: &Ledger<'_>,
    log: &dyn EventLog,
    desired: &Desired,
    steps: Vec<Step>,
    records: &mut Vec<(FilePath, Option<CacheEntry>)>,
) -> Result<Written, ProjectError> {
    if steps.is_empty() {
        return Ok(Written::All { unavailable: Vec::new() });
    }
    let (places, removals): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.new.is_some());
    let keeps = |folder: &FilePath| match desired.get(folder) {
        Some(wanted) => wanted.is_some(),
        None => matches!(ledger.get(folder), Ok(Some(_))),
    };
    // What is deepest goes first, so that a folder is empty when its turn comes.
    for Step { path, .. } in removals.into_iter().rev() {
        match workspace.remove(&path) {
            Ok(()) => workspace.prune(&path, &keeps)?,
            Err(DiskError::FolderInTheWay { .. }) => {}
            Err(e) => return Err(e.into()),
        }
        records.push((path, None));
    }
    let mut unavailable = Vec::new();
    for Step { path, new, .. } in places {
        let Some(node) = new else { continue };
        match place(workspace, log, &path, &node) {
            Ok(entry) => records.push((path, Some(entry))),
            Err(Failure::Disk(DiskError::Content { .. })) => unavailable.push(path),
            Err(Failure::Disk(e)) if is_obstacle(&e) => return Ok(Written::Blocked(e)),
            Err(Failure::Disk(e)) => return Err(e.into()),
            Err(Failure::Content(ContentError::Storage(e))) => return Err(ContentError::Storage(e).into()),
            Err(Failure::Content(_)) => unavailable.push(path),
        }
    }
    workspace.sync()?;
    Ok(Written::All { unavailable })
}

fn is_obstacle(error: &DiskError) -> bool {
    matches!(
        error,
        DiskError::FolderInTheWay { .. } | DiskError::NotAFolder { .. } | DiskError::LinkInPath { .. }
    )
}

enum Failure {
    Disk(DiskError),
    Content(ContentError),
}

fn place(
    workspace: &Workspace,
    log: &dyn EventLog,
    path: &FilePath,
    node: &FileNode,
) -> Result<CacheEntry, Failure> {
    let mut content: Option<Box<dyn Read + Send>> = match node.content() {
        Some(content) => Some(log.content(&content.hash).map_err(Failure::Content)?),
        None => None,
    };
    let reader = content.as_mut().map(|reader| reader as &mut dyn Read);
    let checked_at_ns = now_ns();
    let seen = workspace.place(path, node, reader).map_err(Failure::Disk)?;
    Ok(CacheEntry { node: node.clone(), stat: seen.stat, checked_at_ns })
}
