//! Watches the workspace and reports where something changed. A scan then finds out what changed, so a lost, doubled or
//! late notification costs time and never correctness.
//!
//! The notification thread only adds paths to a set; memory is bounded, since too many paths become
//! [`Touched::Everything`]. Nothing below the computer's own folder is watched or reported. [`Watch::next`] starts to
//! watch new folders before it returns: the scan that follows sees files that were made in them earlier.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{CreateKind, EventKind, ModifyKind};
use notify::{Config, ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use shared_types::FilePath;
use thiserror::Error;

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
    fn of(path: &Path, error: notify::Error) -> Self {
        let path = path.to_owned();
        match error.kind {
            ErrorKind::MaxFilesWatch => Self::WatchLimit { path },
            ErrorKind::Io(source) if source.raw_os_error() == Some(EMFILE) => Self::InstanceLimit,
            ErrorKind::Io(source) => Self::Io { path, source },
            ErrorKind::Generic(reason) => Self::Other { path, reason },
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
    released: bool,
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

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    reserved: PathBuf,
    pending: Mutex<Pending>,
    news: Condvar,
}

impl Shared {
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
        self.news.notify_all();
    }

    fn take(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if event.need_rescan() => return self.lost(None),
            Ok(event) => event,
            Err(error) => {
                let path = error.paths.first().unwrap_or(&self.root).clone();
                return self.lost(Some(WatchError::of(&path, error)));
            }
        };
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
        self.news.notify_all();
    }
}

/// A running watch; it ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    watcher: Mutex<RecommendedWatcher>,
}

impl Watch {
    /// Watches everything below `root` except what is below `reserved`, which may also be elsewhere.
    pub fn start(root: &Path, reserved: &Path) -> Result<Self, WatchError> {
        let failed = |source| WatchError::Io { path: root.to_owned(), source };
        let root = fs::canonicalize(root).map_err(failed)?;
        let reserved = fs::canonicalize(reserved).unwrap_or_else(|_| reserved.to_owned());
        let shared = Arc::new(Shared { root, reserved, pending: Mutex::default(), news: Condvar::default() });
        let sink = Arc::clone(&shared);
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(move |event| sink.take(event), config)
            .map_err(|error| WatchError::of(&shared.root, error))?;
        let watch = Self { shared, watcher: Mutex::new(watcher) };
        watch.add_all()?;
        Ok(watch)
    }

    /// Waits up to `timeout` for a change, then until there was no new one for `quiet`, so that the few steps of an
    /// editor are reported as one; but at most two seconds after the first change.
    pub fn next(&self, timeout: Duration, quiet: Duration) -> Touched {
        self.next_when(timeout, &|gathered| gathered.left(quiet, LONGEST))
    }

    /// Waits up to `timeout` for a change, then for as long as `left` returns. `left` is called again after each new
    /// change and when the time is over; at zero, the gathered changes are returned.
    pub fn next_when(&self, timeout: Duration, left: &dyn Fn(GatheredChanges) -> Duration) -> Touched {
        let Some(mut pending) = self.collect(timeout, left) else { return Touched::Nothing };
        // If notifications were lost, new folders may have been missed too.
        let added = if pending.everything { self.add_all() } else { self.add_folders(&pending.folders) };
        if let Err(error) = added {
            pending.everything = true;
            pending.error = Some(error);
        }
        if pending.error.is_some() {
            self.shared.lock().error = pending.error;
        }
        if pending.everything { Touched::Everything } else { Touched::Paths(pending.paths) }
    }

    /// Why a part of the workspace is not watched at the moment. Returned once.
    pub fn take_error(&self) -> Option<WatchError> {
        self.shared.lock().error.take()
    }

    /// A function that ends all waiting, now and later: gathered changes are returned at once.
    pub fn releaser(&self) -> impl FnOnce() + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move || {
            shared.lock().released = true;
            shared.news.notify_all();
        }
    }

    fn collect(&self, timeout: Duration, left: &dyn Fn(GatheredChanges) -> Duration) -> Option<Pending> {
        let wait = |pending, time| {
            let woken = self.shared.news.wait_timeout(pending, time);
            woken.unwrap_or_else(PoisonError::into_inner).0
        };
        let mut pending = self.shared.lock();
        let called = Instant::now();
        while pending.is_empty() {
            if pending.released {
                return None;
            }
            let left = timeout.checked_sub(called.elapsed())?;
            pending = wait(pending, left);
        }
        loop {
            let left = pending.when.map_or(Duration::ZERO, left);
            if left.is_zero() || pending.released {
                return Some(std::mem::take(&mut *pending));
            }
            pending = wait(pending, left);
        }
    }

    /// Watches the top folder alone and each folder in it recursively, so that the computer's own folder, where every
    /// append writes, costs nothing.
    fn add_all(&self) -> Result<(), WatchError> {
        let root = &self.shared.root;
        let failed = |source| WatchError::Io { path: root.clone(), source };
        self.add(root, RecursiveMode::NonRecursive)?;
        for entry in fs::read_dir(root).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if let Some(folder) = self.shared.inside(&path) {
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
        let path = self.shared.root.join(folder.as_str());
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
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.watch(path, mode).map_err(|error| WatchError::of(path, error))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    Watched,
    NoFolder,
}
