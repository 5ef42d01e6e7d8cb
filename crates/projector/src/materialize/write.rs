//! The steps of a batch, on the disk.

use std::io::Read;

use event_log::ContentError;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use super::{Left, Materialize, Step};
use crate::error::ProjectError;
use crate::identify::now_ns;
use crate::ledger::Ledger;
use crate::projector::Phase;
use crate::scan::CacheEntry;
use crate::workspace::{DiskError, Expected};

/// Why one step did not happen.
enum Failure {
    /// Somebody changed the path a moment ago.
    Edited,
    Blocked(DiskError),
    /// The bytes are not there.
    Unavailable,
    /// Nothing can be written at the moment.
    Fatal(ProjectError),
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Changed { .. } => Self::Edited,
            DiskError::Content { source, .. } => ContentError::from_read(source).into(),
            DiskError::NoContent { .. } | DiskError::WrongSize { .. } => Self::Unavailable,
            DiskError::Full { .. }
            | DiskError::ReadOnly { .. }
            | DiskError::Scratch { .. }
            | DiskError::Sync { .. } => Self::Fatal(error.into()),
            DiskError::LinkInPath { .. }
            | DiskError::NotAFolder { .. }
            | DiskError::NotAFile { .. }
            | DiskError::Missing { .. }
            | DiskError::FolderInTheWay { .. }
            | DiskError::LinkLeaves { .. }
            | DiskError::Busy { .. }
            | DiskError::Denied { .. }
            | DiskError::OtherFileSystem { .. }
            | DiskError::Io { .. } => Self::Blocked(error),
        }
    }
}

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Self {
        match error {
            ContentError::Missing(_) | ContentError::Purged(_) | ContentError::Damaged(_) => {
                Self::Unavailable
            }
            ContentError::Storage(_) => Self::Fatal(error.into()),
        }
    }
}

impl Materialize<'_> {
    /// Removes, then places, then syncs. What fails by itself is left; what makes the rest hopeless is an error, and
    /// the open intents tell the next call what happened.
    pub(super) fn write(
        &self,
        ledger: &Ledger<'_>,
        steps: Vec<Step>,
        left: &mut Left,
        records: &mut Vec<(FilePath, Option<CacheEntry>)>,
    ) -> Result<(), ProjectError> {
        let total = steps.len() as u64;
        let (mut done, often) = (0, (total / 100).max(1));
        let mut tell = || {
            if done % often == 0 {
                (self.progress)(Phase::Writing, done, total);
            }
            done += 1;
        };
        let (places, removals): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.new.is_some());
        // What is deepest goes first, so that a folder is empty when its turn comes.
        for step in removals.into_iter().rev().chain(places) {
            tell();
            let outcome = match &step.new {
                None => self.remove(ledger, &step).map(|()| None),
                Some(node) => self.place(&step, node).map(Some),
            };
            match outcome {
                Ok(entry) => records.push((step.path, entry)),
                Err(Failure::Edited) => drop(left.edited.insert(step.path)),
                Err(Failure::Unavailable) => drop(left.unavailable.insert(step.path)),
                Err(Failure::Blocked(e)) => drop(left.blocked.insert(step.path, e.to_string())),
                Err(Failure::Fatal(e)) => return Err(e),
            }
        }
        (self.progress)(Phase::Syncing, 0, 1);
        self.workspace.sync()?;
        (self.progress)(Phase::Syncing, 1, 1);
        Ok(())
    }

    fn remove(&self, ledger: &Ledger<'_>, step: &Step) -> Result<(), Failure> {
        match self.workspace.remove(&step.path, expected(step)) {
            Ok(()) => {}
            // A folder of its own that still has something in it, or a path that cannot be: nothing to remove.
            Err(DiskError::FolderInTheWay { .. }) => return Ok(()),
            Err(e) if e.is_absence() => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        let keeps = |folder: &FilePath| match self.desired.get(folder) {
            Some(wanted) => wanted.is_some(),
            None => matches!(ledger.has(folder), Ok(true)),
        };
        // An empty folder that stays does no harm.
        let _ = self.workspace.prune(&step.path, &keeps);
        Ok(())
    }

    fn place(&self, step: &Step, node: &FileNode) -> Result<CacheEntry, Failure> {
        let mut content: Option<Box<dyn Read + Send>> = match node.content() {
            Some(content) => Some(self.log.content(&content.hash)?),
            None => None,
        };
        let reader = content.as_mut().map(|reader| reader as &mut dyn Read);
        let checked_at_ns = now_ns();
        let seen = self.workspace.place(&step.path, node, reader, expected(step))?;
        Ok(CacheEntry { node: node.clone(), stat: seen.stat, checked_at_ns })
    }
}

fn expected(step: &Step) -> Expected {
    step.old.as_ref().map_or(Expected::Nothing, |entry| Expected::Seen(entry.stat))
}
