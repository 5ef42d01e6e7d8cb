//! Which contents the log names or is about to name. Garbage collection must keep them.
//!
//! Any 64 lower-case hex digits in a row, in any payload or in the list of any batch, count as the name of a content,
//! whether or not this version knows the event type. A list that cannot be read stops the collection, because the
//! contents it names are unknown.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared_types::{ContentHash, Seq};

use crate::log::read_content;
use crate::{ContentError, EventLog};

const DIGITS: usize = 64;

/// Contents that this process stored before the append that will name them. A collection holds the guard while it
/// removes contents, so a content that is added here is either gone already or safe.
#[derive(Debug, Default)]
pub(crate) struct EarlyContents(Mutex<HashSet<ContentHash>>);

impl EarlyContents {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashSet<ContentHash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports everything in a text that looks like a content hash.
pub fn find_hashes(text: &[u8], found: &mut dyn FnMut(ContentHash)) {
    let is_hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    for run in text.split(|b| !is_hex(b)).filter(|run| run.len() >= DIGITS) {
        for window in run.windows(DIGITS) {
            let name = std::str::from_utf8(window).ok().and_then(|text| ContentHash::parse(text).ok());
            name.into_iter().for_each(&mut *found);
        }
    }
}

/// Removes the contents that the events from `from` on name out of `unnamed`. Returns the seq after the last event.
pub(crate) fn keep_named(
    log: &dyn EventLog,
    from: Seq,
    unnamed: &mut HashMap<ContentHash, u64>,
) -> Result<Seq, ContentError> {
    let mut lists = Vec::new();
    let mut next = from;
    log.scan(from, &mut |event| {
        next = event.seq.next();
        find_hashes(event.payload.as_bytes(), &mut |hash| {
            unnamed.remove(&hash);
            if event.name == "file.batch" {
                lists.push(hash);
            }
        });
        ControlFlow::Continue(())
    })
    .map_err(ContentError::storage)?;
    for list in lists {
        find_hashes(&read_content(log, &list)?, &mut |hash| {
            unnamed.remove(&hash);
        });
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_found_anywhere_in_a_text() {
        let hash = ContentHash::of(b"x");
        let found = |text: String| {
            let mut names = Vec::new();
            find_hashes(text.as_bytes(), &mut |h| names.push(h));
            names.contains(&hash)
        };
        assert!(found(format!("{hash}")));
        assert!(found(format!("{{\"later\":[\"{hash}\"]}}")));
        assert!(found(format!("\\f{hash}")), "an escape that ends in a hex digit hides nothing");
        assert!(!found(hash.to_string().to_uppercase()));
        assert!(!found(hash.to_string()[..63].to_owned()));
    }
}
