//! The projector of one computer: it follows the log into the read models and onto the disk, and carries outside
//! edits back. One thread owns it; an append never waits for it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use event_log::writer::Writer;
use event_log::{EventLog, understand};
use kernel::touched_files;
use shared_types::payload::file::{FileEvent, FileNode};
use shared_types::payload::system::SystemEvent;
use shared_types::{Event, FilePath, Payload, Seq};

use crate::capture::{Capture, CaptureIds, Captured, Extent};
use crate::error::ProjectError;
use crate::ledger::Ledger;
use crate::materialize::{Desired, Materialized, materialize};
use crate::views::{Position, Views};
use crate::workspace::Workspace;
use crate::{reconcile, recover, rows};

/// Events that share one transaction at most, and changes after which a batch is full.
const BATCH_EVENTS: usize = 1000;
const BATCH_CHANGES: usize = 10_000;
/// How often outside edits may get in the way of one batch before it is given up for now.
const PATIENCE: usize = 5;

/// What the projector is doing, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Comparing the workspace with what is known of it.
    Scanning,
    /// Bringing the read models up to date.
    Indexing,
    /// Writing files.
    Writing,
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
        let head = self.log.head().seq;
        // Read models that are ahead of the log belong to events that a damaged disk lost: start them again.
        if self.views.position(Position::Rows)?.is_some_and(|seq| seq > head) {
            self.views.reset_rows()?;
        }
        if self.views.position(Position::Disk)?.is_some_and(|seq| seq > head) {
            self.views.reset_disk()?;
        }
        recover::recover(&self.workspace, &self.views, &*self.log)
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
        let head = self.log.head().seq;
        let rows = self.views.position(Position::Rows)?.unwrap_or_default();
        let disk = self.views.position(Position::Disk)?.unwrap_or_default();
        Ok(Lag { head, rows, disk })
    }

    /// Records outside edits as one operation.
    pub fn capture(&self, extent: &Extent, progress: Progress<'_>) -> Result<Captured, ProjectError> {
        self.healing(|| self.capture_once(extent, progress))
    }

    fn capture_once(&self, extent: &Extent, progress: Progress<'_>) -> Result<Captured, ProjectError> {
        if self.views.position(Position::Disk)?.is_none() {
            self.adopt_disk(progress)?;
        }
        let scanning = |done, total| progress(Phase::Scanning, done, total);
        let capture = Capture {
            workspace: &self.workspace,
            views: &self.views,
            log: &*self.log,
            writer: &self.writer,
            progress: &scanning,
        };
        capture.run(extent, (self.mint)())
    }

    /// Brings the read models and the disk to the newest event.
    pub fn catch_up(&self, progress: Progress<'_>) -> Result<CaughtUp, ProjectError> {
        self.healing(|| self.catch_up_once(progress))
    }

    fn catch_up_once(&self, progress: Progress<'_>) -> Result<CaughtUp, ProjectError> {
        if self.views.position(Position::Disk)?.is_none() {
            self.adopt_disk(progress)?;
        }
        let mut done = CaughtUp::default();
        loop {
            self.catch_up_rows(progress)?;
            self.catch_up_disk(&mut done, progress)?;
            // A capture on the way appends, so the rows may have something new to follow.
            let lag = self.lag()?;
            if lag.events() == 0 {
                return Ok(done);
            }
        }
    }

    /// Computes all read models again from the first event.
    pub fn rebuild(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        self.healing(|| {
            self.views.reset_rows()?;
            self.catch_up_rows(progress)
        })
    }

    /// Nothing is known of what is on disk: compare all of it with the present, once.
    fn adopt_disk(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        let (seq, files) = self.writer.inspect(|view| {
            let files: Vec<(FilePath, FileNode)> =
                view.files.iter().map(|(path, node)| (path.clone(), node.clone())).collect();
            (view.seq(), files)
        })?;
        let scanning = |done, total| progress(Phase::Scanning, done, total);
        let files = files.into_iter().collect();
        reconcile::reconcile(&self.workspace, &self.views, &*self.log, seq, files, &scanning)
    }

    fn catch_up_rows(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        loop {
            let from = self.views.position(Position::Rows)?.unwrap_or_default();
            let head = self.log.head().seq;
            if from >= head {
                return Ok(());
            }
            let batch = self.read_batch(from)?;
            let Some(last) = batch.last().map(|event| event.seq) else { return Ok(()) };
            self.views.transaction(|| {
                for event in &batch {
                    rows::apply(&self.views, &*self.log, event)?;
                }
                self.views.set_position(Position::Rows, last)
            })?;
            if batch.iter().any(is_purge) {
                self.views.checkpoint()?;
            }
            progress(Phase::Indexing, last.0, head.0);
        }
    }

    fn catch_up_disk(&self, done: &mut CaughtUp, progress: Progress<'_>) -> Result<(), ProjectError> {
        let mut attempts = 0;
        loop {
            let from = self.views.position(Position::Disk)?.unwrap_or_default();
            let head = self.log.head().seq;
            if from >= head {
                return Ok(());
            }
            let batch = self.read_batch(from)?;
            let Some(last) = batch.last().map(|event| event.seq) else { return Ok(()) };
            let desired: Desired = touched_files(&batch).into_iter().collect();
            match materialize(&self.workspace, &self.views, &*self.log, &desired, last)? {
                Materialized::Done { unavailable } => {
                    attempts = 0;
                    done.unavailable.extend(unavailable);
                    progress(Phase::Writing, last.0, head.0);
                }
                Materialized::Edited(paths) => {
                    attempts += 1;
                    if attempts > PATIENCE {
                        return Err(ProjectError::Unrest);
                    }
                    done.captured += self.capture_in_the_way(attempts, paths, progress)?;
                }
                Materialized::Blocked(obstacle) => {
                    attempts += 1;
                    if attempts > PATIENCE {
                        return Err(obstacle.into());
                    }
                    done.captured += self.capture(&Extent::Everything, progress)?.edits;
                }
            }
        }
    }

    /// First only what is in the way; if that does not help, the shape of the tree around it changed too.
    fn capture_in_the_way(
        &self,
        attempt: usize,
        paths: BTreeSet<FilePath>,
        progress: Progress<'_>,
    ) -> Result<usize, ProjectError> {
        let extent = if attempt == 1 { Extent::Paths(paths) } else { Extent::Everything };
        Ok(self.capture(&extent, progress)?.edits)
    }

    fn read_batch(&self, after: Seq) -> Result<Vec<Event>, ProjectError> {
        let mut batch = Vec::new();
        let mut changes = 0;
        let mut failure = None;
        self.log.scan(after.next(), &mut |stored| {
            match understand(&*self.log, stored) {
                Ok(event) => {
                    changes += change_count(&event);
                    batch.push(event);
                }
                Err(e) => failure = Some(e),
            }
            let full = batch.len() >= BATCH_EVENTS || changes >= BATCH_CHANGES || failure.is_some();
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match failure {
            // What could be read is projected; the next call meets the failure again.
            Some(e) if batch.is_empty() => Err(e.into()),
            Some(_) | None => Ok(batch),
        }
    }

    /// Every path the ledger knows, for comparing it with the log.
    pub fn known_on_disk(&self) -> Result<Vec<(FilePath, FileNode)>, ProjectError> {
        let all = Ledger::new(&self.views).all()?;
        Ok(all.into_iter().map(|(path, entry)| (path, entry.node)).collect())
    }
}

fn is_purge(event: &Event) -> bool {
    matches!(event.payload, Payload::System(SystemEvent::Purge(_)))
}

fn change_count(event: &Event) -> usize {
    if let Payload::File(FileEvent::Batch(batch)) = &event.payload { batch.changes.len() } else { 1 }
}
