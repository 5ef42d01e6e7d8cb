//! One inotify instance and one thread for all workspaces that this process watches. The system allows each account
//! only a few instances (128 by default), so a server with many open computers cannot have one per workspace.
//!
//! A lost notification has no path: then every workspace is scanned. That costs time and never correctness.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::Workspace;

/// The notifiers in use. There is a second one only while workspaces lie inside each other, since a folder can be
/// watched once per notifier.
static NOTIFIERS: Mutex<Vec<Weak<Notifier>>> = Mutex::new(Vec::new());

/// A system watcher and the workspaces that it reports to.
pub(super) struct Notifier {
    watcher: Mutex<RecommendedWatcher>,
    workspaces: Arc<Workspaces>,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notifier")
    }
}

/// By their top folder.
type Workspaces = Mutex<HashMap<PathBuf, Arc<Workspace>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A workspace that is reported to, until this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    notifier: Arc<Notifier>,
    root: PathBuf,
    /// The folders that were asked for. Those below a recursive one go with it.
    watched: Mutex<BTreeSet<PathBuf>>,
}

impl Registration {
    pub(super) fn new(workspace: &Arc<Workspace>) -> notify::Result<Self> {
        let root = workspace.root.clone();
        let mut notifiers = lock(&NOTIFIERS);
        notifiers.retain(|notifier| notifier.strong_count() > 0);
        let free = |notifier: &Arc<Notifier>| {
            !lock(&notifier.workspaces).keys().any(|used| used.starts_with(&root) || root.starts_with(used))
        };
        let found = notifiers.iter().filter_map(Weak::upgrade).find(free);
        let notifier = match found {
            Some(notifier) => notifier,
            None => {
                let notifier = Arc::new(Notifier::start()?);
                notifiers.push(Arc::downgrade(&notifier));
                notifier
            }
        };
        lock(&notifier.workspaces).insert(root.clone(), Arc::clone(workspace));
        Ok(Self { notifier, root, watched: Mutex::default() })
    }

    pub(super) fn watch(&self, path: &Path, mode: RecursiveMode) -> notify::Result<()> {
        lock(&self.notifier.watcher).watch(path, mode)?;
        let mut watched = lock(&self.watched);
        if !path.ancestors().skip(1).any(|above| above != self.root && watched.contains(above)) {
            watched.insert(path.to_owned());
        }
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.notifier.workspaces).remove(&self.root);
        let mut watcher = lock(&self.notifier.watcher);
        for path in lock(&self.watched).iter() {
            // A folder that was deleted is not watched any more.
            let _ = watcher.unwatch(path);
        }
    }
}

impl Notifier {
    fn start() -> notify::Result<Self> {
        let workspaces = Arc::new(Workspaces::default());
        let same = Arc::clone(&workspaces);
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(move |event| dispatch(&same, event), config)?;
        Ok(Self { watcher: Mutex::new(watcher), workspaces })
    }
}

/// Hands an event to the workspace that it concerns. Errors and lost events may concern any of them.
fn dispatch(workspaces: &Workspaces, event: notify::Result<Event>) {
    match event {
        Ok(event) if !event.need_rescan() => {
            let of = |path: &Path| path.ancestors().find_map(|root| lock(workspaces).get(root).cloned());
            let mut told: Vec<Arc<Workspace>> = Vec::new();
            for workspace in event.paths.iter().filter_map(|path| of(path)) {
                if !told.iter().any(|known| Arc::ptr_eq(known, &workspace)) {
                    workspace.add(&event);
                    told.push(workspace);
                }
            }
        }
        Ok(_) => all(workspaces).iter().for_each(|workspace| workspace.lost(None)),
        Err(error) => {
            let path = error.paths.first().cloned();
            let concerned = |workspace: &&Arc<Workspace>| match &path {
                Some(path) => path.starts_with(&workspace.root),
                None => true,
            };
            let all = all(workspaces);
            for workspace in all.iter().filter(concerned) {
                let path = path.as_ref().unwrap_or(&workspace.root);
                workspace.lost(Some(super::WatchError::of(path, &error)));
            }
        }
    }
}

fn all(workspaces: &Workspaces) -> Vec<Arc<Workspace>> {
    lock(workspaces).values().cloned().collect()
}
