//! Scanning the disk for everything that the log could record: files, links that stay inside, and empty folders.
//!
//! A scan reads no content. It leaves out ignored paths, except those that the log already holds: they are never
//! ignored. It lists what cannot be recorded (a fifo, a name that is not UTF-8, a link that leaves) with the reason.
//! It does not know events; a caller that compares it with the log must ask [`Scan::covers`] before it takes an absent
//! path for a deleted one.

mod rules;
mod scope;
mod stat_cache;
mod walk;

use std::collections::{BTreeSet, HashSet};
use std::io;

use shared_types::FilePath;
use thiserror::Error;

pub use rules::IgnoreRules;
pub(crate) use scope::Scope;
pub(crate) use stat_cache::is_unchanged;
pub use stat_cache::{CacheEntry, is_trusted};

use crate::workspace::{Observed, ObservedKind, Workspace};
use walk::Walk;

/// With more touched paths than this, a full scan is cheaper.
const MANY: usize = 4_000;

/// Why something on disk is not in a scan's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum SkipReason {
    #[error("its name or its link target is not UTF-8")]
    NotUtf8,
    #[error("its name is a spelling of '.choir', which is reserved")]
    Reserved,
    #[error("its path is too long")]
    TooLong,
    #[error("it is a socket, a fifo or a device")]
    Special,
    #[error("it is a link that leaves the workspace")]
    LinkLeaves,
    #[error("it is on another file system")]
    OtherFileSystem,
    #[error("it cannot be read, or it changed while it was read")]
    Unreadable,
}

/// Why a scan failed.
#[derive(Debug, Error)]
pub enum ScanError {
    #[error("the workspace's top folder cannot be read")]
    Root { source: io::Error },
}

/// The result of a scan.
#[derive(Debug)]
pub struct Scan {
    /// Files, links and empty folders, by path.
    pub entries: Vec<(FilePath, Observed)>,
    /// What exists but cannot be recorded; the path is for display, not for opening.
    pub skipped: Vec<(String, SkipReason)>,
    scope: Scope,
}

impl Scan {
    /// Whether the scan covers this path: then, if it is not among the entries, nothing is there that the log could
    /// hold.
    pub fn covers(&self, path: &FilePath) -> bool {
        self.scope.covers(path)
    }

    /// The observation at a path.
    pub fn get(&self, path: &FilePath) -> Option<&Observed> {
        let at = self.entries.binary_search_by(|(seen, _)| seen.cmp(path)).ok()?;
        self.entries.get(at).map(|(_, seen)| seen)
    }
}

/// Scans the whole workspace. `known` are the paths that the log holds, in any order.
pub fn scan<'k>(
    workspace: &Workspace,
    known: impl IntoIterator<Item = &'k FilePath>,
) -> Result<Scan, ScanError> {
    Ok(UnfinishedScan::everywhere(workspace)?.finish(known))
}

/// Scans only the touched paths: they, everything below them, and the folders above them that have become empty. Of
/// `known`, only paths at, below or directly above a touched path matter. A touched ignore file counts as its whole
/// folder.
pub fn scan_paths<'t, 'k>(
    workspace: &Workspace,
    touched: impl IntoIterator<Item = &'t FilePath>,
    known: impl IntoIterator<Item = &'k FilePath>,
) -> Result<Scan, ScanError> {
    Ok(UnfinishedScan::at(workspace, touched)?.finish(known))
}

/// A scan that still needs the paths that the log holds in its [`Scope`].
pub(crate) struct UnfinishedScan<'w> {
    workspace: &'w Workspace,
    walk: Walk<'w>,
    scope: Scope,
}

impl<'w> UnfinishedScan<'w> {
    pub(crate) fn everywhere(workspace: &'w Workspace) -> Result<Self, ScanError> {
        let mut walk = Walk::new(workspace);
        walk.top().map_err(|errno| ScanError::Root { source: errno.into() })?;
        Ok(Self { workspace, walk, scope: Scope::default() })
    }

    pub(crate) fn at<'t>(
        workspace: &'w Workspace,
        touched: impl IntoIterator<Item = &'t FilePath>,
    ) -> Result<Self, ScanError> {
        let mut starts = HashSet::new();
        for path in touched {
            let is_rules = path.name() == rules::GIT || path.name() == rules::CHOIR;
            match path.parent() {
                None if is_rules => return Self::everywhere(workspace),
                Some(folder) if is_rules => starts.insert(folder),
                Some(_) | None => starts.insert(path.clone()),
            };
        }
        if starts.len() > MANY {
            return Self::everywhere(workspace);
        }
        let mut scan = PathScan {
            workspace,
            rules: IgnoreRules::new(workspace),
            walk: Walk::new(workspace),
            below: HashSet::new(),
            folders: BTreeSet::new(),
        };
        // In order, so that a folder is scanned before the paths in it.
        for start in starts.into_iter().collect::<BTreeSet<_>>() {
            if !scope::holds(&scan.below, &start) {
                scan.at(&start);
            }
        }
        let PathScan { mut walk, below, folders, rules, .. } = scan;
        for folder in folders.iter().filter(|folder| !scope::holds(&below, folder)) {
            walk.surface(folder, rules.inside(folder.parent()));
        }
        let scope = Scope { below: Some(below), folders: folders.into_iter().collect(), ..Scope::default() };
        Ok(Self { workspace, walk, scope })
    }

    /// The paths that this scan covers.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Adds the known paths that the walk skipped, and sorts everything.
    pub(crate) fn finish<'k>(self, known: impl IntoIterator<Item = &'k FilePath>) -> Scan {
        let Self { workspace, mut walk, mut scope } = self;
        if !walk.ignored.is_empty() || !walk.hollow.is_empty() {
            for path in known {
                let was_skipped = walk.is_ignored(path) || walk.hollow.contains(path);
                if !was_skipped || !scope.covers(path) {
                    continue;
                }
                match workspace.observe(path) {
                    Ok(Some(seen)) => walk.found(path.clone(), seen),
                    Ok(None) => {}
                    Err(error) if error.is_absence() => {}
                    Err(_) => walk.lost(path.clone(), SkipReason::Unreadable),
                }
            }
        }
        let Walk { mut entries, mut skipped, unseen, .. } = walk;
        scope.unseen = unseen;
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|a, b| a.0 == b.0);
        skipped.sort_unstable();
        Scan { entries, skipped, scope }
    }
}

/// A scan of some paths only.
struct PathScan<'w> {
    workspace: &'w Workspace,
    rules: IgnoreRules<'w>,
    walk: Walk<'w>,
    below: HashSet<FilePath>,
    folders: BTreeSet<FilePath>,
}

impl PathScan<'_> {
    /// Descends to a path and scans the first node on the way that is not merely a folder above it.
    fn at(&mut self, start: &FilePath) {
        let mut way = start.ancestors().collect::<Vec<_>>();
        way.reverse();
        way.push(start.clone());
        for path in way {
            let seen = match self.workspace.observe(&path) {
                Ok(seen) => seen,
                Err(error) if error.is_absence() => None,
                Err(_) => return self.walk.lost(path, SkipReason::Unreadable),
            };
            let is_dir = seen.as_ref().is_some_and(|seen| seen.kind == ObservedKind::Folder);
            if is_dir && path != *start && !self.rules.matches_one(&path, true) {
                self.folders.insert(path);
                continue;
            }
            let ignored = seen.is_some() && self.rules.matches_one(&path, is_dir);
            // Of an ignored folder, only the touched path is covered.
            self.below.insert(if ignored { start.clone() } else { path.clone() });
            match seen {
                Some(_) if ignored => {
                    self.walk.ignored.insert(path);
                }
                Some(_) if is_dir => self.walk.below(path.clone(), self.rules.inside(path.parent())),
                Some(seen) => self.walk.found(path, seen),
                None => {}
            }
            return;
        }
    }
}
