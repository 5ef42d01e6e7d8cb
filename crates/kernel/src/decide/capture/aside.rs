//! The log's version wins: the version of a conflicting edit is kept under another name, with a note that says which.

use std::collections::{BTreeMap, BTreeSet};

use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use super::names_beside;
use crate::View;
use crate::command::OutsideEdit;
use crate::decide::plan::{Targets, blocking_file, is_blocked};

/// Renames the versions of clashing edits and of edits that the log's tree has no place for. Returns a note for each.
pub(super) fn put_aside(
    view: &View,
    targets: &mut Targets,
    edits: &[OutsideEdit],
    clashes: Vec<&OutsideEdit>,
) -> Vec<String> {
    let mut aside = Aside { view, targets, clashes, repositories: BTreeSet::new(), folders: BTreeMap::new() };
    aside.keep_repositories();
    aside.leave_out_blocked(edits);
    let mut notes: Vec<String> = Vec::new();
    for repository in &aside.repositories {
        notes.push(format!("{repository} changed meanwhile; the command's changes in it are left out"));
    }
    let clashes = std::mem::take(&mut aside.clashes);
    for edit in clashes.into_iter().filter(|edit| edit.path.repository().is_none()) {
        notes.push(aside.resolve(edit));
    }
    notes
}

struct Aside<'a> {
    view: &'a View,
    targets: &'a mut Targets,
    clashes: Vec<&'a OutsideEdit>,
    /// Git repositories that keep the log's version.
    repositories: BTreeSet<FilePath>,
    /// By the path of a file in the log: the folder for edits that need a folder at that path.
    folders: BTreeMap<FilePath, Option<FilePath>>,
}

impl<'a> Aside<'a> {
    /// A git repository keeps the log's version as a whole, because a mixture of both versions would be broken.
    fn keep_repositories(&mut self) {
        self.repositories.extend(self.clashes.iter().filter_map(|edit| edit.path.repository()));
        let kept = &self.repositories;
        self.targets.retain(|path, _| path.repository().is_none_or(|repository| !kept.contains(&repository)));
    }

    /// An edit also clashes if it needs a folder where the log has a file, or a file where the log has a folder with
    /// files. Leaving one edit out may block another, so this repeats until no edit is blocked.
    fn leave_out_blocked(&mut self, edits: &'a [OutsideEdit]) {
        loop {
            let blocked: Vec<&OutsideEdit> = edits.iter().filter(|edit| self.is_blocked(edit)).collect();
            if blocked.is_empty() {
                return;
            }
            for edit in &blocked {
                self.targets.remove(&edit.path);
            }
            self.clashes.extend(blocked);
            self.keep_repositories();
        }
    }

    fn is_blocked(&self, edit: &OutsideEdit) -> bool {
        let node = self.targets.get(&edit.path).and_then(Option::as_ref);
        node.is_some_and(|node| is_blocked(self.view, self.targets, &edit.path, node))
    }

    /// The log keeps the path: a deletion and a new folder are left out, a file is kept under another name.
    fn resolve(&mut self, edit: &OutsideEdit) -> String {
        let path = &edit.path;
        let meanwhile = match self.view.files.get(path) {
            Some(today) if Some(today) != edit.base.as_ref() => format!("{path} changed meanwhile"),
            None if edit.base.is_some() => format!("{path} was deleted meanwhile"),
            Some(_) | None => format!("something else is in the way of {path} now"),
        };
        match &edit.now {
            None => format!("{meanwhile} and was not deleted"),
            Some(FileNode::Folder) => format!("{meanwhile}; the command's folder was not made"),
            Some(node) => match self.keep(path, node) {
                Some(kept) => format!("{meanwhile}; the command's version is {kept}"),
                None => format!("{meanwhile}; the command's version could not be kept"),
            },
        }
    }

    /// Keeps a node under a free name and returns that name.
    fn keep(&mut self, path: &FilePath, node: &FileNode) -> Option<FilePath> {
        let place = match blocking_file(self.view, self.targets, path) {
            Some(above) => {
                let folder = self.folder_beside(&above)?;
                path.rebase(&above, &folder)?.ok()?
            }
            None => {
                let fits = |place: &FilePath| self.node_at(place) == Some(node) || self.is_free(place);
                names_beside(path, node.content()).find(fits)?
            }
        };
        self.targets.insert(place.clone(), Some(node.clone()));
        Some(place)
    }

    fn folder_beside(&mut self, above: &FilePath) -> Option<FilePath> {
        if let Some(known) = self.folders.get(above) {
            return known.clone();
        }
        let folder = names_beside(above, None).find(|place| self.is_free(place));
        self.folders.insert(above.clone(), folder.clone());
        folder
    }

    fn node_at(&self, place: &FilePath) -> Option<&FileNode> {
        match self.targets.get(place) {
            Some(target) => target.as_ref(),
            None => self.view.files.get(place),
        }
    }

    fn is_free(&self, place: &FilePath) -> bool {
        let below = self.targets.range::<FilePath, _>(place..);
        let mut below = below.take_while(|(path, _)| path.as_str().starts_with(place.as_str()));
        self.node_at(place).is_none()
            && self.view.files.count_below(place) == 0
            && !below.any(|(path, target)| path.is_within(place) && target.is_some())
    }
}
