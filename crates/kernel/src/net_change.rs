//! What an operation did to one key in total, and what others did to it meanwhile.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The state of one key before and after an operation. If something else changed the key between two changes of the
/// operation, an undo must keep that change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetChange<V> {
    pub(crate) before: Option<V>,
    pub(crate) after: Option<V>,
    /// For each change by something else: the state before and after it.
    between: Vec<(Option<V>, Option<V>)>,
}

impl<V: PartialEq> NetChange<V> {
    pub(crate) fn has_effect(&self) -> bool {
        self.is_interleaved() || self.before != self.after
    }

    /// Whether something else changed the key during the operation.
    pub(crate) fn is_interleaved(&self) -> bool {
        !self.between.is_empty()
    }

    /// The operation's own changes of the key, each as before and after, the last one first.
    pub(crate) fn changes_backwards(&self) -> impl Iterator<Item = (Option<&V>, Option<&V>)> {
        let found = self.between.iter().rev().map(|(_, found)| found).chain([&self.before]);
        let left = [&self.after].into_iter().chain(self.between.iter().rev().map(|(left, _)| left));
        found.zip(left).map(|(found, left)| (found.as_ref(), left.as_ref()))
    }
}

pub(crate) type NetMap<K, V> = BTreeMap<K, NetChange<V>>;

/// Adds a change of a key to its net change.
pub(crate) fn add_net<K: Ord, V: PartialEq>(
    map: &mut NetMap<K, V>,
    key: K,
    before: Option<V>,
    after: Option<V>,
) {
    match map.entry(key) {
        Entry::Vacant(slot) => drop(slot.insert(NetChange { before, after, between: Vec::new() })),
        Entry::Occupied(slot) => {
            let net = slot.into_mut();
            let left = std::mem::replace(&mut net.after, after);
            if left != before {
                net.between.push((left, before));
            }
        }
    }
}
