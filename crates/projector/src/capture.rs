//! Outside edits become events: what the disk holds is compared with the ledger, and all that differs is submitted
//! as one operation of the person's. Nothing that was edited outside is ever overwritten unseen.

use std::collections::{BTreeSet, HashMap};

use event_log::writer::{Intent, Mode, Submission, Writer};
use event_log::{EventLog, Staged};
use kernel::Action;
use kernel::command::OutsideEdit;
use shared_types::payload::file::FileNode;
use shared_types::{Actor, CommandId, ContentHash, FilePath, OpId, Source};

use crate::error::ProjectError;
use crate::identify::{identify, now_ns};
use crate::ledger::Ledger;
use crate::scan::{CacheEntry, Scan, SkipReason, is_trusted, scan, scan_paths};
use crate::views::Views;
use crate::workspace::{Kind, Observed, Workspace};

/// Small contents are handed to the log whenever this much has gathered, so that memory stays bounded.
const FLUSH_AT: usize = 8 * 1024 * 1024;

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
    /// False if only the stat is new and the ledger has to learn it.
    fn is_edit(&self) -> bool {
        self.base.as_ref() != self.now.as_ref().map(|entry| &entry.node)
    }
}

impl Capture<'_> {
    /// Compares the disk with the ledger and records what differs.
    pub(crate) fn run(&self, extent: &Extent, ids: CaptureIds) -> Result<Captured, ProjectError> {
        let ledger = Ledger::new(self.views);
        let known = ledger.all()?;
        let scan = match extent {
            Extent::Everything => scan(self.workspace, known.keys())?,
            Extent::Paths(paths) => scan_paths(self.workspace, paths, known.keys())?,
        };
        let mut gathered = Gathered::default();
        let found = self.differences(&scan, &known, &mut gathered)?;
        let submitted = self.submit(&found, gathered, ids)?;
        self.views.transaction(|| {
            found.iter().try_for_each(|f| Ok::<_, ProjectError>(ledger.record(&f.path, f.now.as_ref())?))
        })?;
        let edits = found.iter().filter(|f| f.is_edit()).count();
        Ok(Captured { edits, op: submitted.then_some(ids.op), skipped: scan.skipped })
    }

    fn differences(
        &self,
        scan: &Scan,
        known: &HashMap<FilePath, CacheEntry>,
        gathered: &mut Gathered,
    ) -> Result<Vec<Found>, ProjectError> {
        let mut found = Vec::new();
        let total = scan.entries.len() as u64;
        for (index, (path, seen)) in scan.entries.iter().enumerate() {
            if index % 256 == 0 {
                (self.progress)(index as u64, total);
            }
            let before = known.get(path);
            if before.is_some_and(|entry| is_trusted(entry, &seen.stat)) {
                continue;
            }
            let Some(now) = self.take(path, seen, before, gathered)? else { continue };
            found.push(Found { path: path.clone(), base: before.map(|e| e.node.clone()), now: Some(now) });
        }
        for (path, entry) in known {
            if scan.covers(path) && scan.get(path).is_none() && !self.is_held_folder(path, entry) {
                found.push(Found { path: path.clone(), base: Some(entry.node.clone()), now: None });
            }
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
    ) -> Result<Option<CacheEntry>, ProjectError> {
        let Some(entry) = identify(self.workspace, path, seen, before)? else { return Ok(None) };
        if before.is_some_and(|b| b.node == entry.node) {
            return Ok(Some(entry));
        }
        let Some(content) = entry.node.content() else { return Ok(Some(entry)) };
        if self.log.has_content(&content.hash)? || gathered.has(&content.hash) {
            return Ok(Some(entry));
        }
        let mut file = self.workspace.open_file(path)?;
        let checked_at_ns = now_ns();
        let staged = self.log.stage(&mut file)?;
        let FileNode::File { mode, .. } = entry.node else { return Ok(Some(entry)) };
        let node = FileNode::file(staged.content(), mode);
        gathered.add(self.log, staged)?;
        // What was staged is what is recorded, even if the file was changed between the two readings; its stat then
        // does not fit and the next scan reads it again.
        Ok(Some(CacheEntry { node, stat: entry.stat, checked_at_ns: entry.checked_at_ns.min(checked_at_ns) }))
    }

    /// True if there was something to record.
    fn submit(&self, found: &[Found], gathered: Gathered, ids: CaptureIds) -> Result<bool, ProjectError> {
        let edits: Vec<OutsideEdit> = found
            .iter()
            .filter(|f| f.is_edit())
            .map(|f| OutsideEdit {
                path: f.path.clone(),
                base: f.base.clone(),
                now: f.now.as_ref().map(|entry| entry.node.clone()),
            })
            .collect();
        if edits.is_empty() {
            return Ok(false);
        }
        let submission = Submission {
            command: ids.command,
            op: ids.op,
            source: Source::User,
            actor: Actor::CAPTURE,
            run_id: None,
            cause: None,
            taint: Vec::new(),
            intent: Intent::Do(Action::CaptureEdits { edits }),
            contents: gathered.contents,
        };
        let outcome = self.writer.submit(submission, Mode::Commit)?;
        Ok(outcome.appended.is_some())
    }
}

/// Small contents on their way.
#[derive(Default)]
struct Gathered {
    contents: Vec<(ContentHash, Vec<u8>)>,
    hashes: BTreeSet<ContentHash>,
    bytes: usize,
}

impl Gathered {
    fn has(&self, hash: &ContentHash) -> bool {
        self.hashes.contains(hash)
    }

    fn add(&mut self, log: &dyn EventLog, staged: Staged) -> Result<(), ProjectError> {
        let Some((hash, bytes)) = staged.into_inline() else { return Ok(()) };
        self.bytes += bytes.len();
        if self.hashes.insert(hash) {
            self.contents.push((hash, bytes));
        }
        if self.bytes > FLUSH_AT {
            log.store(std::mem::take(&mut self.contents))?;
            self.bytes = 0;
            self.hashes.clear();
        }
        Ok(())
    }
}
