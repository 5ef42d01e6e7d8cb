//! Outside edits become events: what the disk holds is compared with the ledger, and all that differs is submitted
//! as one operation of the person's. Nothing that was edited outside is ever overwritten unseen.

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
use crate::scan::{CacheEntry, Looked, Scan, SkipReason};
use crate::views::Views;
use crate::workspace::{Kind, Observed, Workspace};
use gather::Gathered;

/// How often a file that changes under the reader is read again.
const ATTEMPTS: usize = 3;

/// What to look at.
#[derive(Debug, Clone)]
pub enum Extent {
    Everything,
    Paths(BTreeSet<FilePath>),
}

/// Ids for one capture, minted by whoever has a clock and randomness.
#[derive(Debug, Clone, Copy)]
pub struct CaptureIds {
    pub command: CommandId,
    pub op: OpId,
}

/// What a capture found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Paths whose content, kind or mode differed from what was put there last.
    pub edits: usize,
    /// The operation that records them, if the log did not hold them already.
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
struct Found {
    path: FilePath,
    base: Option<FileNode>,
    now: Option<CacheEntry>,
}

impl Found {
    fn node(&self) -> Option<&FileNode> {
        self.now.as_ref().map(|entry| &entry.node)
    }

    /// False if only the stat is new and the ledger has to learn it.
    fn is_edit(&self) -> bool {
        self.base.as_ref() != self.node()
    }
}

/// What reading a path came to.
enum Taken {
    Is(CacheEntry),
    Gone,
    /// It does not come to rest, or this user may not read it. It is looked at again the next time.
    Unreadable,
}

impl Capture<'_> {
    /// Compares the disk with the ledger and records what differs. Paths in `wanted` are never ignored: the log is
    /// about to write there.
    pub(crate) fn run(
        &self,
        extent: &Extent,
        wanted: &BTreeSet<FilePath>,
        ids: CaptureIds,
    ) -> Result<Captured, ProjectError> {
        let ledger = Ledger::new(self.views);
        let looked = match extent {
            Extent::Everything => Looked::everywhere(self.workspace)?,
            Extent::Paths(paths) => Looked::at(self.workspace, paths)?,
        };
        let known = ledger.known(looked.scope())?;
        let mut scan = looked.finish(known.paths().chain(wanted));
        let mut gathered = Gathered::default();
        let mut found = self.differences(&mut scan, &known, &mut gathered)?;
        self.recognise_own(&mut found)?;
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
        gathered: &mut Gathered,
    ) -> Result<Vec<Found>, ProjectError> {
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
                Taken::Is(now) => {
                    found.push(Found { path: path.clone(), base: before.map(|e| e.node), now: Some(now) });
                }
                Taken::Gone => {}
                Taken::Unreadable => scan.skipped.push((path.to_string(), SkipReason::Unreadable)),
            }
        }
        for path in known.paths().filter(|path| scan.covers(path) && scan.get(path).is_none()) {
            let Some(entry) = known.get(path).filter(|entry| !self.is_held_folder(path, entry)) else {
                continue;
            };
            found.push(Found { path: path.clone(), base: Some(entry.node), now: None });
        }
        Ok(found)
    }

    /// A folder of its own that has something in it now is not listed by a scan, and is still there.
    fn is_held_folder(&self, path: &FilePath, entry: &CacheEntry) -> bool {
        entry.node == FileNode::Folder
            && matches!(self.workspace.observe(path), Ok(Some(Observed { kind: Kind::Folder, .. })))
    }

    /// Reads what differs into the log's store. A file that only looks new costs its reading and nothing else.
    fn take(
        &self,
        path: &FilePath,
        seen: &Observed,
        before: Option<&CacheEntry>,
        gathered: &mut Gathered,
    ) -> Result<Taken, ProjectError> {
        for _ in 0..ATTEMPTS {
            let entry = match identify(self.workspace, path, seen, before) {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(Taken::Gone),
                Err(_) => return Ok(Taken::Unreadable),
            };
            let content = match entry.node.content() {
                Some(content) if before.is_none_or(|b| b.node != entry.node) => content,
                Some(_) | None => return Ok(Taken::Is(entry)),
            };
            if gathered.has(&content.hash) || self.log.has_content(&content.hash)? {
                return Ok(Taken::Is(entry));
            }
            let Ok(mut file) = self.workspace.open_file(path) else { return Ok(Taken::Unreadable) };
            let staged = self.log.stage(&mut file)?;
            // What is recorded was there as a whole: a file that changed between the two readings is read again.
            if staged.content() == content {
                gathered.add(self.log, staged)?;
                return Ok(Taken::Is(entry));
            }
        }
        Ok(Taken::Unreadable)
    }
}
