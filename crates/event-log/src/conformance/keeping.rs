//! Garbage collection of contents, and batches whose lists name many contents.

use shared_types::payload::file::{FileBatch, FileChange, FileEvent};
use shared_types::{ContentHash, ContentRef, EventName, Payload, Seq};

use super::contents::{keep, noise};
use super::sample::{append_one, command, event, naming, op, read_checked, write};
use super::{Harness, now_and_after_reopening};
use crate::{Append, EventLog, decode_event, read_content};

/// Appends a batch, with its list staged as any content.
fn append_batch(
    log: &dyn EventLog,
    changes: Vec<FileChange>,
    carried: Vec<(ContentHash, Vec<u8>)>,
) -> FileBatch {
    let (batch, list) = FileBatch::of(changes);
    let staged = log.stage(&mut list.as_slice()).expect("staged");
    assert_eq!(staged.content(), batch.list);
    let after = log.head().seq;
    let events = vec![event(after.next(), op(), batch.clone())];
    let contents = staged.into_inline().into_iter().chain(carried).collect();
    append_one(log, Append { command: command(), expected: after, events, contents }).expect("taken");
    batch
}

pub fn collecting_keeps_what_is_named(harness: &mut dyn Harness) {
    let log = harness.log();
    let named = [keep(&*log, b"named"), keep(&*log, &noise(100_000, 3))].map(|content| content.hash);

    let listed = b"named by a list alone".to_vec();
    let listed_hash = ContentHash::of(&listed);
    let change = FileChange::Write(write("listed.txt", ContentRef::of(&listed)));
    let list = append_batch(&*log, vec![change], vec![(listed_hash, listed)]).list.hash;

    let strange = b"named by a type that is not known here".to_vec();
    let strange_hash = ContentHash::of(&strange);
    let payload = Payload::Unknown(shared_types::payload::UnknownPayload {
        name: EventName::parse("later.thing").expect("a name"),
        version: 1,
        json: format!("{{\"deep\":[{{\"thing\":\"{strange_hash}\"}}]}}").into(),
    });
    let after = log.head().seq;
    let events = vec![event(after.next(), op(), payload)];
    let contents = vec![(strange_hash, strange)];
    append_one(&*log, Append { command: command(), expected: after, events, contents }).expect("taken");

    let unnamed = b"carried by an append that does not name it".to_vec();
    let (hash, size) = (ContentHash::of(&unnamed), unnamed.len() as u64);
    append_one(&*log, naming(log.head().seq, ContentRef::of(b"named"), Some((hash, unnamed))))
        .expect("taken");
    assert!(log.has_content(&hash).expect("readable"));

    assert_eq!(log.collect().expect("collected"), (1, size));
    assert_eq!(log.collect().expect("collected"), (0, 0));
    drop(log);
    now_and_after_reopening(harness, |log| {
        assert_eq!(log.collect().expect("collected"), (0, 0));
        assert!(!log.has_content(&hash).expect("readable"));
        for kept in named.iter().chain(&[listed_hash, list, strange_hash]) {
            assert!(read_content(&**log, kept).is_ok(), "{kept} is named");
        }
    });
}

pub fn collecting_keeps_what_is_staged(harness: &mut dyn Harness) {
    let log = harness.log();
    let bytes = noise(150_000, 4);
    let staged = log.stage(&mut bytes.as_slice()).expect("staged");
    let ahead = ContentRef::of(b"stored ahead");
    log.store(vec![(ahead.hash, b"stored ahead".to_vec())]).expect("stored");
    assert_eq!(log.collect().expect("collected"), (0, 0), "their append may still come");
    let content = staged.content();
    append_one(&*log, naming(Seq(0), content, staged.into_inline())).expect("taken");
    append_one(&*log, naming(Seq(1), ahead, None)).expect("taken");
    drop(log);
    now_and_after_reopening(harness, |log| {
        assert_eq!(log.collect().expect("collected"), (0, 0));
        assert!(read_content(&**log, &content.hash).expect("readable") == bytes);
        assert_eq!(read_content(&**log, &ahead.hash).expect("readable"), b"stored ahead");
    });
}

pub fn a_batch_of_a_hundred_thousand_files_is_one_event(harness: &mut dyn Harness) {
    let log = harness.log();
    let content = keep(&*log, b"the same in every file");
    let changes: Vec<_> = (0..100_000)
        .map(|n| FileChange::Write(write(&format!("folder-{}/file-{n}.txt", n % 997), content)))
        .collect();
    let batch = append_batch(&*log, changes, Vec::new());
    assert!(batch.list.size > 1 << 20, "its list is a blob");
    drop(log);
    now_and_after_reopening(harness, |log| {
        let events = read_checked(&**log);
        assert_eq!(events.len(), 2);
        assert!(events[1].payload.len() < 200, "the event itself is small");
        let understood = decode_event(&**log, &events[1]).expect("understood");
        let Payload::File(FileEvent::Batch(found)) = understood.payload else { panic!("not a batch") };
        assert!(found == batch, "every change comes back");
        assert_eq!(log.collect().expect("collected"), (0, 0));
    });
}
