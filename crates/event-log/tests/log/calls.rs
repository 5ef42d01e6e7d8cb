//! Tool calls through the writer: an open call survives a snapshot and a reopening, its contents must be stored, and a
//! resend gets the first answer.

use std::sync::Arc;

use event_log::conformance::Harness;
use event_log::replay::{view_at, view_from_nothing};
use event_log::snapshot::snapshot_of;
use event_log::writer::{ChangeRequest, Mode, Options, Origin, Outcome, Submission, SubmitError, Writer};
use event_log::{EventLog, decode_event};
use kernel::{Action, CallState, OutsideEdit, Rejection};
use shared_types::payload::file::FileNode;
use shared_types::payload::tool::{ToolCall, ToolEvent, ToolReport, ToolStatus};
use shared_types::{
    Actor, CommandId, ContentHash, ContentRef, FilePath, OpId, Payload, Seq, Source, Timestamp,
};

use crate::backends::{InMemory, OnDisk};

fn call() -> OpId {
    OpId::from_bytes([7; 16])
}

fn submission(command: u8, action: Action, contents: &[&[u8]]) -> Submission {
    Submission::new(
        Origin::new(CommandId::from_bytes([command; 16]), call(), Source::User, Actor::CLI),
        ChangeRequest::Do(action),
        contents.iter().map(|bytes| (ContentHash::of(bytes), bytes.to_vec())).collect(),
    )
}

/// Submits to a new writer, which has ended when this returns.
fn submit(log: &Arc<dyn EventLog>, submission: Submission) -> Result<Outcome, SubmitError> {
    let options = Options::new(|| Timestamp::from_millis(1_700_000_000_000));
    let (writer, thread) = Writer::start(Arc::clone(log), options).unwrap();
    let answer = writer.submit(submission, Mode::Commit);
    drop(writer);
    thread.join().unwrap();
    answer
}

fn start() -> Action {
    let (tool, title, input) = ("exec".into(), "make".into(), ContentRef::of(b"{}"));
    Action::StartCall(ToolCall { tool, title, input, network: true, task: None })
}

fn finish() -> Action {
    let report = ToolReport { output: Some(ContentRef::of(b"done\n")), written: 5, ..ToolReport::default() };
    let node = FileNode::file(ContentRef::of(b"made\n"), FileNode::DEFAULT_MODE);
    let edits = vec![OutsideEdit { path: FilePath::parse("out").unwrap(), base: None, now: Some(node) }];
    Action::FinishCall { status: ToolStatus::Exited { code: 0 }, report, edits }
}

fn survives_a_reopening(harness: &mut dyn Harness) {
    submit(&harness.log(), submission(1, start(), &[b"{}"])).unwrap();
    let mut view = view_at(&*harness.log(), Seq(1)).unwrap();
    harness.log().save_snapshot(&snapshot_of(&mut view)).unwrap();
    harness.reopen();

    let log = harness.log();
    let mut opened = view_at(&*log, Seq(1)).unwrap();
    assert_eq!(opened.changes(), 0, "it was read from the snapshot");
    assert_eq!(
        opened.calls.get(&call()).map(|open| (open.seq, open.state)),
        Some((Seq(1), CallState::Running))
    );
    assert_eq!(opened.root(), view_from_nothing(&*log, Seq(1)).unwrap().root());
    drop(log);

    let outcome = submit(&harness.log(), submission(2, finish(), &[b"done\n", b"made\n"])).unwrap();
    assert_eq!(outcome.decision.events.len(), 2, "the file and the result are one append");
    harness.reopen();
    let log = harness.log();
    assert!(view_at(&*log, log.head().seq).unwrap().calls.is_empty());
    let stored = log.operation(call()).unwrap();
    let names: Vec<&str> = stored.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["tool.call", "file.write", "tool.result"]);
    let Payload::Tool(ToolEvent::Result(result)) = decode_event(&*log, &stored[2]).unwrap().payload else {
        panic!("{:?}", stored[2])
    };
    assert_eq!(result.report.output, Some(ContentRef::of(b"done\n")));
}

#[test]
fn an_open_call_survives_a_reopening() {
    survives_a_reopening(&mut InMemory::new());
    survives_a_reopening(&mut OnDisk::new());
}

#[test]
fn no_call_names_bytes_that_are_not_stored() {
    let log = InMemory::new().log();
    let lacks = |answer: Result<Outcome, SubmitError>, bytes: &[u8]| {
        let Err(SubmitError::NoContent(hash)) = answer else { panic!("{answer:?}") };
        assert_eq!(hash, ContentHash::of(bytes));
    };
    lacks(submit(&log, submission(1, start(), &[])), b"{}");
    submit(&log, submission(1, start(), &[b"{}"])).unwrap();
    let report = ToolReport { output: Some(ContentRef::of(b"dry\n")), ..ToolReport::default() };
    lacks(submit(&log, submission(2, Action::HoldCall { report, changes: 1, code: None }, &[])), b"dry\n");
    lacks(submit(&log, submission(2, finish(), &[b"made\n"])), b"done\n");
    lacks(submit(&log, submission(2, finish(), &[b"done\n"])), b"made\n");
    assert_eq!(log.head().seq, Seq(1));
}

#[test]
fn a_resend_gets_the_first_answer_and_another_call_of_the_same_id_is_refused() {
    let log = InMemory::new().log();
    let first = submit(&log, submission(1, start(), &[b"{}"])).unwrap();
    let again = submit(&log, submission(1, start(), &[b"{}"])).unwrap();
    assert!(again.resent);
    assert_eq!(again.appended.map(|at| at.first), first.appended.map(|at| at.first));
    submit(&log, submission(2, finish(), &[b"done\n", b"made\n"])).unwrap();
    assert!(submit(&log, submission(2, finish(), &[])).is_ok_and(|outcome| outcome.resent));
    let Err(SubmitError::Rejected(rejection)) = submit(&log, submission(3, start(), &[b"{}"])) else {
        panic!("the id was used")
    };
    assert_eq!(rejection, Rejection::CallTaken { call: call() });
}

/// The cause of a submission is stored with each of its events, also on disk and for the next process.
#[test]
fn the_cause_of_a_submission_is_stored_with_its_events() {
    for harness in [&mut InMemory::new() as &mut dyn Harness, &mut OnDisk::new()] {
        let first = submit(&harness.log(), submission(1, start(), &[b"{}"])).unwrap();
        let cause = Some(first.decision.events[0].id);
        let mut answer = submission(2, finish(), &[b"done\n", b"made\n"]);
        answer.origin.cause = cause;
        let second = submit(&harness.log(), answer).unwrap();
        assert!(second.decision.events.len() > 1);
        assert!(second.decision.events.iter().all(|event| event.cause == cause));
        harness.reopen();
        let stored = harness.log().operation(call()).unwrap();
        let causes: Vec<_> = stored.iter().map(|event| event.cause).collect();
        assert_eq!(causes, [vec![None], vec![cause; stored.len() - 1]].concat());
    }
}

/// Two edits of the same file fall into one group, and the second needs the bytes that the first brings.
#[test]
fn an_edit_is_merged_with_one_that_waits_for_the_same_flush() {
    let harness = OnDisk::new();
    let log = harness.log();
    let options = Options::new(|| Timestamp::from_millis(1_700_000_000_000));
    let (writer, thread) = Writer::start(Arc::clone(&log), options).unwrap();
    let path = FilePath::parse("list").unwrap();
    let node = |bytes: &[u8]| FileNode::file(ContentRef::of(bytes), FileNode::DEFAULT_MODE);
    let (old, first, second): (&[u8], &[u8], &[u8]) =
        (b"1\n2\n3\n4\n5\n", b"one\n2\n3\n4\n5\n", b"1\n2\n3\n4\nfive\n");
    let edit = |base: Option<FileNode>, now: &[u8]| Action::CaptureEdits {
        edits: vec![OutsideEdit { path: path.clone(), base, now: Some(node(now)) }],
    };
    writer.submit(submission(1, edit(None, old), &[old]), Mode::Commit).unwrap();
    // The writer's thread is blocked until both submissions wait for it.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let busy = writer.clone();
    let holding = std::thread::spawn(move || busy.inspect(move |_| held.recv().is_err()));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (answer, answers) = std::sync::mpsc::channel();
    for (command, now) in [(2, first), (3, second)] {
        let answer = answer.clone();
        let wanted = submission(command, edit(Some(node(old)), now), &[now]);
        writer.submit_with(wanted, Mode::Commit, move |came| drop(answer.send(came.map(drop))));
    }
    drop(hold);
    holding.join().unwrap().unwrap();
    for _ in 0..2 {
        answers.recv().unwrap().unwrap();
    }
    let found = writer.inspect(move |view| view.files.get(&path).cloned()).unwrap();
    assert_eq!(found, Some(node(b"one\n2\n3\n4\nfive\n")));
    drop(writer);
    thread.join().unwrap();
}
