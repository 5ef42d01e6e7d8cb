//! Restore: returns files, windows, settings and notes to their state at a seq. It never touches users, messages, calls
//! or pending effects.

use std::collections::BTreeSet;
use std::hash::Hash;

use serde::Serialize;
use shared_types::Seq;
use shared_types::payload::revert::Restore;

use super::plan::{Targets, plan};
use super::{Draft, desktop};
use crate::{Rejection, Slice, View};

pub(super) fn restore(view: &View, draft: &mut Draft, seq: Seq, target: &View) -> Result<(), Rejection> {
    if seq > view.seq() || target.seq() != seq {
        return Err(Rejection::NotYet { seq });
    }
    let mut targets = Targets::new();
    for (path, node) in target.files.iter().filter(|(path, node)| view.files.get(path) != Some(node)) {
        targets.insert(path.clone(), Some(node.clone()));
    }
    for (path, _) in view.files.iter().filter(|(path, _)| target.files.get(path).is_none()) {
        targets.insert(path.clone(), None);
    }
    draft.files = plan(view, targets)?;
    for (window, state) in differences(&view.windows, &target.windows) {
        desktop::put_window(view, draft, window, state);
    }
    for (key, text) in differences(&view.settings, &target.settings) {
        desktop::put_setting(view, draft, &key, text.as_deref());
    }
    for (note, state) in differences(&view.notes, &target.notes) {
        desktop::put_note(view, draft, note, state);
    }
    if !draft.files.is_empty() || !draft.payloads.is_empty() {
        draft.payloads.insert(0, Restore { seq }.into());
    }
    Ok(())
}

/// Every key whose value differs in the target, in order.
fn differences<K, V>(today: &Slice<K, V>, target: &Slice<K, V>) -> Vec<(K, Option<V>)>
where
    K: Hash + Eq + Ord + Clone + Serialize,
    V: PartialEq + Clone + Serialize,
{
    let keys: BTreeSet<&K> = today.iter().chain(target.iter()).map(|(key, _)| key).collect();
    keys.into_iter()
        .filter(|key| today.get(*key) != target.get(*key))
        .map(|key| (key.clone(), target.get(key).cloned()))
        .collect()
}
