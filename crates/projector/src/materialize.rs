//! From desired nodes to files on disk, a batch at a time: check, record intents, write, one `syncfs`, advance.
//!
//! A path is written only if the disk still holds what the projector put there last. If not, the path was edited
//! outside: it is not written, and the caller captures that edit first. A path that cannot be written does not stop
//! the others; after some attempts it becomes a pending write.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use event_log::{EventLog, Head};
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::error::ProjectError;
use crate::identify::read_node;
use crate::ledger::{Ledger, PendingReason};
use crate::progress::Progress;
use crate::scan::CacheEntry;
use crate::views::{Position, Views};
use crate::workspace::Workspace;

/// The wanted node at each path; none for a path that should be empty.
pub(crate) type Desired = BTreeMap<FilePath, Option<FileNode>>;

/// What to do with a batch in which a path is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenBlocked {
    /// The position stays: the caller captures the blocking paths and tries again.
    Retry,
    /// The position advances, and the blocked paths become pending writes.
    Postpone,
}

/// The paths that a batch could not write.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// Edited outside, so not written.
    pub(crate) edited: BTreeSet<FilePath>,
    /// Blocked by something that is not the projector's, or refused by the disk; with the reason.
    blocked: BTreeMap<FilePath, String>,
    unavailable: BTreeSet<FilePath>,
}

impl Unwritten {
    /// Paths that a capture may unblock.
    pub(crate) fn to_capture(&self) -> BTreeSet<FilePath> {
        self.edited.iter().chain(self.blocked.keys()).cloned().collect()
    }

    fn reason(&self, path: &FilePath) -> Option<PendingReason> {
        if self.unavailable.contains(path) {
            return Some(PendingReason::Unavailable);
        }
        if self.edited.contains(path) {
            return Some(PendingReason::Blocked("it is being edited".into()));
        }
        self.blocked.get(path).cloned().map(PendingReason::Blocked)
    }
}

/// One path that has to change.
struct Step {
    path: FilePath,
    old: Option<CacheEntry>,
    new: Option<FileNode>,
}

/// A batch that is being written to the disk.
pub(crate) struct Materialize<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) views: &'a Views,
    pub(crate) log: &'a dyn EventLog,
    pub(crate) progress: Progress<'a>,
    pub(crate) desired: &'a Desired,
    /// The position of the disk after the batch; none for pending writes.
    pub(crate) through: Option<Head>,
}

impl Materialize<'_> {
    /// Brings the disk to the desired state and advances the position.
    pub(crate) fn run(&self, when_blocked: WhenBlocked) -> Result<Unwritten, ProjectError> {
        let ledger = Ledger::new(self.views);
        let mut unwritten = Unwritten::default();
        let mut records = Vec::new();
        let steps = self.steps(&ledger, &mut unwritten, &mut records)?;
        if when_blocked == WhenBlocked::Retry && !unwritten.edited.is_empty() {
            return Ok(unwritten);
        }
        if !steps.is_empty() {
            self.views.durable_transaction(|| {
                steps.iter().try_for_each(|step| {
                    let old = step.old.as_ref().map(|entry| &entry.node);
                    Ok::<_, ProjectError>(ledger.intend(&step.path, old, step.new.as_ref())?)
                })
            })?;
            self.write(&ledger, steps, &mut unwritten, &mut records)?;
        }
        let done = when_blocked == WhenBlocked::Postpone || unwritten.to_capture().is_empty();
        self.views.transaction(|| {
            for (path, entry) in &records {
                ledger.record(path, entry.as_ref())?;
            }
            ledger.clear_intents()?;
            if done {
                self.advance(&ledger, &unwritten)?;
            }
            Ok::<_, ProjectError>(())
        })?;
        Ok(unwritten)
    }

    /// Compares the wanted nodes with the ledger and the disk. A node that is on disk already only has to be recorded.
    fn steps(
        &self,
        ledger: &Ledger<'_>,
        unwritten: &mut Unwritten,
        records: &mut Vec<(FilePath, Option<CacheEntry>)>,
    ) -> Result<Vec<Step>, ProjectError> {
        let mut steps = Vec::new();
        for (path, wanted) in self.desired {
            let known = ledger.get(path)?;
            let found = match read_node(self.workspace, path, known.as_ref()) {
                Ok(found) => found,
                Err(e) => {
                    unwritten.blocked.insert(path.clone(), e.to_string());
                    continue;
                }
            };
            let is = found.as_ref().map(|entry| &entry.node);
            let was = known.as_ref().map(|entry| &entry.node);
            if is == wanted.as_ref() {
                if found != known {
                    records.push((path.clone(), found));
                }
            } else if wanted.is_none() && was.is_none() {
                // The node on disk is not the projector's: a capture will find it, or the rules ignore it.
            } else if is == was || is_implied_folder(is, was) {
                if self.through.is_none() && self.is_unavailable(wanted.as_ref())? {
                    unwritten.unavailable.insert(path.clone());
                } else {
                    steps.push(Step { path: path.clone(), old: found, new: wanted.clone() });
                }
            } else {
                unwritten.edited.insert(path.clone());
            }
        }
        Ok(steps)
    }

    /// Pending writes without their bytes are not started again and again.
    fn is_unavailable(&self, wanted: Option<&FileNode>) -> Result<bool, ProjectError> {
        match wanted.and_then(FileNode::content) {
            Some(content) => Ok(!self.log.has_content(&content.hash)?),
            None => Ok(false),
        }
    }

    fn advance(&self, ledger: &Ledger<'_>, unwritten: &Unwritten) -> Result<(), ProjectError> {
        let has_pending = ledger.has_pending()?;
        for (path, wanted) in self.desired {
            match unwritten.reason(path) {
                Some(reason) => ledger.add_pending(path, wanted.as_ref(), &reason)?,
                None if has_pending => ledger.remove_pending(path)?,
                None => {}
            }
        }
        match self.through {
            Some(through) => Ok(self.views.set_position(Position::Disk, through)?),
            None => Ok(()),
        }
    }
}

/// A folder on disk that is not in the ledger exists only because of the files in it.
fn is_implied_folder(is: Option<&FileNode>, was: Option<&FileNode>) -> bool {
    is == Some(&FileNode::Folder) && was.is_none()
}
