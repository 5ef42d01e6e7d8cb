//! Ignore rules: the `.gitignore` and `.choirignore` files inside the workspace, and nothing else (no global
//! configuration, no folders above, no `.git/info/exclude`).
//!
//! The nearest matching rule wins, as in git; `.choirignore` overrides every `.gitignore`. Everything below an ignored
//! folder is ignored. A `.gitignore` does not apply inside a `.git` folder, as in git: a partial repository would be
//! broken. Rule files are read through the workspace, so a link in their place is not followed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use shared_types::FilePath;

use crate::workspace::Workspace;

pub(crate) const GIT: &str = ".gitignore";
pub(crate) const CHOIR: &str = ".choirignore";

/// A rule file that is larger than this is cut off.
const MAX_RULES: u64 = 1 << 20;

/// The rules for one folder: its own, then those of the folders above it.
#[derive(Debug)]
pub(crate) struct FolderRules {
    above: Option<Arc<FolderRules>>,
    /// The length of this folder's own path, with the slash.
    prefix: usize,
    git: Gitignore,
    choir: Gitignore,
}

impl FolderRules {
    /// No rule at all.
    pub(crate) fn none() -> Arc<Self> {
        Arc::new(Self { above: None, prefix: 0, git: Gitignore::empty(), choir: Gitignore::empty() })
    }

    /// The rules inside a folder: these, and those of its own files.
    pub(crate) fn enter(self: &Arc<Self>, fd: BorrowedFd<'_>, folder: Option<&str>) -> Arc<Self> {
        let (git, choir) = (load(fd, GIT), load(fd, CHOIR));
        if git.is_empty() && choir.is_empty() {
            return Arc::clone(self);
        }
        let prefix = folder.map_or(0, |path| path.len() + 1);
        Arc::new(Self { above: Some(Arc::clone(self)), prefix, git, choir })
    }

    /// Whether these rules match the path itself, without its parent folders.
    pub(crate) fn match_one(&self, path: &str, is_dir: bool, in_repository: bool) -> bool {
        let mut git = Match::None;
        let mut level = Some(self);
        while let Some(rules) = level {
            let below = path.get(rules.prefix..).unwrap_or_default();
            match rules.choir.matched(below, is_dir) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
            if git.is_none() && !in_repository {
                git = rules.git.matched(below, is_dir);
            }
            level = rules.above.as_deref();
        }
        git.is_ignore()
    }
}

/// The matcher of one file. Lines that are not patterns are skipped, as in git.
fn load(folder: BorrowedFd<'_>, name: &str) -> Gitignore {
    let Some(text) = read(folder, name) else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(".");
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read(folder: BorrowedFd<'_>, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    if FileType::from_raw_mode(fstat(&file).ok()?.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(MAX_RULES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rules for single paths, as they are on disk when a folder is first needed.
#[derive(Debug)]
pub struct IgnoreRules<'w> {
    workspace: &'w Workspace,
    folders: RefCell<HashMap<Option<FilePath>, Arc<FolderRules>>>,
}

impl<'w> IgnoreRules<'w> {
    pub fn new(workspace: &'w Workspace) -> Self {
        Self { workspace, folders: RefCell::default() }
    }

    /// Whether the path or a folder above it is ignored. The caller checks whether the log holds the path.
    pub fn is_ignored(&self, path: &FilePath, is_dir: bool) -> bool {
        let mut above = path.ancestors().collect::<Vec<_>>();
        above.reverse();
        above.iter().any(|folder| self.matches_one(folder, true)) || self.matches_one(path, is_dir)
    }

    /// The same without the folders above.
    pub(crate) fn matches_one(&self, path: &FilePath, is_dir: bool) -> bool {
        let rules = self.inside(path.parent());
        rules.match_one(path.as_str(), is_dir, path.repository().is_some())
    }

    /// The rules for the entries of a folder; `None` is the workspace itself.
    pub(crate) fn inside(&self, folder: Option<FilePath>) -> Arc<FolderRules> {
        if let Some(known) = self.folders.borrow().get(&folder) {
            return Arc::clone(known);
        }
        let above = match &folder {
            Some(path) => self.inside(path.parent()),
            None => FolderRules::none(),
        };
        let fd = match &folder {
            Some(path) => self.workspace.open_folder(path).ok().flatten(),
            None => self.workspace.open_root().ok(),
        };
        let rules = match fd {
            Some(fd) => above.enter(fd.as_fd(), folder.as_ref().map(FilePath::as_str)),
            None => above,
        };
        self.folders.borrow_mut().insert(folder, Arc::clone(&rules));
        rules
    }
}
