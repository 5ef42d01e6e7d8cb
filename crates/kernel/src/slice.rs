//! A map that is one part of the view, with a hash that is computed only when it is needed.
//!
//! The hash is a sum over entries, each hashed with its key, so it does not depend on order or history. A change only
//! remembers the entry's value at the last sum; [`Slice::sum`] then updates the sum for the entries that differ. When
//! so much has changed that a new sum is cheaper, the remembered values are dropped.

use std::hash::Hash;

use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Entries up to this size are encoded without an allocation.
const ENTRY_ROOM: usize = 512;

/// A sum of SHA-256 values modulo 2^256, in four little-endian words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SetSum([u64; 4]);

impl SetSum {
    fn combine(&mut self, other: [u64; 4], op: fn(u64, u64) -> (u64, bool)) {
        let mut carry = false;
        for (word, value) in self.0.iter_mut().zip(other) {
            let (next, first) = op(*word, value);
            let (next, second) = op(next, u64::from(carry));
            *word = next;
            carry = first || second;
        }
    }

    fn add(&mut self, entry: [u64; 4]) {
        self.combine(entry, u64::overflowing_add);
    }

    fn subtract(&mut self, entry: [u64; 4]) {
        self.combine(entry, u64::overflowing_sub);
    }

    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        for (bytes, word) in out.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        out
    }
}

fn entry_hash<K: Serialize, V: Serialize>(key: &K, value: &V, room: &mut [u8]) -> [u64; 4] {
    // Keys and values are plain data; their postcard encoding is canonical and fails only if the buffer is too small.
    let digest = match postcard::to_slice(&(key, value), room) {
        Ok(bytes) => Sha256::digest(bytes),
        Err(_) => Sha256::digest(postcard::to_stdvec(&(key, value)).unwrap_or_default()),
    };
    let mut words = [0; 4];
    for (word, chunk) in words.iter_mut().zip(digest.chunks_exact(8)) {
        *word = chunk.iter().rev().fold(0, |acc, byte| acc << 8 | u64::from(*byte));
    }
    words
}

/// How the stored sum relates to the entries.
#[derive(Debug, Clone)]
enum SumState<K, V> {
    /// The sum is right except for these keys, with their values at the time of the sum.
    Except(HashMap<K, Option<V>>),
    /// Too much has changed: the next sum is computed from all entries.
    Stale,
}

/// A map with a lazily computed hash.
#[derive(Debug, Clone)]
pub struct Slice<K, V> {
    entries: HashMap<K, V>,
    sum: SetSum,
    state: SumState<K, V>,
}

impl<K, V> Default for Slice<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), sum: SetSum::default(), state: SumState::Except(HashMap::new()) }
    }
}

impl<K: Hash + Eq + Clone + Serialize, V: Clone + Serialize> Slice<K, V> {
    /// Remembering more changed entries than this share of all is slower than a new sum.
    const CHANGED_SHARE: usize = 4;
    const CHANGED_FREE: usize = 64;

    pub fn get<Q: Hash + hashbrown::Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.entries.get(key)
    }

    /// The stored key with its value.
    pub fn entry<Q: Hash + hashbrown::Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        self.entries.get_key_value(key)
    }

    pub fn contains<Q: Hash + hashbrown::Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.entries.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter()
    }

    /// Every entry, in the order of its key.
    pub fn sorted(&self) -> Vec<(&K, &V)>
    where
        K: Ord,
    {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        entries
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let SumState::Except(changed) = &mut self.state else { return self.entries.insert(key, value) };
        let old = self.entries.insert(key.clone(), value);
        changed.entry(key).or_insert_with(|| old.clone());
        self.drop_changed_if_many();
        old
    }

    /// Like [`insert`](Self::insert), copying the key only if it is new.
    pub(crate) fn set(&mut self, key: &K, value: V) -> Option<V> {
        let old = match self.entries.entry_ref(key) {
            EntryRef::Occupied(mut entry) => Some(entry.insert(value)),
            EntryRef::Vacant(entry) => {
                entry.insert(value);
                None
            }
        };
        if let SumState::Except(changed) = &mut self.state {
            changed.entry_ref(key).or_insert_with(|| old.clone());
            self.drop_changed_if_many();
        }
        old
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.entries.remove(key)?;
        if let SumState::Except(changed) = &mut self.state {
            changed.entry_ref(key).or_insert_with(|| Some(old.clone()));
            self.drop_changed_if_many();
        }
        Some(old)
    }

    fn drop_changed_if_many(&mut self) {
        if let SumState::Except(changed) = &self.state
            && changed.len() > Self::CHANGED_FREE + self.entries.len() / Self::CHANGED_SHARE
        {
            self.state = SumState::Stale;
        }
    }

    /// The hash of all entries. The cost depends on the changes since the last call, at most on all entries.
    pub(crate) fn sum(&mut self) -> SetSum {
        let mut room = [0; ENTRY_ROOM];
        match std::mem::replace(&mut self.state, SumState::Except(HashMap::new())) {
            SumState::Except(changed) => {
                for (key, old) in changed {
                    if let Some(old) = old {
                        self.sum.subtract(entry_hash(&key, &old, &mut room));
                    }
                    if let Some(new) = self.entries.get(&key) {
                        self.sum.add(entry_hash(&key, new, &mut room));
                    }
                }
            }
            SumState::Stale => {
                self.sum = SetSum::default();
                for (key, value) in &self.entries {
                    self.sum.add(entry_hash(key, value, &mut room));
                }
            }
        }
        self.sum
    }

    /// A slice with these entries, whose sum is not computed yet.
    pub(crate) fn from_entries(entries: HashMap<K, V>) -> Self {
        Self { entries, sum: SetSum::default(), state: SumState::Stale }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn afresh(slice: &Slice<u8, u32>) -> SetSum {
        Slice::from_entries(slice.entries.clone()).sum()
    }

    proptest! {
        #[test]
        fn the_updated_sum_equals_a_new_one(steps in prop::collection::vec((any::<u8>(), any::<Option<u32>>(), any::<bool>()), 0..400)) {
            let mut slice = Slice::default();
            for (key, value, ask) in steps {
                match value {
                    Some(value) => drop(slice.insert(key, value)),
                    None => drop(slice.remove(&key)),
                }
                if ask {
                    let expected = afresh(&slice);
                    prop_assert_eq!(slice.sum(), expected);
                }
            }
            let expected = afresh(&slice);
            prop_assert_eq!(slice.sum(), expected);
        }
    }

    #[test]
    fn the_sum_depends_on_the_entries_and_not_on_their_history() {
        let mut a = Slice::default();
        a.insert(1u8, 1u32);
        let one = a.sum();
        a.insert(1, 2);
        assert_ne!(a.sum(), one);
        a.insert(2, 1);
        a.remove(&2);
        a.insert(1, 1);
        assert_eq!(a.sum(), one);
    }
}
