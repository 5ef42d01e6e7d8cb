//! The checks that every backend makes before it writes the first byte of an append.

use shared_types::{ContentHash, INLINE_LIMIT, Seq};

use crate::{Append, AppendError, Appended, ContentError, MAX_EVENTS};

/// The seqs that the append gets at this head, or why it is refused.
pub(crate) fn check(append: &Append, head: Seq) -> Result<Appended, AppendError> {
    if !(1..=MAX_EVENTS).contains(&append.events.len()) {
        return Err(AppendError::Size(append.events.len()));
    }
    if append.expected != head {
        return Err(AppendError::WrongSeq { expected: append.expected, actual: head });
    }
    let mut last = head;
    for event in &append.events {
        last = last.next();
        if event.seq != last {
            return Err(AppendError::Misplaced { found: event.seq, place: last });
        }
    }
    check_contents(&append.contents)?;
    Ok(Appended { first: head.next(), last })
}

/// Contents of an append must fit the inline limit and have the hash that names them.
fn check_contents(contents: &[(ContentHash, Vec<u8>)]) -> Result<(), AppendError> {
    for (hash, bytes) in contents {
        if bytes.len() > INLINE_LIMIT {
            return Err(AppendError::ContentSize { hash: *hash, size: bytes.len() });
        }
        if ContentHash::of(bytes) != *hash {
            return Err(AppendError::WrongHash(*hash));
        }
    }
    Ok(())
}

/// The same for contents that are stored before the append that names them.
pub(crate) fn check_early(contents: &[(ContentHash, Vec<u8>)]) -> Result<(), ContentError> {
    match check_contents(contents) {
        Err(AppendError::WrongHash(hash)) => Err(ContentError::Damaged(hash)),
        checked => checked.map_err(ContentError::storage),
    }
}
