//! The projector of one computer: it applies events to the read models and to the disk, and records outside edits. One
//! thread owns it; an append never waits for it.

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
use crate::history::{EventFilter, head_at, holds, read_batch};
use crate::ledger::{Ledger, PendingReason, PendingWrite};
use crate::materialize::{Desired, Materialize, Unwritten, WhenBlocked};
use crate::progress::{Progress, ProgressPhase};
use crate::recover::{StopCause, recover};
use crate::views::{Position, Views};
use crate::workspace::Workspace;
use crate::{reconcile, rows};

/// How often one batch is retried because of outside edits before it continues without these paths, and how often one
/// call applies the events that its own captures added.
const ATTEMPTS: usize = 3;
/// How many pending writes are retried together.
const PENDING_BATCH: usize = 10_000;

/// How far the projector is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    pub head: Seq,
    pub rows: Seq,
    pub disk: Seq,
}

impl Lag {
    /// The number of events that are not projected yet.
    pub fn events(&self) -> u64 {
        self.head.0.saturating_sub(self.rows.0.min(self.disk.0))
    }
}

/// The result of catching up: what could not be written, and what was captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// Files whose bytes were purged or are damaged, so that they could not be written.
    pub unavailable: Vec<FilePath>,
    /// Paths that something else blocks, with the reason. They are retried with every call.
    pub blocked: Vec<(FilePath, String)>,
    /// Outside edits that were found and recorded meanwhile.
    pub captured: usize,
}

/// Mints the ids of a capture.
pub type Mint = Box<dyn Fn() -> CaptureIds + Send>;

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
    /// Opens the read models in `state` (a `.choir` folder) and the workspace, and recovers from an unclean stop.
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
        projector.rebuilding_if_damaged(|| projector.recover())?;
        Ok(projector)
    }

    fn recover(&self) -> Result<(), ProjectError> {
        // A position that the log does not hold belongs to another history, for example after a backup was restored.
        let is_foreign =
            |of| Ok::<_, ProjectError>(self.views.position(of)?.is_some_and(|at| !holds(&*self.log, at)));
        if is_foreign(Position::Rows)? {
            self.views.reset_rows()?;
        }
        if is_foreign(Position::Disk)? {
            self.views.reset_disk()?;
        }
        self.workspace.clean_scratch()?;
        recover(&self.workspace, &self.views, &*self.log, StopCause::Unclean)
    }

    /// Runs `work`. Read models are disposable: if they turn out to be damaged, they are emptied and `work` runs again.
    fn rebuilding_if_damaged<T>(
        &self,
        work: impl Fn() -> Result<T, ProjectError>,
    ) -> Result<T, ProjectError> {
        match work() {
            Err(ProjectError::Views(e)) if e.is_damage() => {
                self.views.recreate()?;
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
        self.rebuilding_if_damaged(|| self.capture_once(extent, &BTreeSet::new(), progress))
    }

    fn capture_once(
        &self,
        extent: &Extent,
        wanted: &BTreeSet<FilePath>,
        progress: Progress<'_>,
    ) -> Result<Captured, ProjectError> {
        self.ensure_disk_known(progress)?;
        let scanning = |done, total| progress(ProgressPhase::Scanning, done, total);
        let capture = Capture {
            workspace: &self.workspace,
            views: &self.views,
            log: &*self.log,
            writer: &self.writer,
            progress: &scanning,
        };
        capture.run(extent, wanted, (self.mint)())
    }

    /// Brings the read models and the disk to the newest event of now. Events that are appended meanwhile are left to
    /// the next call.
    pub fn catch_up(&self, progress: Progress<'_>) -> Result<CaughtUp, ProjectError> {
        self.rebuilding_if_damaged(|| self.catch_up_once(progress))
    }

    fn catch_up_once(&self, progress: Progress<'_>) -> Result<CaughtUp, ProjectError> {
        self.ensure_disk_known(progress)?;
        let mut captured = 0;
        for _ in 0..ATTEMPTS {
            let before = captured;
            let head = self.log.head().seq;
            self.catch_up_rows(head, progress)?;
            captured += self.catch_up_disk(head, progress)?;
            captured += self.retry_pending(progress)?;
            // A capture appends events, which have to be applied too.
            if captured == before {
                break;
            }
        }
        let mut done = CaughtUp { captured, ..CaughtUp::default() };
        self.each_pending(&mut |batch| {
            for write in batch {
                match write.reason {
                    PendingReason::Unavailable => done.unavailable.push(write.path),
                    PendingReason::Blocked(reason) => done.blocked.push((write.path, reason)),
                }
            }
            Ok(())
        })?;
        Ok(done)
    }

    /// Computes all read models again, from the first event.
    pub fn rebuild(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        self.rebuilding_if_damaged(|| {
            self.views.reset_rows()?;
            self.catch_up_rows(self.log.head().seq, progress)
        })
    }

    /// Recovers from a failed batch. If nothing is known about the disk, compares all of it with the current view.
    fn ensure_disk_known(&self, progress: Progress<'_>) -> Result<(), ProjectError> {
        if self.views.position(Position::Disk)?.is_some() {
            return recover(&self.workspace, &self.views, &*self.log, StopCause::Failure);
        }
        let (seq, files) = self.writer.inspect(|view| {
            let files: Vec<(FilePath, FileNode)> =
                view.files.iter().map(|(path, node)| (path.clone(), node.clone())).collect();
            (view.seq(), files)
        })?;
        let scanning = |done, total| progress(ProgressPhase::Scanning, done, total);
        let (at, files) = (head_at(&*self.log, seq)?, files.into_iter().collect());
        reconcile::reconcile(&self.workspace, &self.views, &*self.log, at, files, &scanning)
    }

    fn catch_up_rows(&self, to: Seq, progress: Progress<'_>) -> Result<(), ProjectError> {
        loop {
            let from = self.views.position(Position::Rows)?.unwrap_or_default().seq;
            if from >= to {
                return Ok(());
            }
            let Some(batch) = read_batch(&*self.log, from, EventFilter::All)? else { return Ok(()) };
            self.views.transaction(|| {
                for event in &batch.events {
                    rows::apply(&self.views, &*self.log, event)?;
                }
                Ok::<_, ProjectError>(self.views.set_position(Position::Rows, batch.through)?)
            })?;
            if batch.events.iter().any(is_purge) {
                self.views.wal_checkpoint()?;
            }
            progress(ProgressPhase::Indexing, batch.through.seq.0, to.0.max(batch.through.seq.0));
        }
    }

    /// Applies events to the disk. Returns how many outside edits were captured meanwhile.
    fn catch_up_disk(&self, to: Seq, progress: Progress<'_>) -> Result<usize, ProjectError> {
        let mut captured = 0;
        let mut attempts = 0;
        loop {
            let from = self.views.position(Position::Disk)?.unwrap_or_default().seq;
            if from >= to {
                return Ok(captured);
            }
            // Read again after every capture: the events that it appended may change the wanted nodes.
            let Some(batch) = read_batch(&*self.log, from, EventFilter::Files)? else { return Ok(captured) };
            let desired: Desired = touched_files(&batch.events).into_iter().collect();
            attempts += 1;
            let when_blocked = if attempts < ATTEMPTS { WhenBlocked::Retry } else { WhenBlocked::Postpone };
            let unwritten = self.materialize(&desired, Some(batch.through), when_blocked, progress)?;
            if when_blocked == WhenBlocked::Postpone || unwritten.to_capture().is_empty() {
                attempts = 0;
            } else {
                captured += self.capture_blocking(&unwritten, progress)?;
            }
        }
    }

    /// Retries what could not be written before.
    fn retry_pending(&self, progress: Progress<'_>) -> Result<usize, ProjectError> {
        let mut captured = 0;
        self.each_pending(&mut |batch| {
            let mut desired: Desired = batch.into_iter().map(|write| (write.path, write.node)).collect();
            let unwritten = self.materialize(&desired, None, WhenBlocked::Retry, progress)?;
            if unwritten.to_capture().is_empty() {
                return Ok(());
            }
            captured += self.capture_blocking(&unwritten, progress)?;
            // Edited paths are in the log now, and its events decide about them.
            desired.retain(|path, _| !unwritten.edited.contains(path));
            self.materialize(&desired, None, WhenBlocked::Postpone, progress).map(drop)
        })?;
        Ok(captured)
    }

    /// Visits all pending writes, a batch at a time.
    fn each_pending(
        &self,
        visit: &mut dyn FnMut(Vec<PendingWrite>) -> Result<(), ProjectError>,
    ) -> Result<(), ProjectError> {
        let mut after: Option<FilePath> = None;
        loop {
            let batch = Ledger::new(&self.views).pending(after.as_ref(), PENDING_BATCH)?;
            let Some(last) = batch.last() else { return Ok(()) };
            after = Some(last.path.clone());
            visit(batch)?;
        }
    }

    fn materialize(
        &self,
        desired: &Desired,
        through: Option<Head>,
        when_blocked: WhenBlocked,
        progress: Progress<'_>,
    ) -> Result<Unwritten, ProjectError> {
        let (workspace, views, log) = (&self.workspace, &self.views, &*self.log);
        Materialize { workspace, views, log, progress, desired, through }.run(when_blocked)
    }

    /// Captures the paths that block a batch, even if the rules ignore them.
    fn capture_blocking(&self, unwritten: &Unwritten, progress: Progress<'_>) -> Result<usize, ProjectError> {
        let paths = unwritten.to_capture();
        Ok(self.capture_once(&Extent::Paths(paths.clone()), &paths, progress)?.edits)
    }
}

fn is_purge(event: &Event) -> bool {
    matches!(event.payload, Payload::System(SystemEvent::Purge(_)))
}
