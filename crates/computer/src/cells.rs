//! The cells of one computer: their settings, their backend, and the running ones.

mod guarded_files;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolation::{Backend, Cell, Mount, StartError, Stream};
use shared_types::OpId;

pub use guarded_files::{CoveredFiles, GuardedFiles};
pub use settings::{BackendKind, CellSettings, mount};

use crate::paths::ComputerPaths;

/// Called with the output of a command while it runs.
pub type OutputListener<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// The cells of one computer.
#[derive(Debug)]
pub struct Cells {
    settings: CellSettings,
    backend: Arc<dyn Backend>,
    running: Mutex<BTreeMap<OpId, Arc<dyn Cell>>>,
    dry_run_lock: Mutex<()>,
    ignored_files_lock: Mutex<()>,
    guarded: GuardedFiles,
    /// Set when the computer is being closed.
    closing: AtomicBool,
}

impl Cells {
    pub(crate) fn new(settings: CellSettings, paths: &ComputerPaths) -> Self {
        let backend = settings.backend(&paths.state);
        Self {
            settings,
            backend,
            running: Mutex::default(),
            dry_run_lock: Mutex::default(),
            ignored_files_lock: Mutex::default(),
            guarded: GuardedFiles::new(&paths.workspace),
            closing: AtomicBool::new(false),
        }
    }

    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn guarded_files(&self) -> &GuardedFiles {
        &self.guarded
    }

    /// Only one dry run is accepted or discarded at a time.
    pub(crate) fn dry_run_lock(&self) -> MutexGuard<'_, ()> {
        self.dry_run_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only one operation moves ignored files at a time.
    pub(crate) fn ignored_files_lock(&self) -> MutexGuard<'_, ()> {
        self.ignored_files_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, BTreeMap<OpId, Arc<dyn Cell>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops a running command; false if none has this id.
    pub fn stop(&self, op: OpId) -> bool {
        let cell = self.running().get(&op).cloned();
        cell.is_some_and(|cell| {
            cell.stop();
            true
        })
    }

    /// A cell over the workspace itself, for a terminal; `shown` is one more folder that it sees.
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

    /// The backend, for other code that starts cells.
    pub fn shared_backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Stops all commands, before the computer is closed.
    pub fn stop_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let all: Vec<Arc<dyn Cell>> = self.running().values().cloned().collect();
        for cell in all {
            cell.stop();
        }
    }
}

/// The folder of a command's layer.
pub(crate) fn layer_dir(paths: &ComputerPaths, op: OpId) -> PathBuf {
    cells_dir(paths).join(op.to_string())
}

/// The folder with one folder for each cell of a computer.
pub fn cells_dir(paths: &ComputerPaths) -> PathBuf {
    paths.state.join("cells")
}
