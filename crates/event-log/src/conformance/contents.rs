//! Contents: every size, wrong hashes, missing and purged ones.

use std::io::Read;

use shared_types::{ContentHash, ContentRef, INLINE_LIMIT, Seq};

use super::sample::{append_one, naming, read_checked};
use super::{Harness, now_and_after_reopening};
use crate::{AppendError, ContentError, EventLog, Staged, read_content};

/// Bytes that storage cannot compress.
pub(super) fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..size).map(|_| next()).collect()
}

/// Stages bytes and appends an event that names them.
pub(super) fn keep(log: &dyn EventLog, bytes: &[u8]) -> ContentRef {
    let staged = log.stage(&mut &*bytes).expect("staged");
    let content = staged.content();
    append_one(log, naming(log.head().seq, content, staged.into_inline())).expect("taken");
    content
}

pub fn contents_of_every_size_come_back(harness: &mut dyn Harness) {
    let sizes = [0, 1, 1000, INLINE_LIMIT - 1, INLINE_LIMIT, INLINE_LIMIT + 1, 3_000_000, 8 << 20];
    let log = harness.log();
    for size in sizes {
        let bytes = noise(size, size as u64);
        let staged = log.stage(&mut bytes.as_slice()).expect("staged");
        assert_eq!(staged.content(), ContentRef::of(&bytes), "{size}");
        assert_eq!(matches!(staged, Staged::Inline { .. }), size <= INLINE_LIMIT, "{size}");
        assert_eq!(keep(&*log, &bytes), ContentRef::of(&bytes), "staged twice, stored once: {size}");
    }
    drop(log);
    now_and_after_reopening(harness, |log| {
        for size in sizes {
            let bytes = noise(size, size as u64);
            let hash = ContentHash::of(&bytes);
            assert!(log.has_content(&hash).expect("readable"));
            assert!(read_content(&**log, &hash).expect("readable") == bytes, "{size} bytes come back");
        }
        let mut listed = Vec::new();
        log.each_content(&mut |hash, size| listed.push((hash, size as usize))).expect("readable");
        listed.sort_by_key(|(_, size)| *size);
        assert_eq!(listed, sizes.map(|size| (ContentHash::of(&noise(size, size as u64)), size)));
        assert_eq!(read_checked(&**log).len(), sizes.len());
    });
}

pub fn a_part_of_a_content_is_that_part(harness: &mut dyn Harness) {
    let sizes = [1, 1000, INLINE_LIMIT + 1, 3_000_000];
    let log = harness.log();
    for size in sizes {
        keep(&*log, &noise(size, size as u64));
    }
    let never = ContentHash::of(b"never here");
    assert!(matches!(log.content_size(&never), Err(ContentError::Missing(_))));
    assert!(matches!(log.content_range(&never, 0..1), Err(ContentError::Missing(_))));
    drop(log);
    now_and_after_reopening(harness, |log| {
        for size in sizes {
            let bytes = noise(size, size as u64);
            let hash = ContentHash::of(&bytes);
            assert_eq!(log.content_size(&hash).expect("readable"), size as u64);
            for range in [0..size, 0..1, size - 1..size, size / 3..size / 2, size / 2..size / 2] {
                let mut part = Vec::new();
                let wanted = range.start as u64..range.end as u64;
                log.content_range(&hash, wanted).expect("readable").read_to_end(&mut part).expect("readable");
                assert!(part == bytes[range.clone()], "{range:?} of {size}");
            }
        }
    });
}

pub fn contents_that_do_not_match_their_hash_are_refused(harness: &mut dyn Harness) {
    let log = harness.log();
    let content = ContentRef::of(b"what was meant");
    let answer = append_one(&*log, naming(Seq(0), content, Some((content.hash, b"what came".to_vec()))));
    assert!(matches!(answer, Err(AppendError::WrongHash(hash)) if hash == content.hash), "{answer:?}");
    let large = noise(INLINE_LIMIT + 1, 1);
    let content = ContentRef::of(&large);
    let answer = append_one(&*log, naming(Seq(0), content, Some((content.hash, large))));
    assert!(matches!(answer, Err(AppendError::ContentSize { .. })), "{answer:?}");
    let ahead = log.store(vec![(content.hash, b"what came".to_vec())]);
    assert!(matches!(ahead, Err(ContentError::Damaged(hash)) if hash == content.hash), "{ahead:?}");
    assert!(log.store(vec![(content.hash, noise(INLINE_LIMIT + 1, 1))]).is_err());
    assert_eq!(log.head().seq, Seq(0));
    assert!(!log.has_content(&content.hash).expect("readable"));
}

pub fn missing_and_purged_are_told_apart(harness: &mut dyn Harness) {
    let log = harness.log();
    let (small, large) = (keep(&*log, b"a secret"), keep(&*log, &noise(200_000, 2)));
    let kept = keep(&*log, b"no secret");
    let never = ContentHash::of(b"never here");
    assert_eq!(log.purge(&[small.hash, large.hash, never]).expect("purged"), 2);
    assert_eq!(log.purge(&[small.hash]).expect("purged"), 0, "it is gone already");
    drop(log);
    now_and_after_reopening(harness, |log| {
        for hash in [small.hash, large.hash, never] {
            assert!(!log.has_content(&hash).expect("readable"));
            let found = log.content(&hash).err();
            assert!(matches!(found, Some(ContentError::Purged(h)) if h == hash), "{found:?}");
        }
        let missing = ContentHash::of(b"never stored");
        assert!(matches!(log.content(&missing).err(), Some(ContentError::Missing(h)) if h == missing));
        assert_eq!(read_content(&**log, &kept.hash).expect("readable"), b"no secret");
        assert_eq!(read_checked(&**log).len(), 3, "the chain still verifies");
    });
    let log = harness.log();
    assert_eq!(keep(&*log, b"a secret"), small, "what was purged may be written again");
    assert_eq!(read_content(&*log, &small.hash).expect("readable"), b"a secret");
}
