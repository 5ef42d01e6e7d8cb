//! Which paths the user wants left alone: `.gitignore` and `.choirignore` files inside the workspace, and nothing
//! else (no global configuration, no folders above, no `.git/info/exclude`).
//!
//! The nearest rule that matches wins, as in git; `.choirignore` has the last word over every `.gitignore`. What is
//! below an ignored folder is ignored. A `.gitignore` says nothing about a `.git` folder, as in git: half a
//! repository is worse than none. Rule files are read through the workspace, so a link in their place is no rule.

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

/// The rules that hold in one folder: its own, then those of the folders above it.
#[derive(Debug)]
pub(crate) struct FolderRules {
    above: Option<Arc<FolderRules>>,
    /// How much of a path below this folder is the folder.
    prefix: usize,
    git: Gitignore,
    choir: Gitignore,
}

impl FolderRules {
    /// No rule at all.
    pub(crate) fn none() -> Arc<Self> {
        Arc::new(Self { above: None, prefix: 0, git: Gitignore::empty(), choir: Gitignore::empty() })
    }

    /// The rules inside a folder: those given, and what its own files add.
    pub(crate) fn enter(self: &Arc<Self>, fd: BorrowedFd<'_>, folder: Option<&str>) -> Arc<Self> {
        let (git, choir) = (load(fd, GIT), load(fd, CHOIR));
        if git.is_empty() && choir.is_empty() {
            return Arc::clone(self);
        }
        let prefix = folder.map_or(0, |path| path.len() + 1);
        Arc::new(Self { above: Some(Arc::clone(self)), prefix, git, choir })
    }

    /// Whether these rules match a path directly; what the folders above it say is not asked.
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

/// The matcher of one file; lines that are no pattern are passed over, as git does.
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

/// Answers for single paths, from the rules that are on disk when a folder is first asked about.
#[derive(Debug)]
pub struct IgnoreRules<'w> {
    workspace: &'w Workspace,
    folders: RefCell<HashMap<Option<FilePath>, Arc<FolderRules>>>,
}

impl<'w> IgnoreRules<'w> {
    pub fn new(workspace: &'w Workspace) -> Self {
        Self { workspace, folders: RefCell::default() }
    }

    /// True if the path, or a folder above it, is ignored. Whether it is known to the log is the caller's question.
    pub fn is_ignored(&self, path: &FilePath, is_dir: bool) -> bool {
        let mut above = path.ancestors().collect::<Vec<_>>();
        above.reverse();
        above.iter().any(|folder| self.matches_one(folder, true)) || self.matches_one(path, is_dir)
    }

    /// The same without asking about the folders above.
    pub(crate) fn matches_one(&self, path: &FilePath, is_dir: bool) -> bool {
        let rules = self.inside(path.parent());
        rules.match_one(path.as_str(), is_dir, path.repository().is_some())
    }

    /// The rules that hold for what is directly in a folder; `None` is the workspace itself.
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
