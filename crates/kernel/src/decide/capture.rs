//! Edits made outside the log become events: those found on disk, and those of a command that ran on a copy of the
//! workspace. Nothing is lost: where the log changed the same file meanwhile, the two are merged, and where that fails
//! both versions are kept.

mod aside;

use shared_types::payload::file::FileNode;
use shared_types::{ContentRef, FilePath};

use super::Draft;
use super::plan::{Targets, plan};
use super::reversal::{Merged, merge_nodes};
use crate::command::{Contents, OutsideEdit};
use crate::{Rejection, View};

/// Which version keeps the path if two cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Winner {
    /// The edit's: it is on disk already, where the person sees it.
    Edit,
    /// The log's: the person continued to work while a command made the edit.
    Log,
}

/// Plans the edits. Returns a note for each version that was renamed or left out because the log's version won.
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
    let notes = match winner {
        Winner::Edit => {
            clashes.into_iter().for_each(|edit| take_edit(view, &mut targets, edit));
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
    Ok(notes)
}

/// The disk's version gets the path, and the log's version is kept under another name. A file that was deleted on disk
/// but changed in the log stays. A git repository is taken as it is on disk: extra files inside would break it.
fn take_edit(view: &View, targets: &mut Targets, edit: &OutsideEdit) {
    if edit.now.is_none() && edit.path.repository().is_none() {
        return;
    }
    targets.insert(edit.path.clone(), edit.now.clone());
    if let Some(today) = view.files.get(&edit.path) {
        keep_beside(view, targets, &edit.path, today);
    }
}

/// Keeps the node of a path under a free name in the same folder. A folder has no content to keep, and a git repository
/// gets no extra files.
fn keep_beside(view: &View, targets: &mut Targets, path: &FilePath, node: &FileNode) {
    if *node == FileNode::Folder || path.repository().is_some() {
        return;
    }
    for beside in names_beside(path, node.content()) {
        let there = match targets.get(&beside) {
            Some(target) => target.as_ref(),
            None => view.files.get(&beside),
        };
        if there == Some(node) {
            return;
        }
        if there.is_none() && view.files.count_below(&beside) == 0 {
            targets.insert(beside, Some(node.clone()));
            return;
        }
    }
}

/// Candidates for the name of a conflicting version, shortened where they would be too long.
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

/// On disk a file may have replaced a folder, or a folder a file, while the log put something new there. The person
/// sees the disk, so the log's nodes that are in the way are moved.
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

/// Moves the log's nodes below a path that are unknown on disk into a new folder next to it.
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
