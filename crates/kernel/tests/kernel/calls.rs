//! Tool calls: open until their result, with their changes in the same append, undone like any operation.

use kernel::{Action, CallState, Choice, MAX_EVENTS, Rejection};
use shared_types::payload::file::FileNode;
use shared_types::payload::tool::{StopReason, ToolCall, ToolReport, ToolStatus};
use shared_types::{ContentHash, ContentRef, Event, OpId};

use crate::shell::{Shell, all};
use crate::show::{makes, refuses};
use crate::steps::*;

/// A shell in which a command was started after the first steps, and the others were taken while it ran.
fn running(before: &[Step], meanwhile: &[Step]) -> (Shell, OpId) {
    let (mut shell, _) = Shell::after(before.iter().cloned());
    let op = shell.done(call("make"));
    for step in meanwhile {
        shell.done(step.clone());
    }
    (shell, op)
}

/// A command that ends with these edits makes these events and leads to this tree; undo reverts exactly that.
#[track_caller]
fn ends(
    before: &[Step],
    meanwhile: &[Step],
    edits: &[Edit<'_>],
    texts: &[&str],
    events: &[&str],
    tree: &str,
) {
    let (mut shell, op) = running(before, meanwhile);
    let state = shell.state();
    let made = shell.run_in(op, with(exit(edits), texts)).unwrap();
    assert_eq!(shell.events(&made), events);
    assert_eq!(shell.tree(), tree);
    assert!(shell.view.calls.is_empty(), "the result closes it");
    assert_eq!(shell.at(shell.view.seq()).root(), shell.root(), "replay equals live");
    if shell.state() == state {
        assert_eq!(shell.undo(op), Err(Rejection::NotReversible { op }));
        return;
    }
    shell.undo(op).unwrap();
    assert_eq!(shell.state(), state, "a call is undone like any operation");
    shell.redo(op).unwrap();
    assert_eq!(shell.tree(), tree);
}

fn beside(name: &str, lines: &str, extension: &str) -> String {
    format!("{name}.conflict-{}{extension}", &ContentHash::of(&text(lines)).to_string()[..8])
}

#[test]
fn a_call_is_open_until_its_result() {
    makes([], call("cargo test"), &["call exec: cargo test"]);
    let (mut shell, op) = running(&[], &[]);
    let seq = shell.view.seq();
    let open = shell.view.calls.get(&op).unwrap().clone();
    assert_eq!((&*open.tool, &*open.title, open.seq, open.network), ("exec", "make", seq, false));
    assert_eq!(open.state, CallState::Running);

    let asked = shell.run_in(op, request(op, "crates.io")).unwrap();
    assert_eq!(shell.events(&asked), ["request crates.io:443"]);
    let held = shell.run_in(op, hold(3)).unwrap();
    assert_eq!(shell.events(&held), ["hold 3"]);
    assert_eq!(shell.view.calls.get(&op).map(|call| call.state), Some(CallState::Held));
    assert_eq!(shell.run_in(op, hold(3)), Err(Rejection::CallIsHeld { call: op }));
    shell.run_in(op, exit(&[])).unwrap();
    assert!(shell.view.calls.is_empty());
}

#[test]
fn every_way_to_end_closes_a_call() {
    let cases = [
        (ToolStatus::Exited { code: 101 }, "exited 101"),
        (ToolStatus::Killed { signal: 11 }, "killed 11"),
        (ToolStatus::Stopped { why: StopReason::Memory }, "stopped Memory"),
        (ToolStatus::Failed { reason: "no such program".into() }, "failed no such program"),
        (ToolStatus::Interrupted { reason: "the server ended".into() }, "interrupted the server ended"),
        (ToolStatus::Discarded, "discarded"),
    ];
    for (status, shown) in cases {
        for is_held in [false, true] {
            let (mut shell, op) = running(&[], &[]);
            if is_held {
                shell.run_in(op, hold(0)).unwrap();
            }
            let events = shell.run_in(op, end(status.clone(), &[])).unwrap();
            assert_eq!(shell.events(&events), [shown]);
            assert!(shell.view.calls.is_empty());
        }
    }
}

#[test]
fn an_id_is_used_once() {
    let (mut shell, op) = running(&[], &[]);
    assert_eq!(shell.run_in(op, call("make")), Err(Rejection::CallTaken { call: op }));
    shell.run_in(op, with(exit(&[("a", None, Some(file("1")))]), &["1"])).unwrap();
    assert_eq!(shell.run_in(op, call("make")), Err(Rejection::CallTaken { call: op }));
    shell.undo(op).unwrap();
    assert_eq!(shell.run_in(op, call("make")), Err(Rejection::CallTaken { call: op }));
}

#[test]
fn what_is_not_open_does_not_go_on() {
    let mut shell = Shell::new();
    let op = shell.op();
    let (mut over, ended) = running(&[], &[]);
    over.run_in(ended, exit(&[])).unwrap();
    for step in [request(op, "x"), hold(0), exit(&[])] {
        assert_eq!(shell.run_in(op, step), Err(Rejection::NoSuchCall { call: op }));
    }
    for step in [request(ended, "x"), hold(0), exit(&[])] {
        assert_eq!(over.run_in(ended, step), Err(Rejection::NoSuchCall { call: ended }));
    }
    let (mut shell, op) = running(&[], &[]);
    let reason = "it is not that of the operation".into();
    assert_eq!(
        shell.run(request(op, "x")),
        Err(Rejection::Invalid { what: "a request's call", reason }),
        "a request is recorded in the operation of its call"
    );
}

#[test]
fn what_people_read_has_limits() {
    let invalid = |what, reason: &str| Rejection::Invalid { what, reason: reason.into() };
    refuses([], call(" "), invalid("a call's title", "it is empty"));
    refuses([], call("a\nb"), invalid("a call's title", "it has more than one line"));
    refuses([], call("\u{1b}[2J"), invalid("a call's title", "it holds control characters"));
    let limit = 500;
    refuses([], call(&"x".repeat(501)), Rejection::TooLarge { what: "a call's title", size: 501, limit });
    makes([], call(&"x".repeat(500)), &[&format!("call exec: {}", "x".repeat(500))]);
    let (tool, title, input) = ("".into(), "x".into(), ContentRef::of(b""));
    let nameless = Action::StartCall(ToolCall { tool, title, input, network: true, task: None });
    refuses([], nameless, invalid("a tool's name", "it is empty"));
    let (mut shell, op) = running(&[], &[]);
    let host = invalid("a request's host", "it holds control characters");
    assert_eq!(shell.run_in(op, request(op, "a\r\nb")), Err(host));

    // A call can end with any number of notes.
    let notes = vec![Box::from("ü".repeat(2000)); 150];
    let limits = vec![StopReason::Time, StopReason::Disk, StopReason::Time];
    let report = ToolReport { notes, limits, written: 7, ..ToolReport::default() };
    let status = ToolStatus::Failed { reason: "x".repeat(5000).into() };
    let events = shell.run_in(op, Action::FinishCall { status, report, edits: Vec::new() }).unwrap();
    let recorded = result(&events);
    assert_eq!(recorded.0, ToolStatus::Failed { reason: "x".repeat(1000).into() });
    assert_eq!((recorded.1.notes.len(), recorded.1.notes[0].len(), recorded.1.written), (101, 1000, 7));
    assert_eq!(&*recorded.1.notes[100], "50 more notes are left out");
    assert_eq!(recorded.1.limits, [StopReason::Time, StopReason::Disk]);
}

fn result(events: &[Event]) -> (ToolStatus, ToolReport) {
    use shared_types::Payload;
    use shared_types::payload::tool::ToolEvent;
    let Some(Payload::Tool(ToolEvent::Result(p))) = events.last().map(|event| &event.payload) else {
        panic!("a result comes last: {events:?}")
    };
    (p.status.clone(), p.report.clone())
}

#[test]
fn what_was_thrown_away_changes_nothing() {
    for status in [ToolStatus::Discarded, ToolStatus::Interrupted { reason: "x".into() }] {
        let (mut shell, op) = running(&[], &[]);
        let refused = shell.run_in(op, with(end(status, &[("a", None, Some(file("1")))]), &["1"]));
        let reason = "a call that was discarded or interrupted changes nothing".into();
        assert_eq!(refused, Err(Rejection::Invalid { what: "a call's result", reason }));
        assert!(shell.view.calls.contains(&op), "it is still open");
    }
}

#[test]
fn the_changes_of_a_call_come_before_its_result() {
    let before = [write("a", "1"), write("b", "1"), write("c", "1")];
    let edits: [Edit<'_>; 4] = [
        ("a", Some(file("1")), Some(file("2"))),
        ("b", Some(file("1")), None),
        ("c", Some(file("1")), Some(file("1"))),
        ("d/x", None, Some(file("3"))),
    ];
    let events = ["delete b", "replace a: 2", "write d/x: 3", "exited 0"];
    ends(&before, &[], &edits, &["2", "3"], &events, "a: 2; c: 1; d/x: 3");
    ends(&before, &[], &[], &[], &["exited 0"], "a: 1; b: 1; c: 1");
}

#[test]
fn different_lines_are_merged_without_a_word() {
    let (base, person) = (write("a", "1|2|3|4"), write("a", "one|2|3|4"));
    let edits = [("a", Some(file("1|2|3|4")), Some(file("1|2|3|four")))];
    let events = ["replace a: one|2|3|four", "exited 0"];
    ends(&[base], &[person], &edits, &["1|2|3|four"], &events, "a: one|2|3|four");
    // Both made the same change.
    let edits = [("a", Some(file("1")), Some(file("2")))];
    ends(&[write("a", "1")], &[write("a", "2")], &edits, &["2"], &["exited 0"], "a: 2");
}

#[test]
fn where_both_changed_a_file_the_log_keeps_the_path_and_the_call_goes_beside() {
    let kept = beside("n/a", "call", ".md");
    let edits = [("n/a.md", Some(file("1")), Some(file("call")))];
    let note = format!("exited 0; n/a.md changed meanwhile; the command's version is {kept}");
    ends(
        &[write("n/a.md", "1")],
        &[write("n/a.md", "person")],
        &edits,
        &["call"],
        &[&format!("write {kept}: call"), &note],
        &format!("{kept}: call; n/a.md: person"),
    );
    // Both created a file.
    let kept = beside("a", "call", "");
    let note = format!("exited 0; a changed meanwhile; the command's version is {kept}");
    ends(
        &[],
        &[write("a", "person")],
        &[("a", None, Some(file("call")))],
        &["call"],
        &[&format!("write {kept}: call"), &note],
        &format!("a: person; {kept}: call"),
    );
    // The same version twice is kept once, another one under another name.
    let taken = write(&kept, "call");
    ends(
        &[],
        &[write("a", "person"), taken],
        &[("a", None, Some(file("call")))],
        &["call"],
        &[&note],
        &format!("a: person; {kept}: call"),
    );
    let note = format!("exited 0; a changed meanwhile; the command's version is {kept}-2");
    ends(
        &[],
        &[write("a", "person"), write(&kept, "other")],
        &[("a", None, Some(file("call")))],
        &["call"],
        &[&format!("write {kept}-2: call"), &note],
        &format!("a: person; {kept}: other; {kept}-2: call"),
    );
}

#[test]
fn a_deletion_on_either_side_loses_nothing() {
    let edits = [("a", Some(file("1")), None)];
    let note = "exited 0; a changed meanwhile and was not deleted";
    ends(&[write("a", "1")], &[write("a", "person")], &edits, &[], &[note], "a: person");
    let kept = beside("a", "call", "");
    let edits = [("a", Some(file("1")), Some(file("call")))];
    let note = format!("exited 0; a was deleted meanwhile; the command's version is {kept}");
    ends(
        &[write("a", "1")],
        &[delete("a")],
        &edits,
        &["call"],
        &[&format!("write {kept}: call"), &note],
        &format!("{kept}: call"),
    );
    // A move by the command leaves behind what was changed meanwhile.
    let edits: [Edit<'_>; 2] = [("a", Some(file("1")), None), ("b", None, Some(file("1")))];
    let events = ["write b: 1", "exited 0; a changed meanwhile and was not deleted"];
    ends(&[write("a", "1")], &[write("a", "person")], &edits, &[], &events, "a: person; b: 1");
}

#[test]
fn what_has_no_place_in_the_tree_of_the_log_goes_beside() {
    // The person made a file where the command made a folder.
    let edits: [Edit<'_>; 3] = [
        ("d", None, Some(FileNode::Folder)),
        ("d/a", None, Some(file("1"))),
        ("d/e/b", None, Some(file("2"))),
    ];
    let events = [
        "write d.conflict-other/a: 1",
        "write d.conflict-other/e/b: 2",
        "exited 0; d changed meanwhile; the command's folder was not made; \
         something else is in the way of d/a now; the command's version is d.conflict-other/a; \
         something else is in the way of d/e/b now; the command's version is d.conflict-other/e/b",
    ];
    let tree = "d: person; d.conflict-other/a: 1; d.conflict-other/e/b: 2";
    ends(&[], &[write("d", "person")], &edits, &["1", "2"], &events, tree);

    // The person put something into a folder that the command replaced by a file.
    let kept = beside("d", "call", "");
    let edits: [Edit<'_>; 2] = [("d", None, Some(file("call"))), ("d/a", Some(file("1")), None)];
    let note = format!("exited 0; something else is in the way of d now; the command's version is {kept}");
    ends(
        &[write("d/a", "1")],
        &[write("d/b", "person")],
        &edits,
        &["call"],
        &["delete d/a", &format!("write {kept}: call"), &note],
        &format!("{kept}: call; d/b: person"),
    );

    // The person deleted the folder and made a file of that name; the command edited a file in it.
    let edits = [("d/a", Some(file("1")), Some(file("call")))];
    let events = [
        "write d.conflict-other/a: call",
        "exited 0; d/a was deleted meanwhile; the command's version is d.conflict-other/a",
    ];
    let meanwhile = [delete("d"), write("d", "person")];
    ends(&[write("d/a", "1")], &meanwhile, &edits, &["call"], &events, "d: person; d.conflict-other/a: call");
}

#[test]
fn a_repository_stays_the_logs_as_a_whole() {
    let before = [write("p/.git/HEAD", "1"), write("p/.git/index", "1"), write("p/a", "1")];
    let edits: [Edit<'_>; 4] = [
        ("p/.git/HEAD", Some(file("1")), Some(file("call"))),
        ("p/.git/index", Some(file("1")), Some(file("call"))),
        ("p/.git/new", None, Some(file("call"))),
        ("p/a", Some(file("1")), Some(file("call"))),
    ];
    let events =
        ["replace p/a: call", "exited 0; p/.git changed meanwhile; the command's changes in it are left out"];
    let tree = "p/.git/HEAD: person; p/.git/index: 1; p/a: call";
    ends(&before, &[write("p/.git/HEAD", "person")], &edits, &["call"], &events, tree);
    // Without a conflict it is taken like anything else.
    let tree = "p/.git/HEAD: call; p/.git/index: call; p/.git/new: call; p/a: call";
    let events = [
        "replace p/.git/HEAD: call",
        "replace p/.git/index: call",
        "write p/.git/new: call",
        "replace p/a: call",
        "exited 0",
    ];
    ends(&before, &[], &edits, &["call"], &events, tree);
    // A repository that stays may block another path.
    let kept = beside("p", "call", "");
    let edits: [Edit<'_>; 4] = [
        ("p/.git/HEAD", Some(file("1")), None),
        ("p/.git/index", Some(file("1")), None),
        ("p/a", Some(file("1")), None),
        ("p", None, Some(file("call"))),
    ];
    let note = format!(
        "exited 0; p/.git changed meanwhile; the command's changes in it are left out; \
         something else is in the way of p now; the command's version is {kept}"
    );
    ends(
        &before,
        &[write("p/.git/HEAD", "person")],
        &edits,
        &["call"],
        &["delete p/a", &format!("write {kept}: call"), &note],
        &format!("{kept}: call; p/.git/HEAD: person; p/.git/index: 1"),
    );
}

#[test]
fn an_open_call_is_not_undone_and_one_without_changes_has_nothing_to_undo() {
    let (mut shell, op) = running(&[], &[]);
    assert_eq!(shell.undo(op), Err(Rejection::CallIsOpen { call: op }));
    shell.run_in(op, hold(1)).unwrap();
    assert_eq!(shell.undo(op), Err(Rejection::CallIsOpen { call: op }));
    shell.run_in(op, exit(&[])).unwrap();
    assert_eq!(shell.undo(op), Err(Rejection::NotReversible { op }));
}

#[test]
fn undo_of_a_call_meets_later_edits_like_any_undo() {
    let (mut shell, op) = running(&[write("a", "1|2|3|4"), write("b", "1")], &[]);
    let edits: [Edit<'_>; 2] =
        [("a", Some(file("1|2|3|4")), Some(file("one|2|3|4"))), ("b", Some(file("1")), Some(file("call")))];
    shell.run_in(op, with(exit(&edits), &["one|2|3|4", "call"])).unwrap();
    shell.done(write("a", "one|2|3|four"));
    shell.done(write("b", "person"));
    let Err(Rejection::Conflicts { conflicts }) = shell.undo(op) else { panic!("b was changed since") };
    assert_eq!(conflicts.len(), 1);
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|four; b: person");
    assert!(shell.events_of(op).len() > 2, "nothing of the call itself is taken back");
}

#[test]
fn a_restore_leaves_calls_alone() {
    let (mut shell, op) = running(&[write("a", "1")], &[write("a", "2")]);
    let (_, over) = {
        let over = shell.done(call("ls"));
        shell.run_in(over, exit(&[])).unwrap();
        ((), over)
    };
    let seq = shell.view.calls.get(&op).unwrap().seq;
    shell.restore(shared_types::Seq(seq.0 - 1)).unwrap();
    assert_eq!(shell.tree(), "a: 1");
    assert!(shell.view.calls.contains(&op), "it goes on");
    assert!(!shell.view.calls.contains(&over));
    shell.run_in(op, with(exit(&[("b", None, Some(file("call")))]), &["call"])).unwrap();
    assert_eq!(shell.tree(), "a: 1; b: call");
}

#[test]
fn more_changes_than_an_append_holds_are_one_batch_and_the_result() {
    for (count, events) in [(MAX_EVENTS - 1, MAX_EVENTS), (MAX_EVENTS, 2), (3 * MAX_EVENTS, 2)] {
        let (mut shell, op) = running(&[write("a", "1")], &[]);
        let state = shell.state();
        let names: Vec<String> = (0..count).map(|n| format!("out/{n}")).collect();
        let edits: Vec<Edit<'_>> = names.iter().map(|name| (&**name, None, Some(file("1")))).collect();
        let made = shell.run_in(op, with(exit(&edits), &["1"])).unwrap();
        assert_eq!(made.len(), events);
        assert_eq!(result(&made).0, ToolStatus::Exited { code: 0 });
        assert_eq!(shell.view.files.len(), count + 1);
        assert_eq!(shell.at(shell.view.seq()).root(), shell.root());
        shell.undo(op).unwrap();
        assert_eq!(shell.state(), state);
        shell.redo(op).unwrap();
        assert_eq!(shell.view.files.len(), count + 1);
    }
}
