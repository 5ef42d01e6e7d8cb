//! Undo of operations on single files: the last one, an older one, with and without later edits.
//!
//! [`undoes`] and [`conflicts`] also check what holds in every case: a redo brings back exactly what was there, a
//! conflict changes nothing, and a choice for all is the same as a choice for each.

use kernel::{Choice, Rejection, Resolutions};
use shared_types::{OpId, Subject};

use crate::shell::{Shell, all, each};
use crate::steps::*;

/// After these steps, each an operation, taking back the one with this number leaves this tree.
#[track_caller]
pub(crate) fn undoes(steps: impl IntoIterator<Item = Step>, target: usize, tree: &str) {
    let (mut shell, ops) = Shell::after(steps);
    undoes_to(&mut shell, ops[target], Resolutions::default(), tree);
}

#[track_caller]
fn undoes_to(shell: &mut Shell, target: OpId, resolutions: Resolutions, tree: &str) {
    let before = shell.state();
    shell.undo_with(target, resolutions).expect("it can be undone");
    assert_eq!(shell.tree(), tree);
    assert!(shell.view.undone.contains(&target));
    assert_eq!(shell.undo(target), Err(Rejection::AlreadyUndone { op: target }));
    shell.redo(target).expect("it can be brought back");
    assert_eq!(shell.state(), before, "undo and redo lead back");
    assert!(!shell.view.undone.contains(&target));
    let live = shell.root();
    assert_eq!(shell.at(shell.view.seq()).root(), live, "a replay agrees");
}

/// Taking back the operation with this number meets these conflicts; keeping today's side leaves the first tree,
/// taking the other side the second.
#[track_caller]
pub(crate) fn conflicts(
    steps: impl IntoIterator<Item = Step>,
    target: usize,
    listed: &[&str],
    keep: &str,
    take: &str,
) {
    let (mut shell, ops) = Shell::after(steps);
    let before = (shell.root(), shell.view.seq());
    let Err(Rejection::Conflicts { conflicts }) = shell.undo(ops[target]) else {
        panic!("a conflict was expected")
    };
    let shown: Vec<String> = conflicts.iter().map(|conflict| shell.conflict(conflict)).collect();
    assert_eq!(shown, listed);
    assert_eq!((shell.root(), shell.view.seq()), before, "a conflict changes nothing");

    let subjects: Vec<Subject> = conflicts.into_iter().map(|conflict| conflict.subject).collect();
    for (choice, tree) in [(Choice::Keep, keep), (Choice::Take, take)] {
        undoes_to(&mut shell.clone(), ops[target], all(choice), tree);
        undoes_to(&mut shell.clone(), ops[target], each(subjects.clone(), choice), tree);
    }
    let [_, rest @ ..] = &subjects[..] else { panic!("there is no conflict without a subject") };
    if !rest.is_empty() {
        let some = each(rest.iter().cloned(), Choice::Keep);
        let Err(Rejection::Conflicts { conflicts }) = shell.undo_with(ops[target], some) else {
            panic!("one conflict is still open")
        };
        assert_eq!(conflicts.iter().map(|c| &c.subject).collect::<Vec<_>>(), [&subjects[0]]);
    }
}

#[test]
fn the_last_operation_is_taken_back() {
    undoes([write("a", "1")], 0, "");
    undoes([write("a", "1"), write("a", "2")], 1, "a: 1");
    undoes([write("a", "1"), delete("a")], 1, "a: 1");
    undoes([write("a", "1"), rename("a", "b")], 1, "a: 1");
    undoes([write("d/a", "1"), write("d/b", "2"), delete("d")], 2, "d/a: 1; d/b: 2");
    undoes([folder("d")], 0, "");
    undoes([folder("d"), delete("d")], 1, "d/");
    undoes([write("a", ""), delete("a")], 1, "a: ");
}

#[test]
fn an_older_operation_is_taken_back_and_the_rest_stays() {
    undoes([write("a", "1"), write("b", "2"), delete("b")], 0, "");
    undoes([write("a", "1"), write("b", "2"), write("c", "3")], 1, "a: 1; c: 3");
    undoes([write("a", "1"), delete("a"), write("b", "2")], 1, "a: 1; b: 2");
    undoes([write("a", "1"), rename("a", "b"), write("c", "3")], 1, "a: 1; c: 3");
}

#[test]
fn what_is_as_it_was_already_stays() {
    undoes([write("a", "1"), write("a", "2"), write("a", "1")], 1, "a: 1");
    undoes([write("a", "1"), delete("a")], 0, "");
    undoes([write("a", "1"), delete("a"), write("a", "1")], 1, "a: 1");
}

#[test]
fn later_edits_of_other_lines_are_kept() {
    let poem = || write("a", "1|2|3|4|5|6");
    undoes([poem(), write("a", "1|two|3|4|5|6"), write("a", "1|two|3|4|5|6|7")], 1, "a: 1|2|3|4|5|6|7");
    undoes([poem(), write("a", "1|2|3|4|5|6|7"), write("a", "0|1|2|3|4|5|6|7")], 1, "a: 0|1|2|3|4|5|6");
    undoes([poem(), write("a", "1|4|5|6"), write("a", "1|4|5|six")], 1, "a: 1|2|3|4|5|six");
    undoes([poem(), write("a", "1|2|x|3|4|5|6"), write("a", "1|2|x|3|4|6")], 1, "a: 1|2|3|4|6");
    // A later edit that did part of the undo itself.
    undoes([poem(), write("a", "1|X|3|4|Y|6"), write("a", "1|X|3|4|5|6")], 1, "a: 1|2|3|4|5|6");
}

#[test]
fn later_edits_of_the_same_lines_are_a_conflict() {
    conflicts(
        [write("a", "1|2|3"), write("a", "1|two|3"), write("a", "1|zwei|3")],
        1,
        &["a: 1|zwei|3 or 1|2|3, the same lines were changed since"],
        "a: 1|zwei|3",
        "a: 1|2|3",
    );
    conflicts(
        [write("a", "1|2|3"), write("a", "1|two|3"), write("a", "1|3")],
        1,
        &["a: 1|3 or 1|2|3, the same lines were changed since"],
        "a: 1|3",
        "a: 1|2|3",
    );
}

#[test]
fn lines_side_by_side_are_a_conflict_too() {
    conflicts(
        [write("a", "1|2"), write("a", "one|2"), write("a", "one|two")],
        1,
        &["a: one|two or 1|2, the same lines were changed since"],
        "a: one|two",
        "a: 1|2",
    );
}

#[test]
fn a_file_that_was_made_and_then_edited_is_a_conflict() {
    conflicts(
        [write("a", "1"), write("a", "1|2")],
        0,
        &["a: 1|2 or nothing, it was changed since it was created"],
        "a: 1|2",
        "",
    );
}

#[test]
fn a_file_that_was_deleted_and_made_again_is_a_conflict() {
    conflicts(
        [write("a", "1"), delete("a"), write("a", "2")],
        1,
        &["a: 2 or 1, something else was put there since"],
        "a: 2",
        "a: 1",
    );
}

#[test]
fn a_file_that_was_edited_and_then_deleted_is_a_conflict() {
    conflicts(
        [write("a", "1"), write("a", "2"), delete("a")],
        1,
        &["a: nothing or 1, it was deleted or moved since"],
        "",
        "a: 1",
    );
    conflicts(
        [write("a", "1"), write("a", "2"), rename("a", "b")],
        1,
        &["a: nothing or 1, it was deleted or moved since"],
        "b: 2",
        "a: 1; b: 2",
    );
}

#[test]
fn modes_go_back_beside_later_edits_of_the_text() {
    let run = |lines: &str| write_mode("a", lines, 0o755);
    undoes([write("a", "1"), run("1")], 1, "a: 1");
    undoes([write("a", "1|2|3"), run("1|2|3"), run("1|2|3|4")], 1, "a: 1|2|3|4");
    undoes([write("a", "1|2|3"), write("a", "1|2|3|4"), run("1|2|3|4")], 1, "a: 1|2|3 (755)");
    undoes([write("a", "1|2|3"), run("one|2|3"), run("one|2|3|4")], 1, "a: 1|2|3|4");
    undoes([run("1"), write("a", "1"), run("1")], 1, "a: 1 (755)");
}

#[test]
fn two_changes_of_one_mode_are_a_conflict() {
    conflicts(
        [write("a", "1"), write_mode("a", "1", 0o755), write_mode("a", "1", 0o700)],
        1,
        &["a: 1 (700) or 1, its mode was changed since"],
        "a: 1 (700)",
        "a: 1",
    );
    conflicts(
        [write("a", "1|2|3"), write_mode("a", "one|2|3", 0o755), write_mode("a", "one|2|3|4", 0o700)],
        1,
        &["a: one|2|3|4 (700) or 1|2|3, its mode was changed since"],
        "a: one|2|3|4 (700)",
        "a: 1|2|3",
    );
}

#[test]
fn what_is_not_text_goes_back_whole_or_not_at_all() {
    let bytes = |tail: &str| write_bytes("a", format!("\0|1|2|3|{tail}").replace('|', "\n").as_bytes());
    undoes([bytes("x"), bytes("y")], 1, "a: \0|1|2|3|x");
    conflicts(
        [bytes("x"), write_bytes("a", b"\0one\n1\n2\n3\nx"), write_bytes("a", b"\0one\n1\n2\n3\nx\n4")],
        1,
        &["a: \0one|1|2|3|x|4 or \0|1|2|3|x, the same lines were changed since"],
        "a: \0one|1|2|3|x|4",
        "a: \0|1|2|3|x",
    );
}

#[test]
fn links_go_back_whole_or_not_at_all() {
    undoes([link("l", "a")], 0, "");
    undoes([link("l", "a"), link("l", "b"), write("c", "1")], 1, "c: 1; l -> a");
    undoes([link("l", "a"), delete("l")], 1, "l -> a");
    undoes([write("l", "1"), link("l", "b")], 1, "l: 1");
    conflicts(
        [link("l", "a"), link("l", "b"), link("l", "c")],
        1,
        &["l: -> c or -> a, the same lines were changed since"],
        "l -> c",
        "l -> a",
    );
    conflicts(
        [write("l", "1"), write("l", "2"), link("l", "a")],
        1,
        &["l: -> a or 1, the same lines were changed since"],
        "l -> a",
        "l: 1",
    );
}

#[test]
fn an_undo_needs_an_operation_with_something_to_undo() {
    let (mut shell, ops) = Shell::after([write("a", "1"), start(1, "Plans")]);
    let unknown = shell.op();
    assert_eq!(shell.undo(unknown), Err(Rejection::NoOperation { op: unknown }));
    assert_eq!(shell.undo(ops[1]), Err(Rejection::NotReversible { op: ops[1] }));
    let mut foreign = shell.events_of(ops[0]);
    foreign.extend(shell.events_of(ops[1]));
    let resolutions = Resolutions::default();
    let undo = kernel::Action::Undo { target: ops[0], events: foreign, resolutions };
    assert_eq!(shell.run(undo), Err(Rejection::NoOperation { op: ops[0] }));
}

#[test]
fn an_operation_of_several_commands_is_taken_back_as_a_whole() {
    let mut shell = Shell::new();
    shell.done(write("a", "1"));
    let op = shell.op();
    for step in
        [write("a", "2"), write("b", "1"), rename("a", "c"), rename("c", "d"), write("b", "2"), start(1, "P")]
    {
        shell.run_in(op, step).unwrap();
    }
    undoes_to(&mut shell, op, Resolutions::default(), "a: 1");
}

#[test]
fn an_edit_between_two_parts_of_an_operation_is_not_taken_with_it() {
    let mut shell = Shell::new();
    shell.done(write("a", "1|2|3|4|5|6"));
    let op = shell.op();
    shell.run_in(op, write("a", "one|2|3|4|5|6")).unwrap();
    shell.done(write("a", "one|2|mine|4|5|6"));
    shell.run_in(op, write("a", "one|2|mine|4|5|six")).unwrap();
    undoes_to(&mut shell.clone(), op, Resolutions::default(), "a: 1|2|mine|4|5|6");
    shell.done(write("a", "one|2|mine|too|5|six"));
    undoes_to(&mut shell, op, Resolutions::default(), "a: 1|2|mine|too|5|6");
}

#[test]
fn an_edit_of_the_same_lines_between_two_parts_is_a_conflict() {
    let mut shell = Shell::new();
    shell.done(write("a", "1|2|3"));
    let op = shell.op();
    shell.run_in(op, write("a", "one|2|3")).unwrap();
    shell.done(write("a", "mine|2|3"));
    shell.run_in(op, write("a", "mine|2|three")).unwrap();
    let Err(Rejection::Conflicts { conflicts }) = shell.undo(op) else { panic!("a conflict was expected") };
    assert_eq!(
        shell.conflict(&conflicts[0]),
        "a: mine|2|three or 1|2|3, something else changed it in the meantime"
    );
    undoes_to(&mut shell.clone(), op, all(Choice::Keep), "a: mine|2|three");
    undoes_to(&mut shell, op, all(Choice::Take), "a: 1|2|3");
}

#[test]
fn contents_that_are_gone_are_named() {
    let (mut shell, ops) =
        Shell::after([write("a", "1|2|3"), write("a", "one|2|3"), write("a", "one|2|3|4")]);
    let lost = shared_types::ContentHash::of(&text("1|2|3"));
    shell.forget(&lost);
    let before = shell.root();
    assert_eq!(shell.undo(ops[1]), Err(Rejection::Missing { hashes: vec![lost] }));
    assert_eq!(shell.root(), before);
}
