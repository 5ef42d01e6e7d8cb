//! What is on disk, as the log would record it: files, links that stay inside, and empty folders.
//!
//! A scan reads no content. It leaves out what the user's ignore rules name, except paths that the log already
//! holds: those are never ignored. What it cannot record (a fifo, a name that is not UTF-8, a link that leaves) it
//! lists with the reason. It knows nothing of events; whoever compares it with the log asks [`Scan::covers`] before
//! taking an absence for a deletion.

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

use crate::workspace::{Kind, Observed, Workspace};
use walk::Walk;

/// With more touched paths than this, one look at everything is cheaper.
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
    #[error("it cannot be read, or it changed while it was looked at")]
    Unreadable,
}

/// Why there is no scan.
#[derive(Debug, Error)]
pub enum ScanError {
    #[error("the workspace's top folder cannot be read")]
    Root { source: io::Error },
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// Files, links and empty folders, by path.
    pub entries: Vec<(FilePath, Observed)>,
    /// What is there but cannot be recorded; the path is for people, not for opening.
    pub skipped: Vec<(String, SkipReason)>,
    scope: Scope,
}

impl Scan {
    /// True if the scan looked at this path and could see it: if the path is not among the entries then, there is
    /// nothing at it that the log could hold.
    pub fn covers(&self, path: &FilePath) -> bool {
        self.scope.covers(path)
    }

    /// What was seen at a path.
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
    Ok(Looked::everywhere(workspace)?.finish(known))
}

/// Scans only what was touched: the named paths, all below them, and the folders above them as far as these have
/// become empty. Of `known`, only what is at or below a touched path, or directly above one, matters. A touched rule
/// file counts as its whole folder.
pub fn scan_paths<'t, 'k>(
    workspace: &Workspace,
    touched: impl IntoIterator<Item = &'t FilePath>,
    known: impl IntoIterator<Item = &'k FilePath>,
) -> Result<Scan, ScanError> {
    Ok(Looked::at(workspace, touched)?.finish(known))
}

/// A look at the disk, to which only the paths that the log holds in its [`Scope`] have to be added.
pub(crate) struct Looked<'w> {
    workspace: &'w Workspace,
    walk: Walk<'w>,
    scope: Scope,
}

impl<'w> Looked<'w> {
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
        let mut look = Look {
            workspace,
            rules: IgnoreRules::new(workspace),
            walk: Walk::new(workspace),
            below: HashSet::new(),
            folders: BTreeSet::new(),
        };
        // In order, so that a folder is walked before what is in it is asked for.
        for start in starts.into_iter().collect::<BTreeSet<_>>() {
            if !scope::holds(&look.below, &start) {
                look.at(&start);
            }
        }
        let Look { mut walk, below, folders, rules, .. } = look;
        for folder in folders.iter().filter(|folder| !scope::holds(&below, folder)) {
            walk.surface(folder, rules.inside(folder.parent()));
        }
        let scope = Scope { below: Some(below), folders: folders.into_iter().collect(), ..Scope::default() };
        Ok(Self { workspace, walk, scope })
    }

    /// The paths that this look speaks for.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Adds the known paths that the walk passed over, and puts everything in order.
    pub(crate) fn finish<'k>(self, known: impl IntoIterator<Item = &'k FilePath>) -> Scan {
        let Self { workspace, mut walk, mut scope } = self;
        if !walk.ignored.is_empty() || !walk.hollow.is_empty() {
            for path in known {
                let passed_over = walk.is_ignored(path) || walk.hollow.contains(path);
                if !passed_over || !scope.covers(path) {
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

/// A look at some paths only.
struct Look<'w> {
    workspace: &'w Workspace,
    rules: IgnoreRules<'w>,
    walk: Walk<'w>,
    below: HashSet<FilePath>,
    folders: BTreeSet<FilePath>,
}

impl Look<'_> {
    /// Goes down to a path and looks at the first thing on the way that is not just a folder above it.
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
            let is_dir = seen.as_ref().is_some_and(|seen| seen.kind == Kind::Folder);
            if is_dir && path != *start && !self.rules.matches_one(&path, true) {
                self.folders.insert(path);
                continue;
            }
            let ignored = seen.is_some() && self.rules.matches_one(&path, is_dir);
            // Of an ignored folder, only the touched part was asked for.
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
