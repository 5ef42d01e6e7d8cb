//! The moves of an operation, so that an undo treats both ends of a move together (ADR 0025).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::{ContentHash, FilePath};

use crate::net_change::NetMap;

/// An undo event lists up to this many moves one by one. More are listed by folder, so that the event stays small.
const MAX_LISTED: usize = 500;

/// A move: the path that a file went to, and the path it came from, in this order.
type Pair<P> = (P, P);

/// All moves of an operation.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pairs: BTreeSet<Pair<FilePath>>,
    /// Source paths that the operation left empty, or that a file only passed through. At other source paths the
    /// operation put another file.
    free: BTreeSet<FilePath>,
}

impl Moves {
    /// Finds the moves in file changes. `listed` are those that an undo event lists itself.
    pub(crate) fn of<'c>(
        changes: impl Iterator<Item = &'c FileChange>,
        listed: &[&Pair<FilePath>],
        files: &NetMap<FilePath, FileNode>,
    ) -> Self {
        let seen = shown_moves(changes).into_iter().map(|(to, from)| (to.clone(), from.clone()));
        let pairs: BTreeSet<_> = seen.chain(listed.iter().flat_map(|pair| spread(pair, files))).collect();
        let is_free = |path: &&FilePath| files.get(*path).is_none_or(|net| net.after.is_none());
        let free = pairs.iter().map(|(_, from)| from).filter(is_free).cloned().collect();
        Self { pairs, free }
    }

    /// The moves that these changes revert but do not show, because a file was edited between the move and its undo:
    /// the path of each file now, and before. `files` is the net effect of the operation.
    pub(crate) fn not_shown_by(
        &self,
        changes: &[FileChange],
        files: &NetMap<FilePath, FileNode>,
    ) -> Vec<Pair<FilePath>> {
        let mut changed = BTreeSet::new();
        for change in changes {
            match change {
                FileChange::Write(p) => drop(changed.insert(&p.path)),
                FileChange::Delete(p) => drop(changed.insert(&p.path)),
                FileChange::Move(p) => changed.extend([&p.from, &p.to]),
            }
        }
        let seen = shown_moves(changes.iter());
        // A path that a file only passed through does not change, but it connects the two ends.
        let went = |path: &FilePath| changed.contains(path) || !files.contains_key(path);
        let back = self.pairs.iter().filter(|(to, from)| went(to) && went(from));
        let hidden = back.filter(|(to, from)| !seen.contains(&(from, to)));
        let pairs: BTreeSet<_> = hidden.map(|(to, from)| (from.clone(), to.clone())).collect();
        let pairs = if pairs.len() > MAX_LISTED { pairs.iter().map(by_folders).collect() } else { pairs };
        pairs.into_iter().collect()
    }

    /// Removes these paths from the targets, with the other ends of their moves: a file that is not restored at its
    /// source must not be removed from its destination, and a file that stays at its destination must not be created a
    /// second time at its source. A source path where the operation put another file is independent of its old file:
    /// both can exist.
    pub(crate) fn leave_out<T>(
        &self,
        targets: &mut BTreeMap<FilePath, T>,
        stays: impl Fn(&FilePath) -> bool,
    ) {
        let mut next: BTreeMap<(&FilePath, Direction), Vec<&FilePath>> = BTreeMap::new();
        for (to, from) in &self.pairs {
            next.entry((from, Direction::Forth)).or_default().push(to);
            if self.free.contains(from) {
                next.entry((to, Direction::Back)).or_default().push(from);
            }
        }
        targets.retain(|path, _| !stays(path));
        let mut left: Vec<(&FilePath, Direction)> =
            next.keys().copied().filter(|(path, _)| stays(path)).collect();
        while let Some((path, direction)) = left.pop() {
            for end in next.remove(&(path, direction)).into_iter().flatten() {
                // A path without a target was only passed through: follow the same file in the same direction.
                match targets.remove(end) {
                    Some(_) => left.extend([(end, Direction::Back), (end, Direction::Forth)]),
                    None => left.push((end, direction)),
                }
            }
        }
    }
}

/// A direction along moves: to the source or to the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Back,
    Forth,
}

/// The moves that changes show: move events, and a content that disappears at one path and appears at another. A
/// command that moves one file over another leaves no move event.
fn shown_moves<'c>(changes: impl Iterator<Item = &'c FileChange>) -> BTreeSet<Pair<&'c FilePath>> {
    let mut moves = BTreeSet::new();
    let mut found: HashMap<Identity<'_>, Vec<&FilePath>> = HashMap::new();
    let mut left = Vec::new();
    for change in changes {
        let (path, before, after) = match change {
            FileChange::Move(p) => {
                moves.insert((&p.to, &p.from));
                continue;
            }
            FileChange::Write(p) => (&p.path, p.prev.as_ref(), Some(&p.node)),
            FileChange::Delete(p) => (&p.path, Some(&p.prev), None),
        };
        if let Some(what) = before.and_then(identity) {
            found.entry(what).or_default().push(path);
        }
        left.extend(after.and_then(identity).map(|what| (what, path)));
    }
    let by_content = left.into_iter().filter_map(|(what, path)| {
        let places = found.get_mut(&what)?;
        let from = places.iter().rposition(|from| *from != path)?;
        Some((path, places.remove(from)))
    });
    moves.extend(by_content);
    moves
}

/// What identifies a file at any path. Empty files have no identity.
type Identity<'c> = (Option<ContentHash>, Option<&'c str>);

fn identity(node: &FileNode) -> Option<Identity<'_>> {
    match node {
        FileNode::File { hash, size, .. } => (*size > 0).then_some((Some(*hash), None)),
        FileNode::Symlink { target } => Some((None, Some(target))),
        FileNode::Folder => None,
    }
}

/// The topmost folders of a move that keeps the path below them: `a` and `b` for `a/x/y` and `b/x/y`.
fn by_folders((to, from): &Pair<FilePath>) -> Pair<FilePath> {
    let (mut to, mut from) = (to.clone(), from.clone());
    while to.name() == from.name()
        && let (Some(above), Some(other)) = (to.parent(), from.parent())
    {
        (to, from) = (above, other);
    }
    (to, from)
}

/// The files that a pair stands for: its two paths, or the changed files below them.
fn spread(pair: &Pair<FilePath>, files: &NetMap<FilePath, FileNode>) -> BTreeSet<Pair<FilePath>> {
    let (to, from) = pair;
    let went = below(files, to).filter_map(|path| Some((path.clone(), path.rebase(to, from)?.ok()?)));
    let came = below(files, from).filter_map(|path| Some((path.rebase(from, to)?.ok()?, path.clone())));
    let mut pairs: BTreeSet<_> = went.chain(came).collect();
    if pairs.is_empty() {
        pairs.insert(pair.clone());
    }
    pairs
}

/// The path itself and all paths below it.
fn below<'f>(
    files: &'f NetMap<FilePath, FileNode>,
    folder: &'f FilePath,
) -> impl Iterator<Item = &'f FilePath> {
    let from_there = files.range::<FilePath, _>(folder..).map(|(path, _)| path);
    let alike = from_there.take_while(|path| path.as_str().starts_with(folder.as_str()));
    alike.filter(|path| path.is_within(folder))
}
