//! Sample events, appends and racing writers. Ids come from a counter, so a failure can be repeated.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use shared_types::payload::file::{FileNode, FileWrite};
use shared_types::{
    Actor, ChainHash, CommandId, ContentHash, ContentRef, Event, EventId, FilePath, OpId, Payload, Seq,
    Source, StoredEvent, Taint, Timestamp,
};

use crate::{Append, AppendError, Appended, EventLog};

static COUNT: AtomicU64 = AtomicU64::new(1);

fn fresh() -> [u8; 16] {
    u128::from(COUNT.fetch_add(1, Ordering::Relaxed)).to_be_bytes()
}

pub fn command() -> CommandId {
    CommandId::from_bytes(fresh())
}

pub fn op() -> OpId {
    OpId::from_bytes(fresh())
}

/// A file whose content is `text`.
pub fn write(path: &str, content: ContentRef) -> FileWrite {
    let path = FilePath::parse(path).expect("a path");
    FileWrite { path, node: FileNode::file(content, FileNode::DEFAULT_MODE), prev: None }
}

pub fn event(seq: Seq, op: OpId, payload: impl Into<Payload>) -> Event {
    Event {
        seq,
        id: EventId::from_bytes(fresh()),
        ts: Timestamp::from_millis(1_700_000_000_000),
        source: Source::User,
        op,
        actor: Actor::CLI,
        run_id: None,
        cause: seq.0.is_multiple_of(3).then(|| EventId::from_bytes([7; 16])),
        taint: if seq.0.is_multiple_of(5) { vec![Taint::IMPORT] } else { Vec::new() },
        payload: payload.into(),
    }
}

/// An append of `count` events of one operation after a seq, each naming a content that it carries.
pub fn append(after: Seq, count: u64) -> Append {
    append_of(after, op(), count)
}

pub fn append_of(after: Seq, op: OpId, count: u64) -> Append {
    let mut append = Append { command: command(), expected: after, events: Vec::new(), contents: Vec::new() };
    for n in 1..=count {
        let seq = Seq(after.0 + n);
        let bytes = format!("content of event {seq}").into_bytes();
        let content = ContentRef::of(&bytes);
        append.events.push(event(seq, op, write(&format!("folder/file-{n}.txt"), content)));
        append.contents.push((content.hash, bytes));
    }
    append
}

/// An append of one event that names a content, which the append carries if it is given.
pub fn naming(after: Seq, content: ContentRef, inline: Option<(ContentHash, Vec<u8>)>) -> Append {
    let event = event(after.next(), op(), write("named.bin", content));
    Append {
        command: command(),
        expected: after,
        events: vec![event],
        contents: inline.into_iter().collect(),
    }
}

/// Appends a group of one and returns its answer.
pub fn append_one(log: &dyn EventLog, append: Append) -> Result<Appended, AppendError> {
    log.append(&[append]).pop().expect("one append has one answer")
}

/// Fills a log up to `count` events, ten to an operation.
pub fn fill(log: &dyn EventLog, count: u64) {
    while log.head().seq.0 < count {
        let after = log.head().seq;
        append_one(log, append(after, (count - after.0).min(10))).expect("the append fits");
    }
}

/// All events from a seq on.
pub fn read(log: &dyn EventLog, from: Seq) -> Vec<StoredEvent<'static>> {
    let mut events = Vec::new();
    log.scan(from, &mut |event| {
        events.push(event.clone().into_owned());
        ControlFlow::Continue(())
    })
    .expect("the log is readable");
    events
}

/// Reads the whole log, checks seqs and chain independently of the log, and returns the events.
pub fn read_checked(log: &dyn EventLog) -> Vec<StoredEvent<'static>> {
    let events = read(log, Seq(1));
    let mut previous = ChainHash::default();
    for (event, place) in events.iter().zip(1..) {
        assert_eq!(event.seq, Seq(place), "the log has a gap or a repeat");
        assert_eq!(event.hash, event.link(&previous), "event {place} is not linked");
        previous = event.hash;
    }
    let head = log.head();
    assert_eq!((head.seq, head.hash), (Seq(events.len() as u64), previous), "the head is the last event");
    events
}

/// One of several racing writers: appends its groups in order, retries each until it is accepted, and returns the
/// ids of its events in order. `groups` holds, for each group, the number of events of each of its appends.
pub fn contend(log: &dyn EventLog, groups: &[Vec<u64>]) -> Vec<EventId> {
    let mut acknowledged = Vec::new();
    for sizes in groups {
        let mut waiting: Vec<Append> = sizes.iter().map(|size| append(Seq::ZERO, *size)).collect();
        while !waiting.is_empty() {
            let mut place = log.head().seq;
            for append in &mut waiting {
                append.expected = place;
                for event in &mut append.events {
                    place = place.next();
                    event.seq = place;
                }
            }
            let answers = log.append(&waiting);
            assert_eq!(answers.len(), waiting.len(), "every append has its answer");
            let mut refused = Vec::new();
            for (append, answer) in waiting.into_iter().zip(answers) {
                match answer {
                    Ok(answer) => {
                        assert_eq!(answer.first, append.expected.next());
                        acknowledged.extend(append.events.iter().map(|event| event.id));
                    }
                    Err(AppendError::WrongSeq { expected, actual }) => {
                        assert_ne!(expected, actual);
                        refused.push(append);
                    }
                    Err(error) => panic!("only a wrong seq may refuse these: {error}"),
                }
            }
            waiting = refused;
        }
    }
    acknowledged
}
