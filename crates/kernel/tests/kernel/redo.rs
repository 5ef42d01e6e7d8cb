//! Redo, undo of a redo, and undo in chains: an undo is an operation like any other.

use kernel::{Choice, Rejection};

use crate::shell::{Shell, all};
use crate::steps::*;

#[test]
fn the_undo_of_an_undo_is_a_redo() {
    let (mut shell, ops) = Shell::after([write("a", "1"), write("a", "2")]);
    let before = shell.state();
    let events = shell.undo(ops[1]).unwrap();
    assert_eq!(shell.events(&events), ["undo", "replace a: 1"]);
    let events = shell.undo(events[0].op).unwrap();
    assert_eq!(shell.events(&events), ["redo", "replace a: 2"]);
    assert_eq!(shell.state(), before);
    assert!(shell.view.undone.is_empty());
}

#[test]
fn the_undo_of_a_redo_takes_the_operation_back_again() {
    let (mut shell, ops) = Shell::after([write("a", "1"), write("a", "2")]);
    shell.undo(ops[1]).unwrap();
    let redone = shell.redo(ops[1]).unwrap()[0].op;
    let events = shell.undo(redone).unwrap();
    assert_eq!(shell.events(&events), ["undo", "replace a: 1"]);
    assert_eq!(
        shell.view.undone.get(&ops[1]),
        Some(&events[0].op),
        "it is the first operation that is undone"
    );
    shell.redo(ops[1]).unwrap();
    assert_eq!(shell.tree(), "a: 2");
}

#[test]
fn a_redo_keeps_edits_made_since() {
    let (mut shell, ops) = Shell::after([write("a", "1|2|3|4"), write("a", "one|2|3|4")]);
    shell.undo(ops[1]).unwrap();
    shell.done(write("a", "1|2|3|four"));
    shell.redo(ops[1]).unwrap();
    assert_eq!(shell.tree(), "a: one|2|3|four");
}

#[test]
fn a_redo_over_an_edit_of_the_same_lines_is_a_conflict() {
    let (mut shell, ops) = Shell::after([write("a", "1"), write("a", "2")]);
    shell.undo(ops[1]).unwrap();
    shell.done(write("a", "mine"));
    let root = shell.root();
    let Err(Rejection::Conflicts { conflicts }) = shell.redo(ops[1]) else {
        panic!("a conflict was expected")
    };
    assert_eq!(shell.conflict(&conflicts[0]), "a: mine or 2, the same lines were changed since");
    assert_eq!(shell.root(), root);
    let undone = *shell.view.undone.get(&ops[1]).unwrap();
    shell.undo_with(undone, all(Choice::Take)).unwrap();
    assert_eq!(shell.tree(), "a: 2");
}

#[test]
fn nothing_is_undone_or_redone_twice() {
    let (mut shell, ops) = Shell::after([write("a", "1"), write("a", "2")]);
    let (op, gone) = (ops[1], || Err(Rejection::AlreadyUndone { op: ops[1] }));
    let first = shell.undo(op).unwrap()[0].op;
    assert_eq!(shell.undo(op), gone());
    let redone = shell.undo(first).unwrap()[0].op;
    assert_eq!(shell.undo(first), Err(Rejection::NotUndone { op }));
    let second = shell.undo(op).unwrap()[0].op;
    assert_eq!(shell.undo(redone), gone(), "the redo and the operation are one");
    assert_eq!(shell.undo(first), Err(Rejection::NotUndone { op }), "another undo holds now");
    shell.undo(second).unwrap();
    assert_eq!(shell.tree(), "a: 2");
}

#[test]
fn an_undo_that_had_nothing_to_do_is_still_an_undo() {
    let (mut shell, ops) = Shell::after([write("a", "1"), delete("a")]);
    let events = shell.undo(ops[0]).unwrap();
    assert_eq!(shell.events(&events), ["undo"]);
    let events = shell.redo(ops[0]).unwrap();
    assert_eq!(shell.events(&events), ["redo"]);
    assert_eq!(shell.tree(), "");
}

#[test]
fn operations_are_taken_back_in_any_order() {
    let lines = |first: &str, middle: &str, last: &str| write("a", &format!("{first}|x|{middle}|y|{last}"));
    let steps = [lines("1", "2", "3"), lines("A", "2", "3"), lines("A", "B", "3"), lines("A", "B", "C")];
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let (mut shell, ops) = Shell::after(steps.clone());
        let before = shell.state();
        for step in order {
            shell.undo(ops[step]).unwrap();
        }
        assert_eq!(shell.tree(), "a: 1|x|2|y|3");
        for step in order {
            shell.redo(ops[step]).unwrap();
        }
        assert_eq!(shell.state(), before);
    }
}

#[test]
fn the_choices_of_an_undo_are_taken_back_with_it() {
    for choice in [Choice::Keep, Choice::Take] {
        let (mut shell, ops) = Shell::after([write("a", "1"), write("a", "2"), write("a", "3")]);
        let before = shell.state();
        shell.undo_with(ops[1], all(choice)).unwrap();
        shell.redo(ops[1]).unwrap();
        assert_eq!(shell.state(), before);
    }
}
