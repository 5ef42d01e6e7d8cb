//! Which contents the log names or is about to name: what a collection must leave alone.
//!
//! Wherever 64 lower-case hex digits stand together, in any payload or in the list of any batch, that is a name,
//! whether or not this version understands the event. A list that cannot be read stops the collection: nobody
//! knows what it names.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared_types::{ContentHash, Seq};

use crate::content::read_content;
use crate::{ContentError, EventLog};

const DIGITS: usize = 64;

/// The contents that this process took in ahead of an append, which may still come. A collection holds the guard
/// while it removes, so whoever adds one finds it either gone already or safe.
#[derive(Debug, Default)]
pub(crate) struct Expected(Mutex<HashSet<ContentHash>>);

impl Expected {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashSet<ContentHash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds everything that looks like a hash.
pub fn each_name(text: &[u8], found: &mut dyn FnMut(ContentHash)) {
    let is_hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    for run in text.split(|b| !is_hex(b)).filter(|run| run.len() >= DIGITS) {
        for window in run.windows(DIGITS) {
            let name = std::str::from_utf8(window).ok().and_then(|text| ContentHash::parse(text).ok());
            name.into_iter().for_each(&mut *found);
        }
    }
}

/// Takes whatever is named by the events from `from` on out of `unnamed`. Returns the place after the last one.
pub(crate) fn spare_named(
    log: &dyn EventLog,
    from: Seq,
    unnamed: &mut HashMap<ContentHash, u64>,
) -> Result<Seq, ContentError> {
    let mut lists = Vec::new();
    let mut next = from;
    log.scan(from, &mut |event| {
        next = event.seq.next();
        each_name(event.payload.as_bytes(), &mut |hash| {
            unnamed.remove(&hash);
            if event.name == "file.batch" {
                lists.push(hash);
            }
        });
        ControlFlow::Continue(())
    })
    .map_err(ContentError::storage)?;
    for list in lists {
        each_name(&read_content(log, &list)?, &mut |hash| {
            unnamed.remove(&hash);
        });
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_wherever_its_digits_stand() {
        let hash = ContentHash::of(b"x");
        let found = |text: String| {
            let mut names = Vec::new();
            each_name(text.as_bytes(), &mut |h| names.push(h));
            names.contains(&hash)
        };
        assert!(found(format!("{hash}")));
        assert!(found(format!("{{\"later\":[\"{hash}\"]}}")));
        assert!(found(format!("\\f{hash}")), "an escape that ends in a hex digit hides nothing");
        assert!(!found(hash.to_string().to_uppercase()));
        assert!(!found(hash.to_string()[..63].to_owned()));
    }
}
