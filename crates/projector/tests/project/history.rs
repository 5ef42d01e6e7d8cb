//! Random histories: everything that can happen to a computer, in any order.

use event_log::writer::{ChangeRequest, SubmitError};
use kernel::{Action, Base, OutsideEdit, Resolutions, RunAction};
use proptest::collection::vec;
use proptest::prelude::*;
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::payload::file::FileNode;
use shared_types::payload::message::{ConversationStart, MessagePost, Role};
use shared_types::payload::note::{Note, NoteDelete, NoteWrite};
use shared_types::payload::run::PauseReason;
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{
    ContentHash, ContentRef, ConversationId, FilePath, MessageId, NoteId, OpId, Seq, Source, Timestamp,
};

use crate::calling;
use crate::computer::{Computer, at, new_effect};
use crate::running;

/// Paths that conflict with each other: some are files and folders by turns.
const PATHS: [&str; 9] = ["a", "a/b", "a/b/c", "d/x.md", "d/y.md", "d/e/z", "ü/ñ.txt", "f.rs", "a/link"];

/// This many cases, or `PROPTEST_CASES`.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

/// One step of a history.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write {
        path: usize,
        text: usize,
        mode: u16,
        source: Source,
    },
    Link {
        path: usize,
    },
    Folder {
        path: usize,
    },
    Delete {
        path: usize,
    },
    Move {
        from: usize,
        to: usize,
    },
    /// A program edits a file on disk.
    Edit {
        path: usize,
        text: usize,
    },
    Remove {
        path: usize,
    },
    Many {
        round: usize,
    },
    Set {
        key: usize,
        value: i64,
    },
    Clear {
        key: usize,
    },
    Note {
        note: u8,
        text: usize,
    },
    Forget {
        note: u8,
    },
    Say {
        conversation: u8,
        text: usize,
    },
    /// A command that ends at once and saw either the current file or none.
    Run {
        path: usize,
        text: usize,
        saw: bool,
    },
    /// A change in one of two runs.
    Agent {
        run: u8,
        turn: u8,
        path: usize,
        text: usize,
    },
    Undo {
        back: usize,
    },
    UndoRun {
        run: u8,
    },
    Restore {
        percent: u64,
    },
    Checkpoint,
    Purge {
        text: usize,
    },
    Capture,
    CatchUp,
    Settle,
    Restart,
}

pub(crate) fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..length)
}

/// Changes of the log only, while the disk stays behind.
pub(crate) fn unprojected(length: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(gesture(), 0..length)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => gesture(),
        3 => outside(),
        1 => Just(Step::Capture),
        1 => Just(Step::CatchUp),
        2 => Just(Step::Settle),
        1 => Just(Step::Restart),
    ]
}

fn outside() -> impl Strategy<Value = Step> {
    let (path, text) = (0..PATHS.len(), 0..12_usize);
    prop_oneof![
        6 => (path.clone(), text).prop_map(|(path, text)| Step::Edit { path, text }),
        2 => path.prop_map(|path| Step::Remove { path }),
        1 => (0..3_usize).prop_map(|round| Step::Many { round }),
    ]
}

fn gesture() -> impl Strategy<Value = Step> {
    let (path, text) = (0..PATHS.len(), 0..12_usize);
    let mode = prop_oneof![4 => Just(0o644_u16), 1 => Just(0o755), 1 => Just(0o600)];
    let source = prop_oneof![2 => Just(Source::User), 1 => Just(Source::Agent)];
    let write = (path.clone(), text.clone(), mode, source);
    prop_oneof![
        10 => write.prop_map(|(path, text, mode, source)| Step::Write { path, text, mode, source }),
        1 => path.clone().prop_map(|path| Step::Link { path }),
        1 => path.clone().prop_map(|path| Step::Folder { path }),
        3 => path.clone().prop_map(|path| Step::Delete { path }),
        3 => (path.clone(), path).prop_map(|(from, to)| Step::Move { from, to }),
        2 => (0..3_usize, -5..5_i64).prop_map(|(key, value)| Step::Set { key, value }),
        1 => (0..3_usize).prop_map(|key| Step::Clear { key }),
        2 => (0..3_u8, text.clone()).prop_map(|(note, text)| Step::Note { note, text }),
        1 => (0..3_u8).prop_map(|note| Step::Forget { note }),
        2 => (0..2_u8, text.clone()).prop_map(|(conversation, text)| Step::Say { conversation, text }),
        3 => (0..PATHS.len(), text.clone(), any::<bool>()).prop_map(|(path, text, saw)| Step::Run { path, text, saw }),
        6 => (1..3_u8, 0..12_u8, 0..PATHS.len(), text.clone())
            .prop_map(|(run, turn, path, text)| Step::Agent { run, turn, path, text }),
        1 => (1..3_u8).prop_map(|run| Step::UndoRun { run }),
        5 => (0..8_usize).prop_map(|back| Step::Undo { back }),
        2 => (0..101_u64).prop_map(|percent| Step::Restore { percent }),
        1 => Just(Step::Checkpoint),
        1 => text.prop_map(|text| Step::Purge { text }),
    ]
}

/// A few texts that merge, clash, are empty, are no text, or are too large for the log's own file.
pub(crate) fn text(number: usize) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        1 => vec![0, 159, 146, 150],
        2 => b"a large one\n".repeat(6000),
        n => {
            let mut lines: Vec<String> = (1..9).map(|line| format!("line {line}\n")).collect();
            lines[n % 8] = format!("line {n}, changed\n");
            lines.concat().into_bytes()
        }
    }
}

fn id_bits(kind: u8, number: u8) -> (Timestamp, [u8; 10]) {
    (Timestamp::from_millis(1), [kind, number, 0, 0, 0, 0, 0, 0, 0, 1])
}

/// Runs a history. Refused steps change nothing and are part of it.
pub(crate) fn happen(computer: &mut Computer, steps: &[Step]) {
    for step in steps {
        one(computer, step);
    }
}

fn one(computer: &mut Computer, step: &Step) {
    match step {
        Step::Write { path, text: number, mode, source } => {
            let bytes = text(*number);
            let staged = event_log::EventLog::stage(computer.log(), &mut bytes.as_slice()).unwrap();
            let node = FileNode::file(staged.content(), *mode);
            let inline: Vec<Vec<u8>> = staged.into_inline().into_iter().map(|(_, bytes)| bytes).collect();
            let contents: Vec<&[u8]> = inline.iter().map(Vec::as_slice).collect();
            let action = Action::WriteFile { path: at(PATHS[*path]), node, base: Base::Any };
            refused(computer.submit_as(*source, ChangeRequest::Do(action), &contents));
        }
        Step::Link { path } => put(computer, *path, FileNode::Symlink { target: "f.rs".into() }),
        Step::Folder { path } => put(computer, *path, FileNode::Folder),
        Step::Delete { path } => act(computer, Action::DeletePaths { paths: vec![at(PATHS[*path])] }),
        Step::Move { from, to } => {
            act(computer, Action::MovePaths { moves: vec![(at(PATHS[*from]), at(PATHS[*to]))] });
        }
        Step::Edit { path, text: number } => edit(computer, PATHS[*path], &text(*number)),
        Step::Remove { path } => remove(computer, PATHS[*path]),
        Step::Many { round } => {
            for number in 0..520 {
                computer.edit(&format!("many/{number:03}"), format!("{round} {number}\n"));
            }
        }
        Step::Set { key, value } => {
            act(computer, Action::SetSetting { key: format!("key{key}").into(), value: (*value).into() });
        }
        Step::Clear { key } => act(computer, Action::ClearSetting { key: format!("key{key}").into() }),
        Step::Note { note, text: number } => {
            let (ts, bits) = id_bits(1, *note);
            let bytes = small(*number);
            let state = Note { title: format!("note {number}").into(), body: ContentRef::of(&bytes) };
            let note = NoteId::mint(ts, bits);
            let prev = computer.view().notes.get(&note).cloned();
            computer.record(NoteWrite { note, state, prev }, &[&bytes]);
        }
        Step::Forget { note } => {
            let (ts, bits) = id_bits(1, *note);
            let note = NoteId::mint(ts, bits);
            if let Some(prev) = computer.view().notes.get(&note).cloned() {
                computer.record(NoteDelete { note, prev }, &[]);
            }
        }
        Step::Say { conversation, text } => say(computer, *conversation, *text),
        Step::Run { path, text, saw } => run(computer, &at(PATHS[*path]), *text, *saw),
        Step::Agent { run, turn, path, text } => agent(computer, *run, *turn, PATHS[*path], *text),
        Step::UndoRun { run } => {
            let (run, resolutions) = (running::run_id(*run), Resolutions::default());
            refused(computer.submit(ChangeRequest::UndoRun { run, resolutions }, &[]));
        }
        Step::Undo { back } => {
            if let Some(target) = operation_back(computer, *back) {
                refused(
                    computer.submit(ChangeRequest::Undo { target, resolutions: Resolutions::default() }, &[]),
                );
            }
        }
        Step::Restore { percent } => {
            let seq = Seq(computer.head().0 * percent / 100);
            refused(computer.submit(ChangeRequest::Restore { seq }, &[]));
        }
        Step::Checkpoint => {
            let effect = new_effect();
            let message: Box<str> = "so far".into();
            let reason = CheckpointReason::Manual;
            computer.act(Action::RequestCheckpoint { effect, reason, message: message.clone() });
            let (commit, seq) = ("0123456789abcdef0123456789abcdef01234567".into(), computer.head());
            computer.act(Action::RecordCheckpoint { effect, commit, seq, message });
        }
        Step::Purge { text: number } => purge(computer, &text(*number)),
        Step::Capture => drop(computer.capture()),
        Step::CatchUp => drop(computer.catch_up()),
        Step::Settle => computer.settle(),
        Step::Restart => computer.restart(),
    }
}

fn small(number: usize) -> Vec<u8> {
    format!("words number {number}").into_bytes()
}

fn refused<T>(outcome: Result<T, SubmitError>) {
    match outcome {
        Ok(_) | Err(SubmitError::Rejected(_) | SubmitError::NoContent(_) | SubmitError::Content(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

fn act(computer: &Computer, action: Action) {
    refused(computer.submit(ChangeRequest::Do(action), &[]));
}

fn put(computer: &Computer, path: usize, node: FileNode) {
    act(computer, Action::WriteFile { path: at(PATHS[path]), node, base: Base::Any });
}

fn run(computer: &Computer, path: &FilePath, number: usize, saw: bool) {
    let op = calling::start(computer, "make", false);
    let bytes = text(number);
    let staged = event_log::EventLog::stage(computer.log(), &mut bytes.as_slice()).unwrap();
    let now = Some(FileNode::file(staged.content(), 0o644));
    let base = computer.nodes().get(path).filter(|_| saw).cloned();
    let (status, report) = (ToolStatus::Exited { code: 0 }, ToolReport::default());
    let edits = vec![OutsideEdit { path: path.clone(), base, now }];
    let inline: Vec<Vec<u8>> = staged.into_inline().into_iter().map(|(_, bytes)| bytes).collect();
    let contents: Vec<&[u8]> = inline.iter().map(Vec::as_slice).collect();
    let change = ChangeRequest::Do(Action::FinishCall { status, report, edits });
    refused(computer.submit_in(op, Source::User, change, &contents));
}

fn agent(computer: &Computer, run: u8, turn: u8, path: &str, number: usize) {
    let action = match turn {
        0 | 1 => running::begin("Bees"),
        2 | 3 => running::task(run, None),
        4 => running::task(run + 2, Some(run)),
        5 => running::reply(run, number as u64, number.is_multiple_of(2).then_some(7)),
        6 => running::ask(run, run),
        7 => running::answer(run),
        8 => running::end_task(if number.is_multiple_of(2) { run } else { run + 2 }),
        9 => select_end(number),
        _ => {
            let bytes = text(number);
            let staged = event_log::EventLog::stage(computer.log(), &mut bytes.as_slice()).unwrap();
            let inline = staged.into_inline().map(|(_, bytes)| bytes).unwrap_or_else(|| small(number));
            return refused(running::write(computer, run, path, &inline));
        }
    };
    refused(running::act(computer, run, action));
}

fn select_end(number: usize) -> RunAction {
    match number % 3 {
        0 => RunAction::Cancel,
        1 => running::complete(),
        _ => RunAction::Pause(PauseReason::Model("no model answers".into())),
    }
}

fn say(computer: &Computer, conversation: u8, number: usize) {
    let (ts, bits) = id_bits(2, conversation);
    let conversation = ConversationId::mint(ts, bits);
    if !computer.view().conversations.contains(&conversation) {
        computer.record(ConversationStart { conversation, title: "a talk".into() }, &[]);
    }
    let bytes = small(number);
    let message = MessageId::mint(Timestamp::from_millis(computer.head().0 as i64), [7; 10]);
    let (body, role) = (ContentRef::of(&bytes), Role::Person);
    computer.record(MessagePost { conversation, message, role, body, reply_to: None }, &[&bytes]);
}

/// Contents in use are not purged, as on the command line.
fn purge(computer: &Computer, bytes: &[u8]) {
    let hash = ContentHash::of(bytes);
    let used =
        computer.nodes().values().any(|node| node.content().is_some_and(|content| content.hash == hash));
    if !used && computer.holds(bytes) {
        computer.purge(bytes);
    }
}

fn operation_back(computer: &Computer, back: usize) -> Option<OpId> {
    let mut ops = Vec::new();
    event_log::EventLog::scan(computer.log(), Seq(1), &mut |stored| {
        if ops.last() != Some(&stored.op) {
            ops.push(stored.op);
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    ops.into_iter().rev().nth(back)
}

/// Writes a file as a program would that removes anything in its way.
fn edit(computer: &Computer, path: &str, bytes: &[u8]) {
    let mut above = computer.workspace();
    for part in path.split('/').collect::<Vec<_>>().split_last().unwrap().1 {
        above.push(part);
        if !above.is_dir() || above.is_symlink() {
            let _ = std::fs::remove_file(&above);
            std::fs::create_dir_all(&above).unwrap();
        }
    }
    remove(computer, path);
    std::fs::write(computer.on_disk(path), bytes).unwrap();
}

fn remove(computer: &Computer, path: &str) {
    let path = computer.on_disk(path);
    let _ = std::fs::remove_file(&path);
    let _ = std::fs::remove_dir_all(&path);
}
