//! Outside edits become events: the disk is compared with the ledger, and all differences are submitted as one
//! operation of the person. An outside edit is never overwritten before it is recorded.

mod gather;
mod own;
mod submit;

use std::collections::BTreeSet;

use event_log::EventLog;
use event_log::writer::Writer;
use shared_types::payload::file::FileNode;
use shared_types::{CommandId, FilePath, OpId};

use crate::error::ProjectError;
use crate::identify::identify;
use crate::ledger::{Known, Ledger};
use crate::scan::{CacheEntry, Scan, SkipReason, UnfinishedScan};
use crate::views::Views;
use crate::workspace::{Observed, ObservedKind, Workspace};
use gather::GatheredContents;

/// How often a file is read again that changes while it is read.
const ATTEMPTS: usize = 3;

/// The paths to compare.
#[derive(Debug, Clone)]
pub enum Extent {
    Everything,
    Paths(BTreeSet<FilePath>),
}

/// Ids for one capture, minted by the caller.
#[derive(Debug, Clone, Copy)]
pub struct CaptureIds {
    pub command: CommandId,
    pub op: OpId,
}

/// The result of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The number of paths whose content, kind or mode differed from the ledger.
    pub edits: usize,
    /// The operation that recorded them, unless the log held them already.
    pub op: Option<OpId>,
    pub skipped: Vec<(String, SkipReason)>,
}

pub(crate) struct Capture<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) views: &'a Views,
    pub(crate) log: &'a dyn EventLog,
    pub(crate) writer: &'a Writer,
    pub(crate) progress: &'a dyn Fn(u64, u64),
}

/// One difference between the disk and the ledger.
struct Difference {
    path: FilePath,
    base: Option<FileNode>,
    now: Option<CacheEntry>,
}

impl Difference {
    fn node(&self) -> Option<&FileNode> {
        self.now.as_ref().map(|entry| &entry.node)
    }

    /// False if only the stat is new and has to be recorded in the ledger.
    fn is_edit(&self) -> bool {
        self.base.as_ref() != self.node()
    }
}

/// The result of reading a path.
enum ReadOutcome {
    Is(CacheEntry),
    Gone,
    /// It keeps changing, or this user may not read it. The next capture tries again.
    Unreadable,
}

impl Capture<'_> {
    /// Compares the disk with the ledger and records the differences. Paths in `wanted` are never ignored: the
    /// projector is about to write there.
    pub(crate) fn run(
        &self,
        extent: &Extent,
        wanted: &BTreeSet<FilePath>,
        ids: CaptureIds,
    ) -> Result<Captured, ProjectError> {
        let ledger = Ledger::new(self.views);
        let unfinished = match extent {
            Extent::Everything => UnfinishedScan::everywhere(self.workspace)?,
            Extent::Paths(paths) => UnfinishedScan::at(self.workspace, paths)?,
        };
        let known = ledger.known(unfinished.scope())?;
        let mut scan = unfinished.finish(known.paths().chain(wanted));
        let mut gathered = GatheredContents::default();
        let mut found = self.differences(&mut scan, &known, &mut gathered)?;
        self.skip_projected(&mut found)?;
        let submitted = self.submit(&found, gathered, ids)?;
        if !found.is_empty() {
            self.views.transaction(|| {
                found.iter().try_for_each(|f| Ok::<_, ProjectError>(ledger.record(&f.path, f.now.as_ref())?))
            })?;
        }
        let edits = found.iter().filter(|f| f.is_edit()).count();
        Ok(Captured { edits, op: submitted.then_some(ids.op), skipped: scan.skipped })
    }

    fn differences(
        &self,
        scan: &mut Scan,
        known: &Known,
        gathered: &mut GatheredContents,
    ) -> Result<Vec<Difference>, ProjectError> {
        let mut found = Vec::new();
        let total = scan.entries.len() as u64;
        for (index, (path, seen)) in scan.entries.iter().enumerate() {
            if index % 256 == 0 {
                (self.progress)(index as u64, total);
            }
            if known.is_trusted(path, &seen.stat) {
                continue;
            }
            let before = known.get(path);
            match self.take(path, seen, before.as_ref(), gathered)? {
                ReadOutcome::Is(now) => {
                    found.push(Difference {
                        path: path.clone(),
                        base: before.map(|e| e.node),
                        now: Some(now),
                    });
                }
                ReadOutcome::Gone => {}
                ReadOutcome::Unreadable => scan.skipped.push((path.to_string(), SkipReason::Unreadable)),
            }
        }
        for path in known.paths().filter(|path| scan.covers(path) && scan.get(path).is_none()) {
            let Some(entry) = known.get(path).filter(|entry| !self.is_held_folder(path, entry)) else {
                continue;
            };
            found.push(Difference { path: path.clone(), base: Some(entry.node), now: None });
        }
        Ok(found)
    }

    /// A scan lists only empty folders, so a recorded folder that is not empty now still exists.
    fn is_held_folder(&self, path: &FilePath, entry: &CacheEntry) -> bool {
        entry.node == FileNode::Folder
            && matches!(self.workspace.observe(path), Ok(Some(Observed { kind: ObservedKind::Folder, .. })))
    }

    /// Reads a file that differs and stages its content in the log. A file with only a new stat is read and not staged.
    fn take(
        &self,
        path: &FilePath,
        seen: &Observed,
        before: Option<&CacheEntry>,
        gathered: &mut GatheredContents,
    ) -> Result<ReadOutcome, ProjectError> {
        for _ in 0..ATTEMPTS {
            let entry = match identify(self.workspace, path, seen, before) {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(ReadOutcome::Gone),
                Err(_) => return Ok(ReadOutcome::Unreadable),
            };
            let content = match entry.node.content() {
                Some(content) if before.is_none_or(|b| b.node != entry.node) => content,
                Some(_) | None => return Ok(ReadOutcome::Is(entry)),
            };
            if gathered.has(&content.hash) || self.log.has_content(&content.hash)? {
                return Ok(ReadOutcome::Is(entry));
            }
            let Ok(mut file) = self.workspace.open_file(path) else { return Ok(ReadOutcome::Unreadable) };
            let staged = self.log.stage(&mut file)?;
            // Only a content that existed as a whole is recorded: a file that changed between the two reads is read
            // again.
            if staged.content() == content {
                gathered.add(self.log, staged)?;
                return Ok(ReadOutcome::Is(entry));
            }
        }
        Ok(ReadOutcome::Unreadable)
    }
}
