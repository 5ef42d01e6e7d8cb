//! The projector of one computer: it follows the log into the read models and onto the disk, and carries outside
//! edits back. One thread owns it; an append never waits for it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use event_log::writer::Writer;
use event_log::{EventLog, Head};
use kernel::touched_files;
use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemEvent;
use shared_types::{Event, FilePath, Payload, Seq};

use crate::capture::{Capture, CaptureIds, Captured, Extent};
use crate::error::ProjectError;
use crate::history::{Of, head_at, holds, read_batch};
use crate::ledger::{Ledger, Owed, Reason};
use crate::materialize::{Desired, Left, Materialize, Patience};
use crate::recover::{Stop, recover};
use crate::views::{Position, Views};
use crate::workspace::Workspace;
use crate::{reconcile, rows};

/// How often outside edits may get in the way of one batch before it goes on without them, and how often one call
/// follows what its own captures added.
const ATTEMPTS: usize = 3;
/// Paths that are owed and tried together at most.
const OWED_BATCH: usize = 10_000;

/// What the projector is doing, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Comparing the workspace with what is known of it.
    Scanning,
    /// Bringing the read models up to date.
    Indexing,
    /// Writing files.
    Writing,
    /// Making them durable.
    Syncing,
}

/// How far the projector is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    pub head: Seq,
    pub rows: Seq,
    pub disk: Seq,
}

impl Lag {
    /// Events that are in the log and not everywhere else.
    pub fn events(&self) -> u64 {
        self.head.0.saturating_sub(self.rows.0.min(self.disk.0))
    }
}

/// What a run of the projector could not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// Files whose bytes were purged or are damaged, so that they could not be written.
    pub unavailable: Vec<FilePath>,
    /// Paths where something stands in the way, with what it is. They are tried again every time.
    pub blocked: Vec<(FilePath, String)>,
    /// Outside edits that were found on the way and are in the log now.
    pub captured: usize,
}

/// Mints the ids of a capture.
pub type Mint = Box<dyn Fn() -> CaptureIds + Send>;
/// Told how far a phase is: done and total.
pub type Progress<'a> = &'a (dyn Fn(Phase, u64, u64) + 'a);

/// The projector.
pub struct Projector {
    log: Arc<dyn EventLog>,
    writer: Writer,
    views: Views,
    workspace: Workspace,
    mint: Mint,
}

impl std::fmt::Debug for Projector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Projector").field("views", &self.views).finish_non_exhaustive()
    }
}

impl Projector {
    /// Opens the read models in `state` (a `.choir` folder) and the workspace, and settles what an unclean stop left.
    pub fn open(
        log: Arc<dyn EventLog>,
        writer: Writer,
        state: &Path,
        workspace: &Path,
        mint: Mint,
    ) -> Result<Self, ProjectError> {
        let views = Views::open(state)?;
        let workspace = Workspace::open(workspace, &state.join("tmp"))?;
        let projector = Self { log, writer, views, workspace, mint };
        projector.healing(|| projector.settle())?;
        Ok(projector)
    }

    fn settle(&self) -> Result<(), ProjectError> {
        // A position that the log does not have belongs to another history, as after a backup was put back.
        let is_strange =
            |of| Ok::<_, ProjectError>(self.views.position(of)?.is_some_and(|at| !holds(&*self.log, at)));
        if is_strange(Position::Rows)? {
            self.views.reset_rows()?;
        }
        if is_strange(Position::Disk)? {
            self.views.reset_disk()?;
        }
        self.workspace.clean_scratch()?;
        recover(&self.workspace, &self.views, &*self.log, Stop::Unclean)
    }

    /// Read models are disposable: where they turn out to be damaged, they start from nothing and the work again.
    fn healing<T>(&self, work: impl Fn() -> Result<T, ProjectError>) -> Result<T, ProjectError> {
        match work() {
            Err(ProjectError::Views(e)) if e.is_damage() => {
                self.views.start_anew()?;
                work()
            }
            done => done,
        }
    }

    pub fn views(&self) -> &Views {
        &self.views
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub fn lag(&self) -> Result<Lag, ProjectError> {
        let seq = |of| Ok::<_, ProjectError>(self.views.position(of)?.unwrap_or_default().seq);
        Ok(Lag { head: self.log.head().seq, rows: seq(Position::Rows)?, disk: seq(Position::Disk)? })
    }

    /// Records outside edits as one operation.
    pub fn capture(&self, extent: &Extent, progress: Progress<'_>) -> Result<Captured, ProjectError> {
        self.healing(|| self.capture_once(extent, &BTreeSet::new(), progress))
    }

    fn capture_once(
        &self,
        extent: &Extent,
        wanted: &BTreeSet<FilePath>,
        progress: Progress<'_>,
    ) -> Result<Captured, ProjectError> {
        self.know_the_disk(progress)?;
        let scanning = |done, total| progress(Phase::Scanning, done, total);
        let capture = Capture {
            workspace: &self.workspace,
            views: &self.views,
            log: &*self.log,
            writer: &self.writer,
            progress: &scanning,
        };
        capture.run(extent, wanted, (self.mint)())
    }

    /// Brings the read models and the disk to what is the newest event now. What others append meanwhile is for the
    /// next call.
    pub fn catch_up(&self, progress: Progress<'_>) -> Result<CaughtUp, ProjectError> {
        self.healing(|| self.catch_up_once(progress))
    }

    fn catch_up_once(&self, progress: Progress<'_>) -> Result<CaughtUp, ProjectError> {
        self.know_the_disk(progress)?;
        let mut captured = 0;
        for _ in 0..ATTEMPTS {
            let before = captured;
            let head = self.log.head().seq;
            self.catch_up_rows(head, progress)?;
            captured += self.catch_up_disk(head, progress)?;
            captured += self.pay_owed(progress)?;
            // A capture on the way appends, so there is something new to follow.
            if captured == before {
                break;
            }
        }
        let mut done = CaughtUp { captured, ..CaughtUp::default() };
        self.each_owed(&mut |batch| {
            for owed in batch {
                match owed.reason {
                    Reason::Unavailable => done.unavailable.push(owed.path),
                    Reason::Blocked(reason) => done.blocked.push((owed.path, reason)),
                }
            }
            Ok(())
        })?;
        Ok(done)
    }

    /// Computes all read models again from the first event.
    pub fn rebuild(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        self.healing(|| {
            self.views.reset_rows()?;
            self.catch_up_rows(self.log.head().seq, progress)
        })
    }

    /// Settles what a failed batch left, and if nothing is known of the disk compares all of it with the present.
    fn know_the_disk(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        if self.views.position(Position::Disk)?.is_some() {
            return recover(&self.workspace, &self.views, &*self.log, Stop::Failure);
        }
        let (seq, files) = self.writer.inspect(|view| {
            let files: Vec<(FilePath, FileNode)> =
                view.files.iter().map(|(path, node)| (path.clone(), node.clone())).collect();
            (view.seq(), files)
        })?;
        let scanning = |done, total| progress(Phase::Scanning, done, total);
        let (at, files) = (head_at(&*self.log, seq)?, files.into_iter().collect());
        reconcile::reconcile(&self.workspace, &self.views, &*self.log, at, files, &scanning)
    }

    fn catch_up_rows(&self, to: Seq, progress: Progress<'_>) -> Result<(), ProjectError> {
        loop {
            let from = self.views.position(Position::Rows)?.unwrap_or_default().seq;
            if from >= to {
                return Ok(());
            }
            let Some(batch) = read_batch(&*self.log, from, Of::All)? else { return Ok(()) };
            self.views.transaction(|| {
                for event in &batch.events {
                    rows::apply(&self.views, &*self.log, event)?;
                }
                Ok::<_, ProjectError>(self.views.set_position(Position::Rows, batch.through)?)
            })?;
            if batch.events.iter().any(is_purge) {
                self.views.checkpoint()?;
            }
            progress(Phase::Indexing, batch.through.seq.0, to.0.max(batch.through.seq.0));
        }
    }

    /// Brings events to the disk. Returns how many outside edits were captured on the way.
    fn catch_up_disk(&self, to: Seq, progress: Progress<'_>) -> Result<usize, ProjectError> {
        let mut captured = 0;
        let mut attempts = 0;
        loop {
            let from = self.views.position(Position::Disk)?.unwrap_or_default().seq;
            if from >= to {
                return Ok(captured);
            }
            // Read again after every capture: what it appended may change what should stand there.
            let Some(batch) = read_batch(&*self.log, from, Of::Files)? else { return Ok(captured) };
            let desired: Desired = touched_files(&batch.events).into_iter().collect();
            attempts += 1;
            let patience = if attempts < ATTEMPTS { Patience::Wait } else { Patience::Postpone };
            let left = self.materialize(&desired, Some(batch.through), patience, progress)?;
            if patience == Patience::Postpone || left.in_the_way().is_empty() {
                attempts = 0;
            } else {
                captured += self.capture_in_the_way(&left, progress)?;
            }
        }
    }

    /// Tries again what could not be put on disk before.
    fn pay_owed(&self, progress: Progress<'_>) -> Result<usize, ProjectError> {
        let mut captured = 0;
        self.each_owed(&mut |batch| {
            let mut desired: Desired = batch.into_iter().map(|owed| (owed.path, owed.node)).collect();
            let left = self.materialize(&desired, None, Patience::Wait, progress)?;
            if left.in_the_way().is_empty() {
                return Ok(());
            }
            captured += self.capture_in_the_way(&left, progress)?;
            // What was edited is in the log now, and the events say what becomes of it.
            desired.retain(|path, _| !left.edited.contains(path));
            self.materialize(&desired, None, Patience::Postpone, progress).map(drop)
        })?;
        Ok(captured)
    }

    /// Visits all that is owed, a batch at a time.
    fn each_owed(
        &self,
        visit: &mut dyn FnMut(Vec<Owed>) -> Result<(), ProjectError>,
    ) -> Result<(), ProjectError> {
        let mut after: Option<FilePath> = None;
        loop {
            let batch = Ledger::new(&self.views).owed(after.as_ref(), OWED_BATCH)?;
            let Some(last) = batch.last() else { return Ok(()) };
            after = Some(last.path.clone());
            visit(batch)?;
        }
    }

    fn materialize(
        &self,
        desired: &Desired,
        through: Option<Head>,
        patience: Patience,
        progress: Progress<'_>,
    ) -> Result<Left, ProjectError> {
        let (workspace, views, log) = (&self.workspace, &self.views, &*self.log);
        Materialize { workspace, views, log, progress, desired, through }.run(patience)
    }

    /// Records what stands in the way of a batch, even where the rules would ignore it.
    fn capture_in_the_way(&self, left: &Left, progress: Progress<'_>) -> Result<usize, ProjectError> {
        let paths = left.in_the_way();
        Ok(self.capture_once(&Extent::Paths(paths.clone()), &paths, progress)?.edits)
    }
}

fn is_purge(event: &Event) -> bool {
    matches!(event.payload, Payload::System(SystemEvent::Purge(_)))
}
