//! Which file went where in an operation, so that both ends of a move stay together (ADR 0025).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::{ContentHash, FilePath};

use crate::operation::NetMap;

/// Pairs that an undo tells of one by one. More than that are told of by folders, so that an event stays small.
const ONE_BY_ONE: usize = 500;

/// Where a file went and where it came from, in this order.
type Pair<P> = (P, P);

/// Where files went in an operation, and where they came from.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pairs: BTreeSet<Pair<FilePath>>,
    /// Places that the operation left empty, or only passed through. Elsewhere something else stands now.
    free: BTreeSet<FilePath>,
}

impl Moves {
    /// From what happened, and from what an undo told of itself.
    pub(crate) fn of<'c>(
        changes: impl Iterator<Item = &'c FileChange>,
        told: &[&Pair<FilePath>],
        files: &NetMap<FilePath, FileNode>,
    ) -> Self {
        let seen = seen(changes).into_iter().map(|(to, from)| (to.clone(), from.clone()));
        let pairs: BTreeSet<_> = seen.chain(told.iter().flat_map(|pair| spread(pair, files))).collect();
        let is_free = |path: &&FilePath| files.get(*path).is_none_or(|net| net.after.is_none());
        let free = pairs.iter().map(|(_, from)| from).filter(is_free).cloned().collect();
        Self { pairs, free }
    }

    /// The moves that these changes take back, and that cannot be seen in them, because what went back is not quite what
    /// had come: where each file is now, and where it was. `files` is what the operation did.
    pub(crate) fn untold(
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
        let seen = seen(changes.iter());
        // Nothing changes at a place that was only passed, and yet it leads from one end to the other.
        let went = |path: &FilePath| changed.contains(path) || !files.contains_key(path);
        let back = self.pairs.iter().filter(|(to, from)| went(to) && went(from));
        let untold = back.filter(|(to, from)| !seen.contains(&(from, to)));
        let pairs: BTreeSet<_> = untold.map(|(to, from)| (from.clone(), to.clone())).collect();
        let pairs = if pairs.len() > ONE_BY_ONE { pairs.iter().map(by_folders).collect() } else { pairs };
        pairs.into_iter().collect()
    }

    /// Takes these paths out of the targets, and whatever has to stay with them: a file that does not go back to where it
    /// came from must not be taken away from where it is, and one that stays where it went is not made a second time. A
    /// place where something else stands now is not tied to where its own file went: both can be there.
    pub(crate) fn leave<T>(&self, targets: &mut BTreeMap<FilePath, T>, stays: impl Fn(&FilePath) -> bool) {
        let mut next: BTreeMap<(&FilePath, Way), Vec<&FilePath>> = BTreeMap::new();
        for (to, from) in &self.pairs {
            next.entry((from, Way::Forth)).or_default().push(to);
            if self.free.contains(from) {
                next.entry((to, Way::Back)).or_default().push(from);
            }
        }
        targets.retain(|path, _| !stays(path));
        let mut left: Vec<(&FilePath, Way)> = next.keys().copied().filter(|(path, _)| stays(path)).collect();
        while let Some((path, way)) = left.pop() {
            for end in next.remove(&(path, way)).into_iter().flatten() {
                // Through a place that is as it was a file only passed; whatever else did so is another.
                match targets.remove(end) {
                    Some(_) => left.extend([(end, Way::Back), (end, Way::Forth)]),
                    None => left.push((end, way)),
                }
            }
        }
    }
}

/// Along moves: to where a file came from, or to where it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Back,
    Forth,
}

/// The moves that changes show: told as such, or seen by a file that was found at one path and left at another. A command
/// that moves one file over another tells of no move.
fn seen<'c>(changes: impl Iterator<Item = &'c FileChange>) -> BTreeSet<Pair<&'c FilePath>> {
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

/// What tells a file from others wherever it is; empty ones are all alike.
type Identity<'c> = (Option<ContentHash>, Option<&'c str>);

fn identity(node: &FileNode) -> Option<Identity<'_>> {
    match node {
        FileNode::File { hash, size, .. } => (*size > 0).then_some((Some(*hash), None)),
        FileNode::Symlink { target } => Some((None, Some(target))),
        FileNode::Folder => None,
    }
}

/// The highest folders that a file went between under the same name: `a` and `b` for `a/x/y` and `b/x/y`.
fn by_folders((to, from): &Pair<FilePath>) -> Pair<FilePath> {
    let (mut to, mut from) = (to.clone(), from.clone());
    while to.name() == from.name()
        && let (Some(above), Some(other)) = (to.parent(), from.parent())
    {
        (to, from) = (above, other);
    }
    (to, from)
}

/// The files that a pair speaks of: the two, or those below them that changed.
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

/// The path itself and all below it.
fn below<'f>(
    files: &'f NetMap<FilePath, FileNode>,
    folder: &'f FilePath,
) -> impl Iterator<Item = &'f FilePath> {
    let from_there = files.range::<FilePath, _>(folder..).map(|(path, _)| path);
    let alike = from_there.take_while(|path| path.as_str().starts_with(folder.as_str()));
    alike.filter(|path| path.is_within(folder))
}
