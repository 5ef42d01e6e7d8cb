//! A keyed part of the state with a hash of its content that costs nothing until somebody asks for it.
//!
//! The hash is a sum over entries, each hashed with its key, so it does not depend on order or history. A change only
//! notes what the entry was when the hash was last computed; [`Slice::sum`] then folds in the entries that differ.
//! When so much changed that a fresh sum is cheaper, the notes are dropped.

use std::hash::Hash;

use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Entries up to this size are encoded without asking for memory.
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
    // Keys and values are plain data; postcard's encoding of them is canonical and fails only for want of room.
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

/// How the kept sum relates to the entries.
#[derive(Debug, Clone)]
enum Kept<K, V> {
    /// The sum is right but for these keys, with what they held when it was computed.
    Except(HashMap<K, Option<V>>),
    /// Too much has changed: the next sum starts afresh.
    Stale,
}

/// A map with a lazily kept hash.
#[derive(Debug, Clone)]
pub struct Slice<K, V> {
    entries: HashMap<K, V>,
    sum: SetSum,
    kept: Kept<K, V>,
}

impl<K, V> Default for Slice<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), sum: SetSum::default(), kept: Kept::Except(HashMap::new()) }
    }
}

impl<K: Hash + Eq + Clone + Serialize, V: Clone + Serialize> Slice<K, V> {
    /// Notes beyond this share of the entries are not worth keeping.
    const NOTES_SHARE: usize = 4;
    const NOTES_FREE: usize = 64;

    pub fn get<Q: Hash + hashbrown::Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.entries.get(key)
    }

    /// The key as it is kept, with its value.
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
        let Kept::Except(notes) = &mut self.kept else { return self.entries.insert(key, value) };
        let old = self.entries.insert(key.clone(), value);
        notes.entry(key).or_insert_with(|| old.clone());
        self.drop_notes_if_many();
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
        if let Kept::Except(notes) = &mut self.kept {
            notes.entry_ref(key).or_insert_with(|| old.clone());
            self.drop_notes_if_many();
        }
        old
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.entries.remove(key)?;
        if let Kept::Except(notes) = &mut self.kept {
            notes.entry_ref(key).or_insert_with(|| Some(old.clone()));
            self.drop_notes_if_many();
        }
        Some(old)
    }

    fn drop_notes_if_many(&mut self) {
        if let Kept::Except(notes) = &self.kept
            && notes.len() > Self::NOTES_FREE + self.entries.len() / Self::NOTES_SHARE
        {
            self.kept = Kept::Stale;
        }
    }

    /// The hash of all entries; costs what changed since the last time, at most all entries.
    pub(crate) fn sum(&mut self) -> SetSum {
        let mut room = [0; ENTRY_ROOM];
        match std::mem::replace(&mut self.kept, Kept::Except(HashMap::new())) {
            Kept::Except(notes) => {
                for (key, old) in notes {
                    if let Some(old) = old {
                        self.sum.subtract(entry_hash(&key, &old, &mut room));
                    }
                    if let Some(new) = self.entries.get(&key) {
                        self.sum.add(entry_hash(&key, new, &mut room));
                    }
                }
            }
            Kept::Stale => {
                self.sum = SetSum::default();
                for (key, value) in &self.entries {
                    self.sum.add(entry_hash(key, value, &mut room));
                }
            }
        }
        self.sum
    }

    /// A slice that holds these entries, its sum not yet computed.
    pub(crate) fn from_entries(entries: HashMap<K, V>) -> Self {
        Self { entries, sum: SetSum::default(), kept: Kept::Stale }
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
        fn the_kept_sum_equals_a_fresh_one(steps in prop::collection::vec((any::<u8>(), any::<Option<u32>>(), any::<bool>()), 0..400)) {
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
    fn the_sum_tells_different_states_apart_and_forgets_history() {
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
