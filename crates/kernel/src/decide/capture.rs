//! Edits found on disk become events. What the person did outside is never lost: where the log changed the same file
//! meanwhile, the two are merged, and where that fails both versions are kept side by side.

use shared_types::payload::file::FileNode;
use shared_types::{ContentRef, FilePath};

use super::Draft;
use super::plan::{Targets, plan};
use super::reversal::{Merged, merge_nodes};
use crate::command::{Contents, OutsideEdit};
use crate::{Rejection, View};

pub(super) fn capture(
    view: &View,
    draft: &mut Draft,
    edits: &[OutsideEdit],
    contents: &Contents,
) -> Result<(), Rejection> {
    let mut targets = Targets::new();
    let mut missing = Vec::new();
    for edit in edits {
        let today = view.files.get(&edit.path);
        let (base, now) = (edit.base.as_ref(), edit.now.as_ref());
        if now == base || now == today {
            continue;
        }
        if today == base || now.is_none() && today.is_none() {
            targets.insert(edit.path.clone(), edit.now.clone());
            continue;
        }
        match merge_nodes(&edit.path, base, today, now, contents) {
            Merged::Node(node, bytes) => {
                draft.contents.extend(bytes.map(|bytes| (shared_types::ContentHash::of(&bytes), bytes)));
                targets.insert(edit.path.clone(), Some(node));
            }
            Merged::Missing(hashes) => missing.extend(hashes),
            Merged::Clash => keep_both(view, &mut targets, edit, today),
        }
    }
    if !missing.is_empty() {
        return Err(Rejection::Missing { hashes: missing });
    }
    make_room(view, &mut targets);
    draft.files = plan(view, targets)?;
    Ok(())
}

/// The disk's version takes the path; the log's version moves beside it under a name that says so. If the file was
/// deleted outside but changed in the log, the log's version simply stays.
fn keep_both(view: &View, targets: &mut Targets, edit: &OutsideEdit, today: Option<&FileNode>) {
    let Some(now) = &edit.now else { return };
    targets.insert(edit.path.clone(), Some(now.clone()));
    if let Some(today) = today
        && let Some(beside) = free_name(view, targets, &edit.path, today.content())
    {
        targets.insert(beside, Some(today.clone()));
    }
}

fn free_name(view: &View, targets: &Targets, path: &FilePath, content: Option<ContentRef>) -> Option<FilePath> {
    let tag = content.map(|c| c.hash.to_string()[..8].to_owned()).unwrap_or_else(|| "other".into());
    let (stem, extension) = match path.name().rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (path.name(), String::new()),
    };
    let name = format!("{stem}.conflict-{tag}{extension}");
    let beside = match path.parent() {
        Some(folder) => folder.join(&name),
        None => FilePath::parse(&name),
    };
    beside.ok().filter(|p| view.files.get(p).is_none() && !targets.contains_key(p))
}

/// On disk a file may have replaced a folder or the other way round while the log put something new there. The disk
/// is what the person sees, so what stands in its way in the log is taken out; it stays in history.
fn make_room(view: &View, targets: &mut Targets) {
    let arrivals: Vec<(FilePath, FileNode)> =
        targets.iter().filter_map(|(path, node)| Some((path.clone(), node.clone()?))).collect();
    for (path, node) in arrivals {
        for above in path.ancestors() {
            if view.files.get(&above).is_some_and(|n| *n != FileNode::Folder) && !targets.contains_key(&above) {
                targets.insert(above, None);
            }
        }
        if node != FileNode::Folder && view.files.count_below(&path) > 0 {
            for (below, _) in view.files.within(&path) {
                if *below != path && !targets.contains_key(below) {
                    targets.insert(below.clone(), None);
                }
            }
        }
    }
}
