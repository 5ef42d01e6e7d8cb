//! Runs through the writer: their ids, their contents, and their undo as one operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use event_log::conformance::Harness;
use event_log::replay::{view_at, view_from_nothing};
use event_log::snapshot::snapshot_of;
use event_log::writer::{ChangeRequest, Mode, Options, Origin, Outcome, Submission, SubmitError, Writer};
use event_log::{EventLog, read_content};
use kernel::run::RunPhase;
use kernel::{Action, Base, OutsideEdit, Rejection, Resolutions, RunAction};
use shared_types::payload::file::FileNode;
use shared_types::payload::run::{Budget, RunStart};
use shared_types::payload::task::{TaskEnd, TaskOutcome, TaskStart};
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::{
    Actor, CommandId, ContentHash, ContentRef, FilePath, OpId, RunId, Source, TaskId, Timestamp,
};

use crate::backends::{InMemory, OnDisk};

fn run() -> RunId {
    RunId::from_bytes([1; 16])
}

/// The first agent of the run.
fn task() -> TaskId {
    TaskId::from_bytes([1; 16])
}

fn op(n: u8) -> OpId {
    OpId::from_bytes([n; 16])
}

fn writer(log: &Arc<dyn EventLog>) -> (Writer, std::thread::JoinHandle<()>) {
    let options = Options::new(|| Timestamp::from_millis(1_700_000_000_000));
    Writer::start(Arc::clone(log), options).unwrap()
}

fn submission(command: u8, run_id: Option<RunId>, change: ChangeRequest, contents: &[&[u8]]) -> Submission {
    Submission::new(
        Origin {
            run_id,
            ..Origin::new(CommandId::from_bytes([command; 16]), op(command), Source::Agent, Actor::CLI)
        },
        change,
        contents.iter().map(|bytes| (ContentHash::of(bytes), bytes.to_vec())).collect(),
    )
}

fn in_run(command: u8, action: RunAction) -> Submission {
    submission(command, Some(run()), ChangeRequest::Do(Action::Run(action)), &[b"{}"])
}

fn start() -> RunAction {
    let (objective, budget) = (ContentRef::of(b"{}"), Budget::default());
    RunAction::Start(RunStart { title: "Bees".into(), objective, attached: Vec::new(), model: None, budget })
}

fn first_task() -> RunAction {
    let (role, title, instruction) = ("writer".into(), "work".into(), ContentRef::of(b"{}"));
    RunAction::StartTask(TaskStart { task: task(), parent: None, role, title, instruction })
}

fn node(text: &str) -> FileNode {
    FileNode::file(ContentRef::of(text.as_bytes()), FileNode::DEFAULT_MODE)
}

/// A file that came from outside.
fn edits(name: &str) -> Action {
    let path = FilePath::parse(name).unwrap();
    Action::CaptureEdits { edits: vec![OutsideEdit { path, base: None, now: Some(node(name)) }] }
}

/// An agent replaces one text with another.
fn edit(command: u8, from: Option<&str>, to: &str) -> Submission {
    let (tool, title, input) = ("write".into(), "a".into(), ContentRef::of(b"{}"));
    let path = FilePath::parse("a").unwrap();
    let action = Action::MakeCall {
        call: ToolCall { tool, title, input, network: false, task: Some(task()) },
        status: ToolStatus::Exited { code: 0 },
        report: ToolReport::default(),
        edits: vec![OutsideEdit { path, base: from.map(node), now: Some(node(to)) }],
        also: None,
    };
    submission(command, Some(run()), ChangeRequest::Do(action), &[b"{}", to.as_bytes()])
}

/// The person writes.
fn write(command: u8, text: &str) -> Submission {
    let path = FilePath::parse("a").unwrap();
    let action = Action::WriteFile { path, node: node(text), base: Base::Any };
    submission(command, None, ChangeRequest::Do(action), &[text.as_bytes()])
}

fn ended(command: u8) -> [Submission; 2] {
    let end = TaskEnd { task: task(), outcome: TaskOutcome::Done };
    let complete =
        shared_types::payload::run::RunComplete { summary: ContentRef::of(b"{}"), results: Vec::new() };
    [
        in_run(
            command,
            RunAction::EndTask { end, report: None, seen: None, known: shared_types::Seq(u64::MAX) },
        ),
        in_run(command + 1, RunAction::Complete(complete)),
    ]
}

fn undo_run(command: u8) -> Submission {
    submission(command, None, ChangeRequest::UndoRun { run: run(), resolutions: Resolutions::default() }, &[])
}

/// Submits all of them in order to a new writer.
fn submit_all(log: &Arc<dyn EventLog>, submissions: impl IntoIterator<Item = Submission>) {
    let (writer, thread) = writer(log);
    for submission in submissions {
        writer.submit(submission, Mode::Commit).unwrap();
    }
    drop(writer);
    thread.join().unwrap();
}

fn text(log: &Arc<dyn EventLog>) -> String {
    let view = view_at(&**log, log.head().seq).unwrap();
    let content = view.files.get(&FilePath::parse("a").unwrap()).unwrap().content().unwrap();
    String::from_utf8(read_content(&**log, &content.hash).unwrap()).unwrap()
}

const BEFORE: &str = "1\n2\n3\n4\n5\n";
const AFTER: &str = "one\n2\nmine\n4\nfive\n";

fn whole_run() -> Vec<Submission> {
    let mut all = vec![
        write(10, BEFORE),
        in_run(11, start()),
        in_run(12, first_task()),
        edit(13, Some(BEFORE), "one\n2\n3\n4\n5\n"),
        write(14, "one\n2\nmine\n4\n5\n"),
        edit(15, Some("one\n2\nmine\n4\n5\n"), AFTER),
    ];
    all.extend(ended(16));
    all
}

fn is_undone_as_one(harness: &mut dyn Harness) {
    submit_all(&harness.log(), whole_run());
    harness.reopen();
    let log = harness.log();
    assert_eq!(text(&log), AFTER);
    assert_eq!(log.run(run()).unwrap().len(), 10);
    let (writer, thread) = writer(&log);
    let preview = writer.submit(undo_run(20), Mode::Preview).unwrap();
    assert_eq!(preview.decision.events.len(), 2, "the mark, and the file");
    assert_eq!(text(&log), AFTER, "a preview changes nothing");
    let undone = writer.submit(undo_run(20), Mode::Commit).unwrap();
    assert_eq!(text(&log), "1\n2\nmine\n4\n5\n");
    assert!(writer.submit(undo_run(20), Mode::Commit).unwrap().resent);
    let again = writer.submit(undo_run(21), Mode::Commit);
    let whole = OpId::from_bytes(*run().as_bytes());
    assert!(matches!(again, Err(SubmitError::Rejected(Rejection::AlreadyUndone { op })) if op == whole));
    let step = submission(
        22,
        None,
        ChangeRequest::Undo { target: op(13), resolutions: Resolutions::default() },
        &[],
    );
    let step = writer.submit(step, Mode::Commit);
    assert!(
        matches!(step, Err(SubmitError::Rejected(Rejection::AlreadyUndone { op: taken })) if taken == op(13))
    );

    let mut view = view_at(&*log, log.head().seq).unwrap();
    log.save_snapshot(&snapshot_of(&mut view)).unwrap();
    assert_eq!(view_at(&*log, log.head().seq).unwrap().changes(), 0, "it was read from the snapshot");
    assert_eq!(view_from_nothing(&*log, log.head().seq).unwrap().root(), view.root());

    let target = undone.decision.events[0].op;
    let redo = submission(23, None, ChangeRequest::Undo { target, resolutions: Resolutions::default() }, &[]);
    writer.submit(redo, Mode::Commit).unwrap();
    assert_eq!(text(&log), AFTER);
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn a_run_is_undone_as_one_operation() {
    is_undone_as_one(&mut InMemory::new());
    is_undone_as_one(&mut OnDisk::new());
}

/// Submissions that are sent together fall into one group; the undo waits until the log holds the events before it.
#[test]
fn an_undo_sees_what_waits_for_the_same_flush() {
    let log = InMemory::new().log();
    let (writer, thread) = writer(&log);
    let (sender, answers) = mpsc::channel();
    // The writer's thread is blocked until all submissions wait for it.
    let (open, gate) = mpsc::channel::<()>();
    let held = writer.clone();
    let holding = std::thread::spawn(move || held.inspect(move |_| gate.recv().unwrap()).unwrap());
    let all: Vec<Submission> = whole_run().into_iter().chain([undo_run(20)]).collect();
    let count = all.len();
    std::thread::sleep(std::time::Duration::from_millis(20));
    for submission in all {
        let sender = sender.clone();
        writer.submit_with(submission, Mode::Commit, move |answer| sender.send(answer).unwrap());
    }
    open.send(()).unwrap();
    holding.join().unwrap();
    let answers: Vec<Result<Outcome, SubmitError>> = answers.iter().take(count).collect();
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(text(&log), "1\n2\nmine\n4\n5\n");
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn an_inspection_sees_only_durable_events_and_does_not_split_the_group() {
    let log = InMemory::new().log();
    let (writer, thread) = writer(&log);
    let (open, gate) = mpsc::channel::<()>();
    let held = writer.clone();
    let holding = std::thread::spawn(move || held.inspect(move |_| gate.recv().unwrap()).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let (sender, seen) = mpsc::channel();
    writer.submit_with(in_run(11, start()), Mode::Commit, |_| ());
    let (looked, same) = (sender.clone(), Arc::clone(&log));
    writer.inspect_with(move |view| looked.send((view.seq(), same.head().seq)).unwrap());
    writer.submit_with(in_run(12, first_task()), Mode::Commit, |_| ());
    open.send(()).unwrap();
    holding.join().unwrap();
    let (shown, durable) = seen.recv().unwrap();
    assert_eq!(shown, durable, "what was shown is in the log");
    assert_eq!(shown, writer.inspect(|view| view.seq()).unwrap(), "both were flushed together");
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn an_inspection_during_a_failed_append_sees_what_the_log_holds() {
    let log = InMemory::new().log();
    // Another append comes once, between the first decision and its append.
    let (other, is_due) = (Arc::clone(&log), AtomicBool::new(true));
    let clock = move || {
        if is_due.swap(false, Ordering::Relaxed) {
            submit_all(&other, [submission(1, None, ChangeRequest::Do(edits("b")), &[b"b"])]);
        }
        Timestamp::from_millis(1_700_000_000_000)
    };
    let options = Options::new(clock);
    let (writer, thread) = Writer::start(Arc::clone(&log), options).unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let held = writer.clone();
    let holding = std::thread::spawn(move || held.inspect(move |_| gate.recv().unwrap()).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let (answer, answers) = mpsc::channel();
    let (looked, seen) = mpsc::channel();
    writer.submit_with(in_run(11, start()), Mode::Commit, move |came| answer.send(came.map(drop)).unwrap());
    writer.inspect_with(move |view| looked.send((view.seq(), view.runs.contains(&run()))).unwrap());
    open.send(()).unwrap();
    holding.join().unwrap();
    let came = answers.recv().unwrap();
    assert!(matches!(came, Err(SubmitError::Append(_))), "{came:?}");
    assert_eq!(seen.recv().unwrap(), (log.head().seq, false), "nothing of what failed was shown");
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn of_two_calls_with_one_id_in_a_group_the_second_is_refused() {
    let log = InMemory::new().log();
    submit_all(&log, [in_run(11, start()), in_run(12, first_task())]);
    let (writer, thread) = writer(&log);
    let (sender, answers) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let held = writer.clone();
    let holding = std::thread::spawn(move || held.inspect(move |_| gate.recv().unwrap()).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut second = edit(14, Some("x"), "y");
    second.origin.op = op(13);
    for submission in [edit(13, None, "x"), second] {
        let sender = sender.clone();
        writer.submit_with(submission, Mode::Commit, move |answer| sender.send(answer).unwrap());
    }
    open.send(()).unwrap();
    holding.join().unwrap();
    let refused = answers.iter().take(2).filter_map(Result::err).collect::<Vec<_>>();
    let [SubmitError::Rejected(rejection)] = refused.as_slice() else { panic!("{refused:?}") };
    assert_eq!(*rejection, Rejection::CallTaken { call: op(13) });
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn the_id_of_a_run_is_used_once_even_after_the_run_is_forgotten() {
    let log = InMemory::new().log();
    let (writer, thread) = writer(&log);
    let other = |n: u8, command, action| {
        let mut submission = in_run(command, action);
        submission.origin.run_id = Some(RunId::from_bytes([n; 16]));
        submission
    };
    for n in 1..=60 {
        writer.submit(other(n, n, start()), Mode::Commit).unwrap();
        writer.submit(other(n, n + 100, RunAction::Cancel), Mode::Commit).unwrap();
    }
    let known = writer.inspect(|view| view.runs.contains(&run())).unwrap();
    assert!(!known, "it is over for long");
    let again = writer.submit(in_run(250, start()), Mode::Commit);
    assert!(
        matches!(again, Err(SubmitError::Rejected(Rejection::RunTaken { run: taken })) if taken == run()),
        "{again:?}"
    );
    assert!(writer.submit(in_run(1, start()), Mode::Commit).is_ok_and(|outcome| outcome.resent));
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn a_run_survives_a_snapshot_and_a_reopening() {
    for harness in [&mut InMemory::new() as &mut dyn Harness, &mut OnDisk::new()] {
        submit_all(&harness.log(), whole_run().into_iter().take(6));
        let log = harness.log();
        let mut view = view_at(&*log, log.head().seq).unwrap();
        log.save_snapshot(&snapshot_of(&mut view)).unwrap();
        drop(log);
        harness.reopen();
        let log = harness.log();
        let mut opened = view_at(&*log, log.head().seq).unwrap();
        assert_eq!(opened.changes(), 0, "it was read from the snapshot");
        assert_eq!(opened.root(), view.root());
        let known = opened.runs.get(&run()).unwrap();
        assert_eq!((known.phase.clone(), known.tasks.len()), (RunPhase::Working, 1));
    }
}

#[test]
fn no_event_of_a_run_names_bytes_that_are_not_stored() {
    let log = InMemory::new().log();
    let (writer, thread) = writer(&log);
    let lacks = |submission: Submission, bytes: &[u8]| {
        let contents =
            submission.contents.iter().filter(|(hash, _)| *hash != ContentHash::of(bytes)).cloned();
        let without = Submission { contents: contents.collect(), ..submission };
        let answer = writer.submit(without, Mode::Commit);
        let Err(SubmitError::NoContent(hash)) = answer else { panic!("{answer:?}") };
        assert_eq!(hash, ContentHash::of(bytes));
    };
    lacks(in_run(11, start()), b"{}");
    writer.submit(in_run(11, start()), Mode::Commit).unwrap();
    writer.submit(in_run(12, first_task()), Mode::Commit).unwrap();
    lacks(edit(13, None, "x"), b"x");
    drop(writer);
    thread.join().unwrap();
}
