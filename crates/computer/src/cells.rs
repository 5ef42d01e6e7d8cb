//! The cells of one computer: how they are made, what they are given, and those that run.

mod guarded_files;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolation::{Backend, Cell, Mount, StartError, Stream};
use shared_types::OpId;

pub use guarded_files::{CoveredFiles, GuardedFiles};
pub use settings::{CellSettings, Walls, mount};

use crate::paths::ComputerPaths;

/// Told of what a command prints, as it does.
pub type Listener<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// The cells of one computer: how they are made, and those that run.
#[derive(Debug)]
pub struct Cells {
    settings: CellSettings,
    backend: Arc<dyn Backend>,
    running: Mutex<BTreeMap<OpId, Arc<dyn Cell>>>,
    deciding: Mutex<()>,
    placing: Mutex<()>,
    guarded: GuardedFiles,
    /// Set when the computer is being closed.
    closing: AtomicBool,
}

impl Cells {
    pub(crate) fn new(settings: CellSettings, place: &ComputerPaths) -> Self {
        let backend = settings.backend(&place.state);
        Self {
            settings,
            backend,
            running: Mutex::default(),
            deciding: Mutex::default(),
            placing: Mutex::default(),
            guarded: GuardedFiles::new(&place.workspace),
            closing: AtomicBool::new(false),
        }
    }

    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn guarded_files(&self) -> &GuardedFiles {
        &self.guarded
    }

    /// One dry run is settled at a time.
    pub(crate) fn deciding(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ignored files are put in place, or back, by one at a time.
    pub(crate) fn placing(&self) -> MutexGuard<'_, ()> {
        self.placing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, BTreeMap<OpId, Arc<dyn Cell>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a command that runs; false if none does under this id.
    pub fn stop(&self, op: OpId) -> bool {
        let cell = self.running().get(&op).cloned();
        cell.is_some_and(|cell| {
            cell.stop();
            true
        })
    }

    /// A cell over the workspace itself, for a terminal; `shown` is a folder that it sees beside.
    pub fn start_terminal(
        &self,
        owner: &str,
        workspace: PathBuf,
        shown: Mount,
        scratch: &Path,
    ) -> Result<Arc<dyn Cell>, StartError> {
        let mut policy = self.settings.terminal_policy(owner, workspace);
        policy.mounts.push(shown);
        self.backend.start(&policy, scratch)
    }

    pub fn settings(&self) -> &CellSettings {
        &self.settings
    }

    /// The backend, for those who start cells of their own.
    pub fn shared_backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Ends all commands, before the computer is closed.
    pub fn stop_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let all: Vec<Arc<dyn Cell>> = self.running().values().cloned().collect();
        for cell in all {
            cell.stop();
        }
    }
}

/// Where the layer of a command is.
pub(crate) fn folder(place: &ComputerPaths, op: OpId) -> PathBuf {
    folders(place).join(op.to_string())
}

/// Where each cell of a computer has a folder of its own.
pub fn folders(place: &ComputerPaths) -> PathBuf {
    place.state.join("cells")
}
