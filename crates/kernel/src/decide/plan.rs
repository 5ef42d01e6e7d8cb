//! From the wanted nodes at some paths to the file changes that lead there.
//!
//! Every action on files ends here, so one place keeps the tree valid: nothing is below a file, a file never replaces a
//! folder that is not empty, and links stay inside the workspace.

use std::collections::BTreeMap;

use shared_types::FilePath;
use shared_types::path::link_stays_inside;
use shared_types::payload::file::{FileChange, FileDelete, FileMove, FileNode, FileWrite};

use crate::{Rejection, View};

/// The wanted node at each path; none for a path that should be empty.
pub(super) type Targets = BTreeMap<FilePath, Option<FileNode>>;

/// The changes that lead from the view to the targets: deletions, then moves, then writes.
pub(super) fn plan(view: &View, mut targets: Targets) -> Result<Vec<FileChange>, Rejection> {
    targets.retain(|path, target| view.files.get(path) != target.as_ref());
    check_tree(view, &targets)?;

    let mut deleted = Vec::new();
    let mut written = Vec::new();
    for (path, target) in targets {
        match (view.files.get(&path), target) {
            (Some(prev), None) => deleted.push((path, prev.clone())),
            (prev, Some(node)) => written.push(FileWrite { path, node, prev: prev.cloned() }),
            (None, None) => {}
        }
    }
    let moves = pair_moves(view, &mut deleted, &mut written);

    let deletions = deleted.into_iter().map(|(path, prev)| FileChange::Delete(FileDelete { path, prev }));
    let moves = moves.into_iter().map(FileChange::Move);
    let writes = written.into_iter().map(FileChange::Write);
    Ok(deletions.chain(moves).chain(writes).collect())
}

/// Finds files that disappear at one path and appear unchanged at another, and takes them out of both lists. Of several
/// candidates it prefers one with the same name.
fn pair_moves(
    view: &View,
    deleted: &mut Vec<(FilePath, FileNode)>,
    written: &mut Vec<FileWrite>,
) -> Vec<FileMove> {
    // All empty files are equal, so they are paired only if there is a single pair.
    let alone = deleted.len() == 1 && written.len() == 1;
    let mut sources: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, (_, node)) in deleted.iter().enumerate() {
        if let Some(content) = node.content().filter(|content| content.size > 0 || alone) {
            sources.entry(content.hash).or_default().push(index);
        }
    }
    let mut gone = vec![false; deleted.len()];
    let mut moves = Vec::new();
    written.retain(|write| {
        let candidates = write.node.content().and_then(|content| sources.get_mut(&content.hash));
        let (Some(candidates), None) = (candidates, &write.prev) else { return true };
        let fits = |index: &usize| deleted[*index].1 == write.node;
        let same_name = |index: &usize| deleted[*index].0.name() == write.path.name();
        let chosen = candidates
            .iter()
            .position(|i| fits(i) && same_name(i))
            .or_else(|| candidates.iter().position(fits));
        let Some(chosen) = chosen.filter(|_| is_open(view, &write.path)) else { return true };
        let index = candidates.remove(chosen);
        gone[index] = true;
        let (from, node) = deleted[index].clone();
        moves.push(FileMove { from, to: write.path.clone(), node });
        false
    });
    let mut index = 0;
    deleted.retain(|_| {
        index += 1;
        !gone[index - 1]
    });
    moves
}

/// Whether a file can be moved to this path before the writes, so that the tree is valid after every single change.
fn is_open(view: &View, path: &FilePath) -> bool {
    let is_folder = |above: FilePath| view.files.get(&above).is_none_or(|node| *node == FileNode::Folder);
    view.files.count_below(path) == 0 && path.ancestors().all(is_folder)
}

fn check_tree(view: &View, targets: &Targets) -> Result<(), Rejection> {
    for (path, target) in targets {
        let Some(node) = target else { continue };
        if let FileNode::Symlink { target } = node
            && !link_stays_inside(path, target)
        {
            return Err(Rejection::LinkLeaves { path: path.clone() });
        }
        if let Some(path) = blocking_file(view, targets, path) {
            return Err(Rejection::NotAFolder { path });
        }
        if *node != FileNode::Folder && remains_below(view, targets, path) {
            return Err(Rejection::IsAFolder { path: path.clone() });
        }
    }
    Ok(())
}

/// Whether the tree that the targets lead to has no place for a node.
pub(super) fn is_blocked(view: &View, targets: &Targets, path: &FilePath, node: &FileNode) -> bool {
    blocking_file(view, targets, path).is_some()
        || *node != FileNode::Folder && remains_below(view, targets, path)
}

/// The file or link above a path in the tree that the targets lead to, if there is one.
pub(super) fn blocking_file(view: &View, targets: &Targets, path: &FilePath) -> Option<FilePath> {
    let node_at = |above: &str| match targets.get(above) {
        Some(target) => target.as_ref(),
        None => view.files.get_at(above),
    };
    let blocks = |above: &str| node_at(above).is_some_and(|node| *node != FileNode::Folder);
    if !path.ancestor_texts().any(blocks) {
        return None;
    }
    path.ancestors().find(|above| blocks(above.as_str()))
}

/// Whether nodes below the path remain in the tree that the targets lead to. Nodes that the targets add below it are
/// found by the check of their own ancestors.
fn remains_below(view: &View, targets: &Targets, path: &FilePath) -> bool {
    let below = view.files.count_below(path) as usize;
    if below == 0 {
        return false;
    }
    let removed = targets
        .range::<FilePath, _>(path..)
        .take_while(|(other, _)| other.as_str().starts_with(path.as_str()))
        .filter(|(other, target)| *other != path && other.is_within(path) && target.is_none())
        .count();
    removed < below
}
