//! From desired nodes to files on disk, a batch at a time: check, intend, write, one `syncfs`, advance.
//!
//! Before a path is written, the disk must still hold what was put there last. If it does not, somebody edited it
//! outside: it is not written, and the caller captures that edit first. A path that cannot be written does not hold
//! up the others; in the end it is owed.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use event_log::{EventLog, Head};
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::error::ProjectError;
use crate::identify::look;
use crate::ledger::{Ledger, Reason};
use crate::projector::Progress;
use crate::scan::CacheEntry;
use crate::views::{Position, Views};
use crate::workspace::Workspace;

/// What should stand at some paths.
pub(crate) type Desired = BTreeMap<FilePath, Option<FileNode>>;

/// What happens to a batch in which something is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The position stays: the caller captures what is in the way and tries again.
    Wait,
    /// The position goes on, and what is in the way is owed.
    Postpone,
}

/// What a batch could not do.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Edited outside, so not touched.
    pub(crate) edited: BTreeSet<FilePath>,
    /// Something that is not the projector's stands in the way, or the disk refuses; in words.
    blocked: BTreeMap<FilePath, String>,
    unavailable: BTreeSet<FilePath>,
}

impl Left {
    /// Paths that a capture may clear.
    pub(crate) fn in_the_way(&self) -> BTreeSet<FilePath> {
        self.edited.iter().chain(self.blocked.keys()).cloned().collect()
    }

    fn reason(&self, path: &FilePath) -> Option<Reason> {
        if self.unavailable.contains(path) {
            return Some(Reason::Unavailable);
        }
        if self.edited.contains(path) {
            return Some(Reason::Blocked("it is being edited".into()));
        }
        self.blocked.get(path).cloned().map(Reason::Blocked)
    }
}

/// One path that has to change.
struct Step {
    path: FilePath,
    old: Option<CacheEntry>,
    new: Option<FileNode>,
}

/// A batch on its way to the disk.
pub(crate) struct Materialize<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) views: &'a Views,
    pub(crate) log: &'a dyn EventLog,
    pub(crate) progress: Progress<'a>,
    pub(crate) desired: &'a Desired,
    /// Where the disk is when all of it is there; none for what is owed.
    pub(crate) through: Option<Head>,
}

impl Materialize<'_> {
    /// Brings the disk to the desired state and advances the position.
    pub(crate) fn run(&self, patience: Patience) -> Result<Left, ProjectError> {
        let ledger = Ledger::new(self.views);
        let mut left = Left::default();
        let mut records = Vec::new();
        let steps = self.steps(&ledger, &mut left, &mut records)?;
        if patience == Patience::Wait && !left.edited.is_empty() {
            return Ok(left);
        }
        if !steps.is_empty() {
            self.views.durable_transaction(|| {
                steps.iter().try_for_each(|step| {
                    let old = step.old.as_ref().map(|entry| &entry.node);
                    Ok::<_, ProjectError>(ledger.intend(&step.path, old, step.new.as_ref())?)
                })
            })?;
            self.write(&ledger, steps, &mut left, &mut records)?;
        }
        let done = patience == Patience::Postpone || left.in_the_way().is_empty();
        self.views.transaction(|| {
            for (path, entry) in &records {
                ledger.record(path, entry.as_ref())?;
            }
            ledger.clear_intents()?;
            if done {
                self.advance(&ledger, &left)?;
            }
            Ok::<_, ProjectError>(())
        })?;
        Ok(left)
    }

    /// Compares what is wanted with the ledger and the disk. What is there already only has to be recorded.
    fn steps(
        &self,
        ledger: &Ledger<'_>,
        left: &mut Left,
        records: &mut Vec<(FilePath, Option<CacheEntry>)>,
    ) -> Result<Vec<Step>, ProjectError> {
        let mut steps = Vec::new();
        for (path, wanted) in self.desired {
            let known = ledger.get(path)?;
            let found = match look(self.workspace, path, known.as_ref()) {
                Ok(found) => found,
                Err(e) => {
                    left.blocked.insert(path.clone(), e.to_string());
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
                // What stands there is not the projector's: a capture will find it, or the rules ignore it.
            } else if is == was || is_implied_folder(is, was) {
                if self.through.is_none() && self.is_unavailable(wanted.as_ref())? {
                    left.unavailable.insert(path.clone());
                } else {
                    steps.push(Step { path: path.clone(), old: found, new: wanted.clone() });
                }
            } else {
                left.edited.insert(path.clone());
            }
        }
        Ok(steps)
    }

    /// What is owed for want of its bytes is not begun again and again.
    fn is_unavailable(&self, wanted: Option<&FileNode>) -> Result<bool, ProjectError> {
        match wanted.and_then(FileNode::content) {
            Some(content) => Ok(!self.log.has_content(&content.hash)?),
            None => Ok(false),
        }
    }

    fn advance(&self, ledger: &Ledger<'_>, left: &Left) -> Result<(), ProjectError> {
        let owes = ledger.owes()?;
        for (path, wanted) in self.desired {
            match left.reason(path) {
                Some(reason) => ledger.owe(path, wanted.as_ref(), &reason)?,
                None if owes => ledger.pay(path)?,
                None => {}
            }
        }
        match self.through {
            Some(through) => Ok(self.views.set_position(Position::Disk, through)?),
            None => Ok(()),
        }
    }
}

/// A folder on disk that the ledger does not list is only there because of what is in it.
fn is_implied_folder(is: Option<&FileNode>, was: Option<&FileNode>) -> bool {
    is == Some(&FileNode::Folder) && was.is_none()
}
