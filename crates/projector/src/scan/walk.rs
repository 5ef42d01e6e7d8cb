//! The walk over folders: one open and one stat per folder, one stat per file; only ignore files and links are read.
//!
//! Folders are opened relative to their parent and never through a link, so a folder that is replaced by a link during
//! the walk is not followed. Mounts inside the workspace are not entered.

use std::collections::HashSet;
use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, RawDir, fstat, readlinkat, statat};
use rustix::io::Errno;
use shared_types::path::link_stays_inside;
use shared_types::{FilePath, PathError};

use super::SkipReason;
use super::rules::FolderRules;
use super::scope::holds;
use crate::workspace::{Observed, ObservedKind, Stat, Workspace, link_kind, open_for_reading};

const BUFFER: usize = 64 * 1024;
/// Deeper folders are opened from the top again, so that a deep tree does not use up all file descriptors.
const HELD_DEPTH: usize = 64;

/// A folder that is still to be read.
struct Pending {
    path: FilePath,
    above: Option<Arc<OwnedFd>>,
    rules: Arc<FolderRules>,
    depth: usize,
    in_repository: bool,
}

/// The folder that is being read.
struct Current {
    fd: Arc<OwnedFd>,
    rules: Arc<FolderRules>,
    depth: usize,
    in_repository: bool,
}

/// A walk and what it has found so far.
pub(super) struct Walk<'w> {
    workspace: &'w Workspace,
    stack: Vec<Pending>,
    buffer: Vec<u8>,
    /// The path of the current entry; it starts with the folder that is being read.
    text: String,
    /// Only the first folder is read, and only until an entry is found that is not ignored.
    shallow: bool,
    pub(super) entries: Vec<(FilePath, Observed)>,
    pub(super) skipped: Vec<(String, SkipReason)>,
    pub(super) ignored: HashSet<FilePath>,
    /// Folders with only ignored or skipped entries.
    pub(super) hollow: HashSet<FilePath>,
    pub(super) unseen: HashSet<FilePath>,
}

impl<'w> Walk<'w> {
    pub(super) fn new(workspace: &'w Workspace) -> Self {
        Self {
            workspace,
            stack: Vec::new(),
            buffer: Vec::with_capacity(BUFFER),
            text: String::new(),
            shallow: false,
            entries: Vec::new(),
            skipped: Vec::new(),
            ignored: HashSet::new(),
            hollow: HashSet::new(),
            unseen: HashSet::new(),
        }
    }

    /// Walks the whole workspace.
    pub(super) fn top(&mut self) -> Result<(), Errno> {
        let fd = Arc::new(self.workspace.open_root()?);
        let rules = FolderRules::none().enter(fd.as_fd(), None);
        self.text.clear();
        self.read_folder(&Current { fd, rules, depth: 0, in_repository: false })?;
        self.rest();
        Ok(())
    }

    /// Walks one folder; `rules` are those of its parent.
    pub(super) fn below(&mut self, path: FilePath, rules: Arc<FolderRules>) {
        let in_repository = path.repository().is_some();
        self.stack.push(Pending { path, above: None, rules, depth: 0, in_repository });
        self.rest();
    }

    /// Reads the entries of a folder only to find out whether it is empty for the log; reports none of them.
    pub(super) fn surface(&mut self, path: &FilePath, rules: Arc<FolderRules>) {
        let mut look = Walk::new(self.workspace);
        look.shallow = true;
        look.below(path.clone(), rules);
        self.entries.extend(look.entries.into_iter().filter(|(found, _)| found == path));
        self.hollow.extend(look.hollow);
        self.unseen.extend(look.unseen.into_iter().filter(|lost| lost == path));
    }

    /// Adds an observation that was made outside the walk.
    pub(super) fn found(&mut self, path: FilePath, seen: Observed) {
        match &seen.kind {
            ObservedKind::Symlink { target } if !link_stays_inside(&path, target) => {
                self.skipped.push((path.to_string(), SkipReason::LinkLeaves));
            }
            ObservedKind::File { .. } | ObservedKind::Symlink { .. } | ObservedKind::Folder => {
                self.entries.push((path, seen))
            }
            ObservedKind::Other if seen.stat.file_type() == FileType::Symlink => {
                self.skipped.push((path.to_string(), SkipReason::NotUtf8));
            }
            ObservedKind::Other => self.skipped.push((path.to_string(), SkipReason::Special)),
        }
    }

    /// Records that a path could not be read.
    pub(super) fn lost(&mut self, path: FilePath, reason: SkipReason) {
        self.skipped.push((path.to_string(), reason));
        self.unseen.insert(path);
    }

    /// Whether a rule that the walk found ignores the path.
    pub(super) fn is_ignored(&self, path: &FilePath) -> bool {
        holds(&self.ignored, path)
    }

    fn rest(&mut self) {
        while let Some(next) = self.stack.pop() {
            self.folder(next);
            if self.shallow {
                self.stack.clear();
            }
        }
    }

    fn folder(&mut self, next: Pending) {
        let opened = match &next.above {
            Some(above) => open_for_reading(above.as_fd(), next.path.name()),
            None => match self.workspace.open_folder(&next.path) {
                Ok(Some(fd)) => Ok(fd),
                Ok(None) => Err(Errno::NOENT),
                Err(_) => Err(Errno::ACCESS),
            },
        };
        let looked = opened.and_then(|fd| fstat(&fd).map(|raw| (fd, raw)));
        let (fd, raw) = match looked {
            Ok(found) => found,
            Err(Errno::NOENT) => return,
            Err(_) => return self.lost(next.path, SkipReason::Unreadable),
        };
        if raw.st_dev != self.workspace.device() {
            return self.lost(next.path, SkipReason::OtherFileSystem);
        }
        let rules = next.rules.enter(fd.as_fd(), Some(next.path.as_str()));
        let Pending { path, depth, in_repository, .. } = next;
        self.text.clear();
        self.text.push_str(path.as_str());
        self.text.push('/');
        match self.read_folder(&Current { fd: Arc::new(fd), rules, depth, in_repository }) {
            Ok(Contents::Nothing) => {
                self.entries.push((path, Observed { stat: Stat::of(&raw), kind: ObservedKind::Folder }));
            }
            Ok(Contents::Hidden) => {
                self.hollow.insert(path);
            }
            Ok(Contents::Visible) => {}
            Err(_) => self.lost(path, SkipReason::Unreadable),
        }
    }

    fn read_folder(&mut self, folder: &Current) -> Result<Contents, Errno> {
        let start = self.text.len();
        let mut buffer = mem::take(&mut self.buffer);
        let mut contents = Contents::Nothing;
        let mut entries = RawDir::new(folder.fd.as_fd(), buffer.spare_capacity_mut());
        let mut outcome = Ok(());
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => {
                    outcome = Err(errno);
                    break;
                }
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.text.truncate(start);
            contents = contents.max(self.entry(folder, name, entry.file_type()));
            if self.shallow && contents == Contents::Visible {
                break;
            }
        }
        self.buffer = buffer;
        self.text.truncate(start);
        outcome.map(|()| contents)
    }

    /// Handles one entry of a folder; `text` is the folder's path, to which the entry's name is appended.
    fn entry(&mut self, folder: &Current, name: &CStr, kind: FileType) -> Contents {
        let Ok(text) = name.to_str() else {
            self.skip_name(name, SkipReason::NotUtf8);
            return Contents::Hidden;
        };
        let at_top = self.text.is_empty();
        self.text.push_str(text);
        let path = match FilePath::parse(&self.text) {
            Ok(path) => path,
            Err(PathError::Reserved) if at_top && text == ".choir" => return Contents::Nothing,
            Err(error) => {
                let reason =
                    if error == PathError::Reserved { SkipReason::Reserved } else { SkipReason::TooLong };
                self.skipped.push((self.text.clone(), reason));
                return Contents::Hidden;
            }
        };
        let mut kind = kind;
        if kind == FileType::Unknown {
            // Some file systems do not return the type in the listing.
            match statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(raw) => kind = FileType::from_raw_mode(raw.st_mode),
                Err(Errno::NOENT) => return Contents::Nothing,
                Err(_) => {
                    self.lost(path, SkipReason::Unreadable);
                    return Contents::Hidden;
                }
            }
        }
        let is_dir = kind == FileType::Directory;
        let in_repository = folder.in_repository || text == ".git";
        if folder.rules.match_one(path.as_str(), is_dir, in_repository) {
            self.ignored.insert(path);
            return Contents::Hidden;
        }
        if is_dir {
            let depth = folder.depth + 1;
            let above = (depth < HELD_DEPTH).then(|| Arc::clone(&folder.fd));
            self.stack.push(Pending { path, above, rules: Arc::clone(&folder.rules), depth, in_repository });
            return Contents::Visible;
        }
        self.leaf(folder.fd.as_fd(), name, path)
    }

    fn leaf(&mut self, folder: BorrowedFd<'_>, name: &CStr, path: FilePath) -> Contents {
        let looked = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).and_then(|raw| {
            let stat = Stat::of(&raw);
            let kind = if stat.file_type() == FileType::Symlink {
                link_kind(readlinkat(folder, name, Vec::new())?.as_bytes())
            } else {
                stat.kind()
            };
            Ok(Observed { stat, kind })
        });
        match looked {
            // A folder replaced a file a moment ago: the next scan walks it.
            Ok(seen) if seen.kind == ObservedKind::Folder => self.lost(path, SkipReason::Unreadable),
            Ok(seen) => {
                let before = self.entries.len();
                self.found(path, seen);
                let visible = self.entries.len() > before;
                return if visible { Contents::Visible } else { Contents::Hidden };
            }
            Err(Errno::NOENT) => return Contents::Nothing,
            Err(_) => self.lost(path, SkipReason::Unreadable),
        }
        Contents::Hidden
    }

    fn skip_name(&mut self, name: &CStr, reason: SkipReason) {
        self.skipped.push((format!("{}{}", self.text, name.to_string_lossy()), reason));
    }
}

/// Whether a folder holds anything for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Contents {
    Nothing,
    Hidden,
    Visible,
}
