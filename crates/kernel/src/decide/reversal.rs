//! Returning one file or value to its state before an operation, against the current state.

use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, FilePath};

use crate::Contents;
use crate::merge::{MERGE_LIMIT, merge};
use crate::net_change::NetChange;

/// The effect of an undo on one key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome<V> {
    /// It has its old value already.
    Unchanged,
    /// It gets this value, or is removed.
    Becomes(Option<V>),
    /// It was changed by something else, since or during the operation.
    Conflict,
}

/// The rule for values that cannot be merged: a value that only the operation changed gets its old value.
pub(super) fn revert<V: PartialEq + Clone>(net: &NetChange<V>, today: Option<&V>) -> Outcome<V> {
    if net.is_interleaved() {
        Outcome::Conflict
    } else if today == net.before.as_ref() {
        Outcome::Unchanged
    } else if today == net.after.as_ref() {
        Outcome::Becomes(net.before.clone())
    } else {
        Outcome::Conflict
    }
}

/// Reverts a file. The operation's own changes are reverted one by one, the last one first, so that changes by others
/// between them survive, like changes since. New bytes go to `made`.
pub(super) fn revert_file(
    path: &FilePath,
    net: &NetChange<FileNode>,
    today: Option<&FileNode>,
    contents: &Contents,
    made: &mut Contents,
) -> Result<Outcome<FileNode>, Missing> {
    let mut node = today.cloned();
    for (before, after) in net.changes_backwards() {
        if node.as_ref() == before {
            continue;
        }
        if node.as_ref() == after {
            node = before.cloned();
            continue;
        }
        let known = |hash: &ContentHash| contents.get(hash).or_else(|| made.get(hash)).map(Vec::as_slice);
        match merge_nodes(path, after, node.as_ref(), before, known) {
            Merged::Node(merged, bytes) => {
                made.extend(bytes.map(|bytes| (ContentHash::of(&bytes), bytes)));
                node = Some(merged);
            }
            Merged::Missing(hashes) => return Err(Missing(hashes)),
            Merged::Clash => return Ok(Outcome::Conflict),
        }
    }
    Ok(if node.as_ref() == today { Outcome::Unchanged } else { Outcome::Becomes(node) })
}

/// Contents that a merge needs.
pub(super) struct Missing(pub(super) Vec<ContentHash>);

/// The result of a three-way merge of nodes.
#[derive(Debug)]
pub(super) enum Merged {
    Node(FileNode, Option<Vec<u8>>),
    Missing(Vec<ContentHash>),
    Clash,
}

/// The merged mode; none if both sides changed it differently.
pub(super) fn merge_modes(base: u16, ours: u16, theirs: u16) -> Option<u16> {
    if ours == theirs || theirs == base {
        Some(ours)
    } else if ours == base {
        Some(theirs)
    } else {
        None
    }
}

/// Merges two changes of one file. Only regular text files can be merged, and never those of a git repository.
pub(super) fn merge_nodes<'c>(
    path: &FilePath,
    base: Option<&FileNode>,
    ours: Option<&FileNode>,
    theirs: Option<&FileNode>,
    content: impl Fn(&ContentHash) -> Option<&'c [u8]>,
) -> Merged {
    let (
        Some(FileNode::File { hash: b, size: b_size, mode: b_mode }),
        Some(FileNode::File { hash: o, size: o_size, mode: o_mode }),
        Some(FileNode::File { hash: t, size: t_size, mode: t_mode }),
    ) = (base, ours, theirs)
    else {
        return Merged::Clash;
    };
    let Some(mode) = merge_modes(*b_mode, *o_mode, *t_mode) else { return Merged::Clash };
    let known =
        |hash: &ContentHash, size: &u64| FileNode::file(ContentRef { hash: *hash, size: *size }, mode);
    if o == t || b == t {
        return Merged::Node(known(o, o_size), None);
    }
    if b == o {
        return Merged::Node(known(t, t_size), None);
    }
    if path.repository().is_some() || [b_size, o_size, t_size].into_iter().any(|size| *size > MERGE_LIMIT) {
        return Merged::Clash;
    }
    let (Some(base), Some(ours), Some(theirs)) = (content(b), content(o), content(t)) else {
        let missing = [b, o, t].into_iter().filter(|hash| content(hash).is_none());
        return Merged::Missing(missing.copied().collect());
    };
    match merge(base, ours, theirs) {
        Some(bytes) => Merged::Node(FileNode::file(ContentRef::of(&bytes), mode), Some(bytes)),
        None => Merged::Clash,
    }
}
