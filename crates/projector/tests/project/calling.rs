//! Tool calls in the timeline: their rows while they run, while they wait, and after they ended.

use event_log::writer::{ChangeRequest, SubmitError};
use kernel::{Action, OutsideEdit, Rejection};
use projector::query::{OperationFilter, OperationRow};
use shared_types::payload::file::FileNode;
use shared_types::payload::tool::{StopReason, ToolCall, ToolReport, ToolStatus};
use shared_types::wire::{CallLine, CallStatus, RevertDirection, Reverted};
use shared_types::{ContentRef, OpId, Source};

use crate::computer::{Computer, at, new_op};

pub(crate) fn start(computer: &Computer, title: &str, network: bool) -> OpId {
    let op = new_op();
    let (tool, input) = ("exec".into(), ContentRef::of(b"{}"));
    let action = Action::StartCall(ToolCall { tool, title: title.into(), input, network, task: None });
    computer.submit_in(op, Source::User, ChangeRequest::Do(action), &[b"{}"]).unwrap();
    op
}

pub(crate) fn end(
    computer: &Computer,
    op: OpId,
    status: ToolStatus,
    edits: Vec<OutsideEdit>,
    contents: &[&[u8]],
) {
    let action = Action::FinishCall { status, report: ToolReport::default(), edits };
    computer.submit_in(op, Source::User, ChangeRequest::Do(action), contents).unwrap();
}

fn row(computer: &Computer, op: OpId) -> OperationRow {
    computer.settle();
    computer.assert_faithful();
    computer.views().operation(op).unwrap().unwrap()
}

fn arrival(path: &str, text: &[u8]) -> OutsideEdit {
    let node = FileNode::file(ContentRef::of(text), 0o644);
    OutsideEdit { path: at(path), base: None, now: Some(node) }
}

#[test]
fn a_row_shows_the_state_of_a_command() {
    let computer = Computer::new();
    let op = start(&computer, "cargo test", true);
    let running = row(&computer, op);
    assert_eq!((&*running.family, &*running.label), ("tool", "ran: cargo test"));
    assert_eq!(running.title.as_deref(), Some("cargo test"));
    let call = |status, code| Some(CallLine { status, code, network: true });
    assert_eq!((running.call, running.reversible), (call(CallStatus::Running, None), false));

    let hold = Action::HoldCall { report: ToolReport::default(), changes: 1, code: Some(3) };
    computer.submit_in(op, Source::User, ChangeRequest::Do(hold), &[]).unwrap();
    assert_eq!(row(&computer, op).call, call(CallStatus::Held, Some(3)));

    end(&computer, op, ToolStatus::Exited { code: 101 }, vec![arrival("out/log", b"1")], &[b"1"]);
    let over = row(&computer, op);
    assert_eq!(over.call, call(CallStatus::Exited, Some(101)));
    assert_eq!((over.events, over.files, over.reversible), (4, 1, true));
    assert_eq!(&*over.label, "ran: cargo test");
    assert_eq!(std::fs::read(computer.workspace().join("out/log")).unwrap(), b"1");

    let undo = computer.undo(op);
    assert!(row(&computer, op).undone);
    assert!(!computer.workspace().join("out/log").exists());
    let about = Reverted { direction: RevertDirection::Undo, op, title: "cargo test".into() };
    assert_eq!(row(&computer, undo).reverts, Some(about));
}

#[test]
fn every_end_has_its_own_status() {
    let computer = Computer::new();
    let cases = [
        (ToolStatus::Exited { code: 0 }, CallStatus::Exited, Some(0)),
        (ToolStatus::Killed { signal: 9 }, CallStatus::Killed, None),
        (ToolStatus::Stopped { why: StopReason::Cancelled }, CallStatus::Stopped, None),
        (ToolStatus::Failed { reason: "x".into() }, CallStatus::Failed, None),
        (ToolStatus::Interrupted { reason: "x".into() }, CallStatus::Interrupted, None),
        (ToolStatus::Discarded, CallStatus::Discarded, None),
    ];
    for (status, word, code) in cases {
        let op = start(&computer, "make", false);
        end(&computer, op, status, Vec::new(), &[]);
        assert_eq!(row(&computer, op).call, Some(CallLine { status: word, code, network: false }));
    }
}

#[test]
fn commands_are_a_family_of_their_own() {
    let computer = Computer::new();
    let written = computer.write("a", "1");
    let op = start(&computer, "make all", false);
    computer.settle();
    let page = |family: &str| {
        let filter = OperationFilter { family: Some(family.into()), ..OperationFilter::default() };
        let (rows, total) = computer.views().page(&filter, 0, 10).unwrap();
        assert_eq!(rows.len() as u64, total);
        rows.into_iter().map(|row| row.op).collect::<Vec<_>>()
    };
    assert_eq!(page("tool"), [op]);
    assert_eq!(page("work"), [op, written]);
    assert_eq!(row(&computer, written).call, None);
}

#[test]
fn a_result_with_more_files_than_an_append_holds_reaches_the_disk() {
    let computer = Computer::new();
    let op = start(&computer, "unpack", false);
    let edits = (0..600).map(|n| arrival(&format!("d/{n}"), b"1")).collect();
    end(&computer, op, ToolStatus::Exited { code: 0 }, edits, &[b"1"]);
    let over = row(&computer, op);
    assert_eq!((over.events, over.files), (3, 600));
    assert_eq!(std::fs::read_dir(computer.workspace().join("d")).unwrap().count(), 600);
}

#[test]
fn an_id_is_used_once_even_after_its_call_has_ended() {
    let computer = Computer::new();
    let op = start(&computer, "ls", false);
    end(&computer, op, ToolStatus::Exited { code: 0 }, Vec::new(), &[]);
    let (tool, input) = ("exec".into(), ContentRef::of(b"{}"));
    let again = Action::StartCall(ToolCall { tool, title: "ls".into(), input, network: false, task: None });
    for taken in [op, computer.write("a", "1")] {
        computer.write("b", "2");
        let refused = computer.submit_in(taken, Source::User, ChangeRequest::Do(again.clone()), &[]);
        let Err(SubmitError::Rejected(rejection)) = refused else { panic!("{refused:?}") };
        assert_eq!(rejection, Rejection::CallTaken { call: taken });
        computer.write("b", "3");
    }
}
