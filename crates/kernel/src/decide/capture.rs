//! Edits made outside the log become events: those found on disk, and those of a command that ran on a copy. Nothing
//! is lost: where the log changed the same file meanwhile, the two are merged, and where that fails both versions are
//! kept side by side.

mod aside;

use shared_types::payload::file::FileNode;
use shared_types::{ContentRef, FilePath};

use super::Draft;
use super::plan::{Targets, plan};
use super::reversal::{Merged, merge_nodes};
use crate::command::{Contents, OutsideEdit};
use crate::{Rejection, View};

/// Whose version keeps the path where two cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Winner {
    /// The edit's: it is on disk already, before the eyes of the person who made it.
    Edit,
    /// The log's: the person went on working while something else made the edit.
    Log,
}

/// Plans the edits. What the log's winning put aside is told in sentences.
pub(super) fn capture(
    view: &View,
    draft: &mut Draft,
    edits: &[OutsideEdit],
    contents: &Contents,
    winner: Winner,
) -> Result<Vec<String>, Rejection> {
    let mut targets = Targets::new();
    let mut missing = Vec::new();
    let mut clashes = Vec::new();
    let mut merged = Vec::new();
    for edit in edits {
        let today = view.files.get(&edit.path);
        let (base, now) = (edit.base.as_ref(), edit.now.as_ref());
        if now == base || now == today {
            continue;
        }
        if today == base {
            targets.insert(edit.path.clone(), edit.now.clone());
            continue;
        }
        match merge_nodes(&edit.path, base, today, now, |hash| contents.get(hash).map(Vec::as_slice)) {
            Merged::Node(node, bytes) => {
                merged.extend(bytes.map(|bytes| (&edit.path, bytes)));
                targets.insert(edit.path.clone(), Some(node));
            }
            Merged::Missing(hashes) => missing.extend(hashes),
            Merged::Clash => clashes.push(edit),
        }
    }
    if !missing.is_empty() {
        return Err(Rejection::Missing { hashes: missing });
    }
    let told = match winner {
        Winner::Edit => {
            clashes.into_iter().for_each(|edit| settle(view, &mut targets, edit));
            make_room(view, &mut targets);
            Vec::new()
        }
        Winner::Log => aside::put_aside(view, &mut targets, edits, clashes),
    };
    for (path, bytes) in merged {
        if targets.contains_key(path) {
            draft.content(bytes);
        }
    }
    draft.files = plan(view, targets)?;
    Ok(told)
}

/// The disk's version takes the path and the log's goes beside it. What was deleted outside but changed in the log
/// simply stays. A repository is taken as the disk has it: stray files inside would break it.
fn settle(view: &View, targets: &mut Targets, edit: &OutsideEdit) {
    if edit.now.is_none() && edit.path.repository().is_none() {
        return;
    }
    targets.insert(edit.path.clone(), edit.now.clone());
    if let Some(today) = view.files.get(&edit.path) {
        keep_beside(view, targets, &edit.path, today);
    }
}

/// Keeps what stood at a path under a free name beside it. A folder holds nothing of its own, and in a repository
/// nothing is put beside.
fn keep_beside(view: &View, targets: &mut Targets, path: &FilePath, node: &FileNode) {
    if *node == FileNode::Folder || path.repository().is_some() {
        return;
    }
    for beside in names_beside(path, node.content()) {
        let stands = match targets.get(&beside) {
            Some(target) => target.as_ref(),
            None => view.files.get(&beside),
        };
        if stands == Some(node) {
            return;
        }
        if stands.is_none() && view.files.count_below(&beside) == 0 {
            targets.insert(beside, Some(node.clone()));
            return;
        }
    }
}

/// Names that say whose version this is, shortened where they would be too long.
fn names_beside(path: &FilePath, content: Option<ContentRef>) -> impl Iterator<Item = FilePath> {
    let tag = content.map_or_else(|| "other".into(), |content| content.hash.to_string()[..8].to_owned());
    let (stem, extension) = match path.name().rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() <= 16 => {
            (stem, format!(".{extension}"))
        }
        _ => (path.name(), String::new()),
    };
    (1..1000).filter_map(move |n| {
        let count = if n == 1 { String::new() } else { format!("-{n}") };
        let tail = format!(".conflict-{tag}{count}{extension}");
        let room = FilePath::MAX_PART - tail.len();
        let name = format!("{}{tail}", &stem[..stem.floor_char_boundary(room)]);
        let beside = path.parent().and_then(|folder| folder.join(&name).ok());
        beside.or_else(|| FilePath::parse(&name).ok())
    })
}

/// On disk a file may have replaced a folder or the other way round while the log put something new there. The disk
/// is what the person sees, so what stands in its way in the log moves aside.
fn make_room(view: &View, targets: &mut Targets) {
    let arrivals: Vec<(FilePath, FileNode)> =
        targets.iter().filter_map(|(path, node)| Some((path.clone(), node.clone()?))).collect();
    for (path, node) in arrivals {
        for above in path.ancestors() {
            if let Some(file) = view.files.get(&above).filter(|node| **node != FileNode::Folder)
                && !targets.contains_key(&above)
            {
                targets.insert(above.clone(), None);
                keep_beside(view, targets, &above, file);
            }
        }
        if node != FileNode::Folder && view.files.count_below(&path) > 0 {
            move_aside(view, targets, &path);
        }
    }
}

/// Moves what the log has below a path, and the disk does not know of, into a folder beside it.
fn move_aside(view: &View, targets: &mut Targets, path: &FilePath) {
    let is_free = |beside: &FilePath| view.files.get(beside).is_none() && view.files.count_below(beside) == 0;
    let aside = names_beside(path, None).find(is_free).filter(|_| path.repository().is_none());
    for (below, node) in view.files.within(path) {
        if below == path || targets.contains_key(below) {
            continue;
        }
        targets.insert(below.clone(), None);
        let moved = aside.as_ref().and_then(|aside| below.rebase(path, aside)?.ok());
        if let Some(moved) = moved.filter(|_| *node != FileNode::Folder) {
            targets.insert(moved, Some(node.clone()));
        }
    }
}
