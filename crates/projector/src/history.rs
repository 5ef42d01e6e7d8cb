//! How the projector reads the log: batches after a position, and the changes at paths.

use std::ops::ControlFlow;

use event_log::{EventLog, Head, ReadError, decode_event};
use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::{Event, FilePath, Payload, Seq, StoredEvent};

/// The most events of a batch, and the number of changes at which it is full.
const BATCH_EVENTS: usize = 1000;
const BATCH_CHANGES: usize = 10_000;

/// Some events, and the last event that was read, which may have been filtered out.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    pub(crate) through: Head,
}

/// Which events a batch holds; the others are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventFilter {
    All,
    Files,
}

/// The next batch, or none at the end of the log.
pub(crate) fn read_batch(
    log: &dyn EventLog,
    after: Seq,
    of: EventFilter,
) -> Result<Option<Batch>, ReadError> {
    let mut events = Vec::new();
    let mut through = Head { seq: after, ..Head::default() };
    let mut changes = 0;
    let mut failure = None;
    log.scan(after.next(), &mut |stored| {
        if of == EventFilter::All || is_of_files(stored) {
            match decode_event(log, stored) {
                Ok(event) => {
                    changes += change_count(&event);
                    events.push(event);
                }
                Err(e) => {
                    failure = Some(e);
                    return ControlFlow::Break(());
                }
            }
        }
        through = Head { seq: stored.seq, hash: stored.hash };
        let full = events.len() >= BATCH_EVENTS || changes >= BATCH_CHANGES;
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match failure {
        // Events before the error are projected; the next call returns the error.
        Some(e) if through.seq == after => Err(e),
        Some(_) | None => Ok((through.seq > after).then_some(Batch { events, through })),
    }
}

fn is_of_files(stored: &StoredEvent<'_>) -> bool {
    stored.name.starts_with("file.")
}

fn change_count(event: &Event) -> usize {
    if let Payload::File(FileEvent::Batch(batch)) = &event.payload { batch.changes.len() } else { 1 }
}

/// The event at a seq, with its hash.
pub(crate) fn head_at(log: &dyn EventLog, seq: Seq) -> Result<Head, ReadError> {
    let mut head = Head::default();
    if seq > Seq::ZERO {
        log.scan(seq, &mut |stored| {
            head = Head { seq: stored.seq, hash: stored.hash };
            ControlFlow::Break(())
        })?;
    }
    Ok(head)
}

/// Whether the log holds exactly this event at its seq. An event that cannot be read counts as the same: reading the
/// batch reports the error.
pub(crate) fn holds(log: &dyn EventLog, place: Head) -> bool {
    place.seq <= log.head().seq && head_at(log, place.seq).map_or(true, |found| found == place)
}

/// Visits every change of a path, with its new node, from a seq on.
pub(crate) fn each_change(
    log: &dyn EventLog,
    from: Seq,
    visit: &mut dyn FnMut(&FilePath, Option<&FileNode>),
) -> Result<(), ReadError> {
    let mut failure = None;
    log.scan(from, &mut |stored: &StoredEvent<'_>| {
        if !is_of_files(stored) {
            return ControlFlow::Continue(());
        }
        match decode_event(log, stored) {
            Ok(Event { payload: Payload::File(file), .. }) => {
                file.changes().iter().for_each(|change| visit_change(change, visit));
                ControlFlow::Continue(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(e) => {
                failure = Some(e);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(()), Err)
}

fn visit_change(change: &FileChange, visit: &mut dyn FnMut(&FilePath, Option<&FileNode>)) {
    match change {
        FileChange::Write(p) => visit(&p.path, Some(&p.node)),
        FileChange::Delete(p) => visit(&p.path, None),
        FileChange::Move(p) => {
            visit(&p.from, None);
            visit(&p.to, Some(&p.node));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use event_log::MemoryLog;
    use event_log::writer::{ChangeRequest, Mode, Options, Origin, Submission, Writer};
    use kernel::Action;
    use shared_types::{Actor, CommandId, OpId, Source, Timestamp, UserId};

    use super::*;

    fn log_of(actions: Vec<Action>) -> Arc<MemoryLog> {
        let log = Arc::new(MemoryLog::new(UserId::owner()));
        let options = Options::new(|| Timestamp::from_millis(1));
        let (writer, thread) = Writer::start(Arc::clone(&log) as Arc<dyn EventLog>, options).unwrap();
        for (number, action) in (1..).zip(actions) {
            let submission = Submission::new(
                Origin::new(
                    CommandId::from_bytes([number; 16]),
                    OpId::from_bytes([number; 16]),
                    Source::User,
                    Actor::CLI,
                ),
                ChangeRequest::Do(action),
                Vec::new(),
            );
            writer.submit(submission, Mode::Commit).unwrap();
        }
        drop(writer);
        thread.join().unwrap();
        log
    }

    fn set(value: u64) -> Action {
        Action::SetSetting { key: "zoom".into(), value: value.into() }
    }

    fn folder() -> Action {
        let edit = kernel::OutsideEdit {
            path: FilePath::parse("folder").unwrap(),
            base: None,
            now: Some(FileNode::Folder),
        };
        Action::CaptureEdits { edits: vec![edit] }
    }

    #[test]
    fn a_batch_of_files_skips_other_events_and_advances_past_them() {
        let log = log_of(vec![set(1), folder(), set(2)]);
        let all = read_batch(&*log, Seq::ZERO, EventFilter::All).unwrap().unwrap();
        let files = read_batch(&*log, Seq::ZERO, EventFilter::Files).unwrap().unwrap();
        assert_eq!((all.events.len(), files.events.len()), (3, 1));
        assert_eq!((files.through, files.events[0].seq), (all.through, Seq(2)));
        let rest = read_batch(&*log, Seq(2), EventFilter::Files).unwrap().unwrap();
        assert_eq!((rest.events.len(), rest.through), (0, all.through));
        assert!(read_batch(&*log, Seq(3), EventFilter::Files).unwrap().is_none());
    }
}
