//! Bringing one thing back to what it was before an operation, against today's state.

use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, FilePath};

use crate::command::Contents;
use crate::merge::{MERGE_LIMIT, merge};
use crate::operation::Net;

/// What undoing means for one key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome<V> {
    /// It is as it was before already.
    Nothing,
    /// It becomes this.
    Becomes(Option<V>),
    /// Something changed it since, or in the middle.
    Changed,
}

/// The plain rule: what nobody else touched goes back.
pub(super) fn revert<V: PartialEq + Clone>(net: &Net<V>, today: Option<&V>) -> Outcome<V> {
    if net.torn {
        Outcome::Changed
    } else if today == net.before.as_ref() {
        Outcome::Nothing
    } else if today == net.after.as_ref() {
        Outcome::Becomes(net.before.clone())
    } else {
        Outcome::Changed
    }
}

/// The result of a three-way merge of nodes.
#[derive(Debug)]
pub(super) enum Merged {
    Node(FileNode, Option<Vec<u8>>),
    Missing(Vec<ContentHash>),
    Clash,
}

/// The mode after two changes of it, unless they are different ones.
pub(super) fn merge_modes(base: u16, ours: u16, theirs: u16) -> Option<u16> {
    if ours == theirs || theirs == base {
        Some(ours)
    } else if ours == base {
        Some(theirs)
    } else {
        None
    }
}

/// Merges two changes of one file. Only regular files of text can be merged, and never a git repository's own.
pub(super) fn merge_nodes(
    path: &FilePath,
    base: Option<&FileNode>,
    ours: Option<&FileNode>,
    theirs: Option<&FileNode>,
    contents: &Contents,
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
    let missing: Vec<_> =
        [b, o, t].into_iter().filter(|hash| !contents.contains_key(*hash)).copied().collect();
    let (Some(base), Some(ours), Some(theirs)) = (contents.get(b), contents.get(o), contents.get(t)) else {
        return Merged::Missing(missing);
    };
    match merge(base, ours, theirs) {
        Some(bytes) => Merged::Node(FileNode::file(ContentRef::of(&bytes), mode), Some(bytes)),
        None => Merged::Clash,
    }
}
