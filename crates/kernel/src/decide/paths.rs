//! Actions on paths: write, delete, move, and import.

use std::collections::BTreeMap;

use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemImport;
use shared_types::{ContentHash, FilePath};

use super::Draft;
use super::plan::{Targets, plan};
use crate::{Base, Rejection, View};

pub(super) fn write(
    view: &View,
    draft: &mut Draft,
    path: &FilePath,
    node: &FileNode,
    base: Base,
) -> Result<(), Rejection> {
    check_base(view, path, node, base)?;
    draft.files = plan(view, Targets::from([(path.clone(), Some(node.clone()))]))?;
    Ok(())
}

pub(super) fn write_several(
    view: &View,
    draft: &mut Draft,
    files: &[(FilePath, FileNode)],
) -> Result<(), Rejection> {
    let mut targets = Targets::new();
    for (path, node) in files {
        if targets.insert(path.clone(), Some(node.clone())).is_some() {
            return Err(Rejection::Occupied { path: path.clone() });
        }
    }
    draft.files = plan(view, targets)?;
    Ok(())
}

fn check_base(view: &View, path: &FilePath, node: &FileNode, base: Base) -> Result<(), Rejection> {
    let actual: Option<ContentHash> = view.files.get(path).and_then(FileNode::content).map(|c| c.hash);
    let is_folder = *node == FileNode::Folder;
    let (fits, expected) = match base {
        Base::Any => (true, None),
        // A folder that exists only through the files in it has no node yet, so it can be made.
        Base::Absent => {
            (view.files.get(path).is_none() && (is_folder || view.files.count_below(path) == 0), None)
        }
        Base::Content(hash) => (actual == Some(hash), Some(hash)),
    };
    if fits { Ok(()) } else { Err(Rejection::Stale { path: path.clone(), expected, actual }) }
}

pub(super) fn delete(view: &View, draft: &mut Draft, paths: &[FilePath]) -> Result<(), Rejection> {
    let mut targets = Targets::new();
    for path in paths {
        let found = view.files.within(path);
        if found.is_empty() {
            return Err(Rejection::NotFound { path: path.clone() });
        }
        targets.extend(found.into_iter().map(|(path, _)| (path.clone(), None)));
    }
    draft.files = plan(view, targets)?;
    Ok(())
}

pub(super) fn rename(
    view: &View,
    draft: &mut Draft,
    moves: &[(FilePath, FilePath)],
) -> Result<(), Rejection> {
    let mut wanted: BTreeMap<&FilePath, &FilePath> = BTreeMap::new();
    for (from, to) in moves.iter().filter(|(from, to)| from != to) {
        if wanted.insert(from, to).is_some() {
            let reason = format!("{from} can be moved to one place only");
            return Err(Rejection::Invalid { what: "a move", reason });
        }
    }
    let mut targets = Targets::new();
    for (&from, &to) in &wanted {
        let found = view.files.within(from);
        if let Some((folder, folder_to)) = from.ancestors().find_map(|above| wanted.get_key_value(&above)) {
            match from.rebase(folder, folder_to) {
                _ if found.is_empty() => return Err(Rejection::NotFound { path: from.clone() }),
                Some(Ok(moved)) if moved == *to => continue,
                Some(_) | None => {
                    let reason = format!("{from} moves with {folder}");
                    return Err(Rejection::Invalid { what: "a move", reason });
                }
            }
        }
        if to.is_within(from) {
            return Err(Rejection::IntoItself { path: from.clone() });
        }
        if view.files.get(to).is_some() || view.files.count_below(to) > 0 {
            return Err(Rejection::Occupied { path: to.clone() });
        }
        if found.is_empty() {
            return Err(Rejection::NotFound { path: from.clone() });
        }
        for (path, node) in found {
            let Some(moved) = path.rebase(from, to) else { continue };
            let moved = moved.map_err(|reason| Rejection::BadPath { reason })?;
            // Nothing was there, so another of the moves goes to the same path.
            if targets.insert(moved.clone(), Some(node.clone())).is_some() {
                return Err(Rejection::Occupied { path: moved });
            }
            targets.insert(path.clone(), None);
        }
    }
    draft.files = plan(view, targets)?;
    Ok(())
}

pub(super) fn import(
    view: &View,
    draft: &mut Draft,
    origin: &SystemImport,
    files: &[(FilePath, FileNode)],
) -> Result<(), Rejection> {
    let taken: Vec<FilePath> = files
        .iter()
        .filter(|(path, node)| view.files.get(path).is_some_and(|today| today != node))
        .map(|(path, _)| path.clone())
        .collect();
    if !taken.is_empty() {
        return Err(Rejection::Taken { paths: taken });
    }
    draft.files = plan(view, files.iter().map(|(path, node)| (path.clone(), Some(node.clone()))).collect())?;
    draft.event(origin.clone());
    Ok(())
}
