//! Watches the workspace and reports where something changed. A scan then finds out what changed, so a lost, doubled or
//! late notification costs time and never correctness.
//!
//! The notification thread, which all workspaces share ([`notifier`]), only adds paths to a set; memory is bounded,
//! since too many paths become [`Touched::Everything`]. Nothing below the computer's own folder is watched or reported.
//! [`Watch::poll`] starts to watch new folders before it returns: the scan that follows sees files that were made in
//! them earlier.

mod notifier;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{CreateKind, EventKind, ModifyKind};
use notify::{ErrorKind, Event, RecursiveMode};
use shared_types::FilePath;
use thiserror::Error;

use notifier::Registration;

/// Changes are reported after this time even if more keep coming.
const LONGEST: Duration = Duration::from_secs(2);
/// More paths than this are not reported one by one.
const MANY: usize = 20_000;

/// Why the workspace, or a part of it, cannot be watched.
#[derive(Debug, Error)]
pub enum WatchError {
    #[error(
        "{path} has more folders than this user may watch; raise the limit, for example with \
         `sysctl fs.inotify.max_user_watches=1048576`"
    )]
    WatchLimit { path: PathBuf },
    #[error(
        "this user has too many watchers already; raise the limit, for example with \
         `sysctl fs.inotify.max_user_instances=1024`"
    )]
    InstanceLimit,
    #[error("{path} cannot be watched")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} cannot be watched: {reason}")]
    Other { path: PathBuf, reason: String },
}

impl WatchError {
    fn of(path: &Path, error: &notify::Error) -> Self {
        let path = path.to_owned();
        match &error.kind {
            ErrorKind::MaxFilesWatch => Self::WatchLimit { path },
            ErrorKind::Io(source) if source.raw_os_error() == Some(EMFILE) => Self::InstanceLimit,
            ErrorKind::Io(source) => Self::Io {
                path,
                source: source.raw_os_error().map_or(source.kind().into(), io::Error::from_raw_os_error),
            },
            ErrorKind::Generic(reason) => Self::Other { path, reason: reason.clone() },
            ErrorKind::PathNotFound => Self::Io { path, source: io::ErrorKind::NotFound.into() },
            kind @ (ErrorKind::WatchNotFound | ErrorKind::InvalidConfig(_)) => {
                Self::Other { path, reason: format!("{kind:?}") }
            }
        }
    }
}

const EMFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();

/// Where something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    Nothing,
    /// At these paths, or below them.
    Paths(BTreeSet<FilePath>),
    /// Notifications were lost: scan everything.
    Everything,
}

/// The changes since the last call.
#[derive(Debug, Default)]
struct Pending {
    paths: BTreeSet<FilePath>,
    /// New folders that may not be watched yet.
    folders: BTreeSet<FilePath>,
    everything: bool,
    error: Option<WatchError>,
    when: Option<GatheredChanges>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.everything
    }

    fn changed(&mut self) {
        let now = Instant::now();
        self.when = Some(GatheredChanges { first: self.when.map_or(now, |when| when.first), last: now });
    }
}

/// The times of the first and the newest change that are not reported yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatheredChanges {
    pub first: Instant,
    pub last: Instant,
}

impl GatheredChanges {
    /// How long to wait until there was no change for `quiet`, but at most `longest` since the first.
    pub fn left(&self, quiet: Duration, longest: Duration) -> Duration {
        quiet.saturating_sub(self.last.elapsed()).min(longest.saturating_sub(self.first.elapsed()))
    }
}

/// What [`Watch::poll`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Polled {
    Changed(Touched),
    /// There are changes that may not be complete; poll again after this time or after the next change.
    Wait(Duration),
}

/// A watched workspace, as the notification thread sees it.
struct Workspace {
    root: PathBuf,
    reserved: PathBuf,
    pending: Mutex<Pending>,
    changed: Condvar,
    listener: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Workspace").field(&self.root).finish()
    }
}

impl Workspace {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path inside the workspace, if the log could hold it.
    fn inside(&self, path: &Path) -> Option<FilePath> {
        if path.starts_with(&self.reserved) {
            return None;
        }
        let below = path.strip_prefix(&self.root).ok()?;
        FilePath::from_bytes(below.as_os_str().as_encoded_bytes()).ok()
    }

    fn lost(&self, error: Option<WatchError>) {
        let mut pending = self.lock();
        pending.everything = true;
        pending.changed();
        if error.is_some() {
            pending.error = error;
        }
        drop(pending);
        self.notify();
    }

    fn notify(&self) {
        self.changed.notify_all();
        if let Some(listener) = &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            listener();
        }
    }

    /// Adds the paths of an event.
    fn add(&self, event: &Event) {
        let may_be_folder = match event.kind {
            EventKind::Access(_) => return,
            EventKind::Create(CreateKind::File) => false,
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any => true,
            EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => false,
        };
        let paths = event.paths.iter().filter_map(|path| self.inside(path)).collect::<Vec<_>>();
        if paths.is_empty() {
            return;
        }
        let mut pending = self.lock();
        if may_be_folder {
            pending.folders.extend(paths.iter().cloned());
        }
        pending.paths.extend(paths);
        if pending.paths.len() > MANY {
            pending.paths.clear();
            pending.folders.clear();
            pending.everything = true;
        }
        pending.changed();
        drop(pending);
        self.notify();
    }
}

/// A running watch; it ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    workspace: Arc<Workspace>,
    registration: Registration,
}

impl Watch {
    /// Watches everything below `root` except what is below `reserved`, which may also be elsewhere.
    pub fn start(root: &Path, reserved: &Path) -> Result<Self, WatchError> {
        let failed = |source| WatchError::Io { path: root.to_owned(), source };
        let root = fs::canonicalize(root).map_err(failed)?;
        let reserved = fs::canonicalize(reserved).unwrap_or_else(|_| reserved.to_owned());
        let workspace = Arc::new(Workspace {
            root,
            reserved,
            pending: Mutex::default(),
            changed: Condvar::default(),
            listener: Mutex::default(),
        });
        let registration = Registration::new(&workspace).map_err(|e| WatchError::of(&workspace.root, &e))?;
        let watch = Self { workspace, registration };
        watch.add_all()?;
        Ok(watch)
    }

    /// Calls `listener` after every change, on the notification thread; it must not block.
    pub fn on_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        *self.workspace.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(listener));
    }

    /// Returns the changes since the last call, once `left` says that they are complete: it returns how long to wait
    /// for more of them.
    pub fn poll(&self, left: &dyn Fn(GatheredChanges) -> Duration) -> Polled {
        let mut pending = {
            let mut pending = self.workspace.lock();
            if pending.is_empty() {
                return Polled::Changed(Touched::Nothing);
            }
            let left = pending.when.map_or(Duration::ZERO, left);
            if !left.is_zero() {
                return Polled::Wait(left);
            }
            std::mem::take(&mut *pending)
        };
        // If notifications were lost, new folders may have been missed too.
        let added = if pending.everything { self.add_all() } else { self.add_folders(&pending.folders) };
        if let Err(error) = added {
            pending.everything = true;
            pending.error = Some(error);
        }
        if pending.error.is_some() {
            self.workspace.lock().error = pending.error;
        }
        Polled::Changed(if pending.everything { Touched::Everything } else { Touched::Paths(pending.paths) })
    }

    /// Waits up to `timeout` for a change, then until there was no new one for `quiet`, so that the few steps of an
    /// editor are reported as one; but at most two seconds after the first change.
    pub fn next(&self, timeout: Duration, quiet: Duration) -> Touched {
        let called = Instant::now();
        loop {
            // Read before polling, so that no change falls between the poll and the wait.
            let known = self.workspace.lock().when;
            let wait = match self.poll(&|gathered| gathered.left(quiet, LONGEST)) {
                Polled::Changed(Touched::Nothing) => match timeout.checked_sub(called.elapsed()) {
                    Some(left) => left,
                    None => return Touched::Nothing,
                },
                Polled::Changed(touched) => return touched,
                Polled::Wait(left) => left,
            };
            let same = |pending: &mut Pending| pending.when == known;
            let _ = self.workspace.changed.wait_timeout_while(self.workspace.lock(), wait, same);
        }
    }

    /// Why a part of the workspace is not watched at the moment. Returned once.
    pub fn take_error(&self) -> Option<WatchError> {
        self.workspace.lock().error.take()
    }

    /// Watches the top folder alone and each folder in it recursively, so that the computer's own folder, where every
    /// append writes, costs nothing.
    fn add_all(&self) -> Result<(), WatchError> {
        let root = &self.workspace.root;
        let failed = |source| WatchError::Io { path: root.clone(), source };
        self.add(root, RecursiveMode::NonRecursive)?;
        for entry in fs::read_dir(root).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if let Some(folder) = self.workspace.inside(&path) {
                self.add_new(&folder)?;
            }
        }
        Ok(())
    }

    fn add_folders(&self, folders: &BTreeSet<FilePath>) -> Result<(), WatchError> {
        let mut covered: Option<&FilePath> = None;
        for folder in folders {
            if covered.is_some_and(|above| folder.is_within(above)) {
                continue;
            }
            if self.add_new(folder)? == Added::Watched {
                covered = Some(folder);
            }
        }
        Ok(())
    }

    /// Watches a new folder recursively. The library does so itself below watched folders, but gives up on a whole
    /// tree when a part of it disappears meanwhile.
    fn add_new(&self, folder: &FilePath) -> Result<Added, WatchError> {
        const ATTEMPTS: usize = 8;
        let path = self.workspace.root.join(folder.as_str());
        let is_folder = || fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        for _ in 0..ATTEMPTS {
            if !is_folder() {
                return Ok(Added::NoFolder);
            }
            match self.add(&path, RecursiveMode::Recursive) {
                Ok(()) => return Ok(Added::Watched),
                Err(WatchError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(WatchError::Other { path, reason: "it keeps changing".to_owned() })
    }

    fn add(&self, path: &Path, mode: RecursiveMode) -> Result<(), WatchError> {
        self.registration.watch(path, mode).map_err(|error| WatchError::of(path, &error))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    Watched,
    NoFolder,
}
