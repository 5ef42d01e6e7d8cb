//! Writing the steps of a batch to the disk.

use std::io::Read;

use event_log::ContentError;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use super::{Materialize, Step, Unwritten};
use crate::error::ProjectError;
use crate::identify::now_ns;
use crate::ledger::Ledger;
use crate::progress::ProgressPhase;
use crate::scan::CacheEntry;
use crate::workspace::{DiskError, Expected};

/// Why one step failed.
enum StepError {
    /// The path was changed a moment ago.
    Edited,
    Blocked(DiskError),
    /// The bytes are missing.
    Unavailable,
    /// Nothing can be written now.
    Fatal(ProjectError),
}

impl From<DiskError> for StepError {
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

impl From<ContentError> for StepError {
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
    /// Removes, then places, then syncs. A path that fails alone is reported in `unwritten`; an error that concerns the
    /// whole disk is returned, and the open intents tell the next call which paths were affected.
    pub(super) fn write(
        &self,
        ledger: &Ledger<'_>,
        steps: Vec<Step>,
        unwritten: &mut Unwritten,
        records: &mut Vec<(FilePath, Option<CacheEntry>)>,
    ) -> Result<(), ProjectError> {
        let total = steps.len() as u64;
        let (mut done, often) = (0, (total / 100).max(1));
        let mut report = || {
            if done % often == 0 {
                (self.progress)(ProgressPhase::Writing, done, total);
            }
            done += 1;
        };
        let (places, removals): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.new.is_some());
        // Deepest paths first, so that a folder is empty when it is removed.
        for step in removals.into_iter().rev().chain(places) {
            report();
            let outcome = match &step.new {
                None => self.remove(ledger, &step).map(|()| None),
                Some(node) => self.place(&step, node).map(Some),
            };
            match outcome {
                Ok(entry) => records.push((step.path, entry)),
                Err(StepError::Edited) => drop(unwritten.edited.insert(step.path)),
                Err(StepError::Unavailable) => drop(unwritten.unavailable.insert(step.path)),
                Err(StepError::Blocked(e)) => drop(unwritten.blocked.insert(step.path, e.to_string())),
                Err(StepError::Fatal(e)) => return Err(e),
            }
        }
        (self.progress)(ProgressPhase::Syncing, 0, 1);
        self.workspace.sync()?;
        (self.progress)(ProgressPhase::Syncing, 1, 1);
        Ok(())
    }

    fn remove(&self, ledger: &Ledger<'_>, step: &Step) -> Result<(), StepError> {
        match self.workspace.remove(&step.path, expected(step)) {
            Ok(()) => {}
            // A folder that is not empty, or a path that cannot exist: nothing to remove.
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

    fn place(&self, step: &Step, node: &FileNode) -> Result<CacheEntry, StepError> {
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
