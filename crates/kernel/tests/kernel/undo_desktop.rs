//! Undo of windows, settings and notes.

use kernel::{Choice, ConflictSide, Rejection};
use serde_json::json;
use shared_types::Subject;

use crate::shell::{Shell, all};
use crate::steps::*;

/// Taking back the operation with this number leads to the state after these other steps; a redo leads back.
#[track_caller]
fn undoes_as(steps: &[Step], target: usize, same: &[Step]) {
    let (mut shell, ops) = Shell::after(steps.iter().cloned());
    let (mut other, _) = Shell::after(same.iter().cloned());
    let before = shell.state();
    shell.undo(ops[target]).unwrap();
    assert_eq!(shell.state(), other.state());
    shell.redo(ops[target]).unwrap();
    assert_eq!(shell.state(), before);
}

#[test]
fn settings_windows_and_notes_are_taken_back() {
    undoes_as(&[set("k", 1)], 0, &[]);
    undoes_as(&[set("k", 1), set("k", 2)], 1, &[set("k", 1)]);
    undoes_as(&[set("k", 1), clear("k")], 1, &[set("k", 1)]);
    undoes_as(
        &[set("k", json!({"a": [1.5, null]})), set("k", 2), set("l", 3)],
        1,
        &[set("k", json!({"a": [1.5, null]})), set("l", 3)],
    );
    undoes_as(&[window(1, "A")], 0, &[]);
    undoes_as(&[window(1, "A"), window(1, "B")], 1, &[window(1, "A")]);
    undoes_as(&[window(1, "A"), close(1), window(2, "B")], 1, &[window(1, "A"), window(2, "B")]);
    undoes_as(&[note(1, "A")], 0, &[]);
    undoes_as(&[note(1, "A"), note(1, "B")], 1, &[note(1, "A")]);
    undoes_as(&[note(1, "A"), forget_note(1)], 1, &[note(1, "A")]);
}

#[test]
fn a_later_change_of_the_same_thing_is_a_conflict() {
    let state = |title: &str| ConflictSide::Window(window_at(title, 0));
    let cases = [
        (
            vec![set("k", 1), set("k", 2), set("k", 3)],
            (Subject::Setting("k".into()), ConflictSide::Setting(json!(3)), ConflictSide::Setting(json!(1))),
            vec![set("k", 1)],
        ),
        (
            vec![set("j", 0), set("k", 2), clear("k"), set("k", 3)],
            (Subject::Setting("k".into()), ConflictSide::Setting(json!(3)), ConflictSide::Absent),
            vec![set("j", 0)],
        ),
        (
            vec![window(1, "A"), window(1, "B"), window(1, "C")],
            (Subject::Window(window_id(1)), state("C"), state("A")),
            vec![window(1, "A")],
        ),
        (
            vec![window(1, "A"), window(1, "B"), close(1)],
            (Subject::Window(window_id(1)), ConflictSide::Absent, state("A")),
            vec![window(1, "A")],
        ),
        (
            vec![note(1, "A"), forget_note(1), note(1, "C")],
            (Subject::Note(note_id(1)), ConflictSide::Note(note_of("C")), ConflictSide::Note(note_of("A"))),
            vec![note(1, "A")],
        ),
    ];
    for (steps, sides, taken) in cases {
        let (mut shell, ops) = Shell::after(steps);
        let (before, root) = (shell.state(), shell.root());
        let Err(Rejection::Conflicts { conflicts }) = shell.undo(ops[1]) else {
            panic!("a conflict was expected")
        };
        assert_eq!(shell.root(), root, "a conflict changes nothing");
        let [conflict] = &conflicts[..] else { panic!("one conflict was expected") };
        assert_eq!((conflict.subject.clone(), conflict.today.clone(), conflict.undone.clone()), sides);
        let mut kept = shell.clone();
        kept.undo_with(ops[1], all(Choice::Keep)).unwrap();
        assert_eq!(kept.state(), before);
        let (mut other, _) = Shell::after(taken);
        shell.undo_with(ops[1], all(Choice::Take)).unwrap();
        assert_eq!(shell.state(), other.state());
    }
}

#[test]
fn all_conflicts_of_an_operation_are_listed_at_once() {
    let mut shell = Shell::new();
    let op = shell.op();
    for step in [write("a", "1"), set("k", 1), window(1, "A"), note(1, "A"), write("b", "1")] {
        shell.run_in(op, step).unwrap();
    }
    for step in [write("a", "2"), set("k", 2), window(1, "B"), note(1, "B")] {
        shell.done(step);
    }
    let Err(Rejection::Conflicts { conflicts }) = shell.undo(op) else { panic!("conflicts were expected") };
    let subjects: Vec<Subject> = conflicts.into_iter().map(|conflict| conflict.subject).collect();
    let expected = [
        Subject::File(path("a")),
        Subject::Setting("k".into()),
        Subject::Window(window_id(1)),
        Subject::Note(note_id(1)),
    ];
    assert_eq!(subjects, expected);
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: 2");
    assert_eq!(shell.view.setting("k"), Some(json!(2)));
}

#[test]
fn an_edit_between_two_parts_of_an_operation_is_a_conflict() {
    let mut shell = Shell::new();
    let op = shell.op();
    shell.run_in(op, set("k", 1)).unwrap();
    shell.done(set("k", 2));
    shell.run_in(op, set("k", 3)).unwrap();
    assert!(matches!(shell.undo(op), Err(Rejection::Conflicts { .. })));
}
