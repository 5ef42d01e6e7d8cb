//! The paths that a scan covers. A path that is missing from a scan counts as deleted only if the scan covers it.

use std::collections::HashSet;

use shared_types::FilePath;

/// The paths that a scan covers.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Whole folders and single paths; `None` is the whole workspace.
    pub(crate) below: Option<HashSet<FilePath>>,
    /// Folders that were scanned without their entries.
    pub(crate) folders: HashSet<FilePath>,
    /// Paths that could not be read, with all below them.
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

/// Whether the set holds the path or a folder above it.
pub(crate) fn holds(set: &HashSet<FilePath>, path: &FilePath) -> bool {
    if set.is_empty() {
        return false;
    }
    let text = path.as_str();
    let above = text.match_indices('/').map(|(end, _)| &text[..end]);
    set.contains(text) || above.into_iter().any(|folder| set.contains(folder))
}
