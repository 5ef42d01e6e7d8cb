//! Which paths a scan speaks for. That a path is missing from a scan means that it is gone only if the scan looked
//! at its place and could see it.

use std::collections::HashSet;

use shared_types::FilePath;

/// What was looked at.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Whole folders and single paths; `None` is the whole workspace.
    pub(crate) below: Option<HashSet<FilePath>>,
    /// Folders that were looked at for themselves only.
    pub(crate) folders: HashSet<FilePath>,
    /// What could not be seen, and all below it.
    pub(crate) unseen: HashSet<FilePath>,
}

impl Scope {
    pub(crate) fn covers(&self, path: &FilePath) -> bool {
        let asked = match &self.below {
            None => true,
            Some(below) => holds(below, path) || self.folders.contains(path),
        };
        asked && !holds(&self.unseen, path)
    }
}

/// True if the set holds the path or a folder above it.
pub(crate) fn holds(set: &HashSet<FilePath>, path: &FilePath) -> bool {
    if set.is_empty() {
        return false;
    }
    let text = path.as_str();
    let above = text.match_indices('/').map(|(end, _)| &text[..end]);
    set.contains(text) || above.into_iter().any(|folder| set.contains(folder))
}
