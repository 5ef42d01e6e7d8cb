//! Undo of a whole run as one operation, for any number of steps and any edits between them.

use kernel::{Action, Choice, Rejection, Resolutions};
use proptest::prelude::*;
use shared_types::OpId;
use shared_types::payload::revert::{RevertEvent, Undo};
use shared_types::payload::task::TaskOutcome;
use shared_types::{Event, Payload};

use crate::agents::*;
use crate::laws::{config, reopened};
use crate::shell::{Shell, all};
use crate::steps::*;

/// The run's agent writes a text over what is there.
fn agent_writes(shell: &mut Shell, at: &str, lines: &str) -> OpId {
    let known = shell.view.files.get(&path(at)).cloned();
    shell.done(with(make(1, &[(at, known, Some(file(lines)))], None), &[lines]))
}

fn end(shell: &mut Shell) {
    shell.done(done(1, TaskOutcome::Done));
    shell.done(complete());
}

fn undo_of(events: &[Event]) -> &Undo {
    let Payload::Revert(RevertEvent::Undo(undo)) = &events[0].payload else { panic!("{events:?}") };
    undo
}

/// A run that wrote `a` twice with the person's edit between, and made `b`.
fn two_hands() -> (Shell, [OpId; 3]) {
    let (mut shell, _) = Shell::after([write("a", "1|2|3|4|5|6|7")]);
    for step in working() {
        shell.done(step);
    }
    let first = agent_writes(&mut shell, "a", "one|2|3|4|5|6|7");
    shell.done(write("a", "one|2|3|mine|5|6|7"));
    let second = agent_writes(&mut shell, "a", "one|2|3|mine|5|6|seven");
    let third = agent_writes(&mut shell, "b", "new");
    (shell, [first, second, third])
}

#[test]
fn a_run_goes_back_as_one_operation_and_spares_what_the_person_did() {
    let (mut shell, steps) = two_hands();
    end(&mut shell);
    let before = shell.state();
    let events = shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
    assert_eq!(shell.events(&events), ["undo", "delete b", "replace a: 1|2|3|mine|5|6|7"]);
    let expected = Undo { target: run_op(1), root: run_op(1), steps: steps.to_vec(), moves: Vec::new() };
    assert_eq!(undo_of(&events), &expected);
    assert_eq!(events[0].run_id, None, "the person did it, not the run");
    for op in steps {
        assert_eq!(shell.view.undone.get(&op), Some(&events[0].op));
        assert_eq!(shell.undo(op), Err(Rejection::AlreadyUndone { op }));
    }
    assert_eq!(shell.undo_run(run_id(1)), Err(Rejection::AlreadyUndone { op: run_op(1) }));
    assert_eq!(shell.at(shell.view.seq()).root(), shell.root(), "replay equals live");
    assert_eq!(reopened(&mut shell.view).root(), shell.root());

    let events = shell.redo(run_op(1)).unwrap();
    assert_eq!(shell.events(&events)[0], "redo");
    assert_eq!(shell.state(), before);
    assert!(shell.view.undone.is_empty());
    // Also by the redo itself, and again from the run.
    shell.undo(events[0].op).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
    assert_eq!(shell.view.undone.len(), 4);
    shell.redo(run_op(1)).unwrap();
    shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
}

#[test]
fn what_the_person_did_since_is_spared_too() {
    let (mut shell, _) = two_hands();
    end(&mut shell);
    shell.done(write("a", "one|2|3|mine|5, later|6|seven"));
    shell.done(write("c", "mine"));
    shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5, later|6|7; c: mine");
}

#[test]
fn steps_that_were_undone_one_by_one_stay_so() {
    let (mut shell, [first, second, third]) = two_hands();
    end(&mut shell);
    let single = shell.undo(first).unwrap()[0].op;
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|seven; b: new");
    let events = shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
    assert_eq!(undo_of(&events).steps, [second, third], "what is undone already is not of it");
    shell.redo(run_op(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|seven; b: new");
    assert_eq!(shell.view.undone.sorted(), [(&first, &single)]);

    // The single step can be brought back while the run is undone, and taken back again.
    shell.undo_run(run_id(1)).unwrap();
    shell.undo(single).unwrap();
    assert_eq!(shell.tree(), "a: one|2|3|mine|5|6|7");
    shell.undo(first).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
}

#[test]
fn a_step_undone_after_a_redo_of_the_run_is_not_undone_twice() {
    let (mut shell, [first, second, third]) = two_hands();
    end(&mut shell);
    shell.undo_run(run_id(1)).unwrap();
    let redo = shell.redo(run_op(1)).unwrap()[0].op;
    let single = shell.undo(third).unwrap()[0].op;
    let again = shell.undo(redo).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
    assert_eq!(undo_of(&again).steps, [first, second]);
    assert_eq!(shell.view.undone.get(&third), Some(&single));
    shell.redo(run_op(1)).unwrap();
    assert_eq!(shell.view.undone.sorted(), [(&third, &single)]);
    assert_eq!(shell.tree(), "a: one|2|3|mine|5|6|seven");
}

#[test]
fn a_run_that_goes_on_is_not_undone() {
    let (mut shell, _) = two_hands();
    let busy = Err(Rejection::RunIsBusy { run: run_id(1), what: "it is not over; stop it first" });
    assert_eq!(shell.undo_run(run_id(1)), busy);
    shell.done(pause());
    assert_eq!(shell.undo_run(run_id(1)), busy);
    shell.done(resume(None));
    let calls = [shell.done(call_by(1)), shell.done(call_by(1))];
    shell.done(cancel());
    for call in calls {
        assert_eq!(shell.undo_run(run_id(1)), Err(Rejection::CallIsOpen { call }));
        shell.run_in(call, exit(&[])).unwrap();
    }
    shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
}

#[test]
fn only_a_run_that_changed_something_is_undone() {
    let (mut shell, _) = Shell::after(working());
    end(&mut shell);
    assert_eq!(shell.undo_run(run_id(1)), Err(Rejection::NotReversible { op: run_op(1) }));
    assert_eq!(shell.undo_run(run_id(2)), Err(Rejection::NoRun { run: run_id(2) }));
    let (mut shell, steps) = two_hands();
    end(&mut shell);
    let (foreign, resolutions) = (shell.log.clone(), Resolutions::default());
    let undo = Action::UndoRun { run: run_id(1), events: foreign, resolutions };
    assert_eq!(shell.run(undo), Err(Rejection::NoRun { run: run_id(1) }));
    for op in steps.into_iter().rev() {
        shell.undo(op).unwrap();
    }
    assert_eq!(shell.undo_run(run_id(1)), Err(Rejection::NotReversible { op: run_op(1) }));
}

#[test]
fn a_conflict_with_the_person_is_theirs_to_settle() {
    let (mut shell, _) = two_hands();
    end(&mut shell);
    shell.done(write("a", "ONE|2|3|mine|5|6|seven"));
    let before = (shell.root(), shell.view.seq());
    let Err(Rejection::Conflicts { conflicts }) = shell.undo_run(run_id(1)) else { panic!("a conflict") };
    assert_eq!(conflicts.len(), 1);
    assert_eq!(
        shell.conflict(&conflicts[0]),
        "a: ONE|2|3|mine|5|6|seven or 1|2|3|4|5|6|7, something else changed it in the meantime"
    );
    assert_eq!((shell.root(), shell.view.seq()), before);
    for (choice, tree) in [(Choice::Keep, "a: ONE|2|3|mine|5|6|seven"), (Choice::Take, "a: 1|2|3|4|5|6|7")] {
        let mut shell = shell.clone();
        let was = shell.state();
        shell.undo_run_with(run_id(1), all(choice)).unwrap();
        assert_eq!(shell.tree(), tree);
        shell.redo(run_op(1)).unwrap();
        assert_eq!(shell.state(), was);
    }
}

#[test]
fn moves_deletions_and_settings_go_back_with_a_run() {
    let (mut shell, _) = Shell::after([write("a", "1"), write("d/x", "2"), set("theme", "light")]);
    for step in working() {
        shell.done(step);
    }
    let before = shell.state();
    for step in [rename("a", "b"), rename("b", "e/c"), delete("d"), set("theme", "dark"), set("zoom", 2)] {
        shell.done(step.within(run_id(1)));
    }
    agent_writes(&mut shell, "e/c", "1 more");
    end(&mut shell);
    let after = shell.state();
    shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.state(), before);
    shell.redo(run_op(1)).unwrap();
    assert_eq!(shell.state(), after);
}

#[test]
fn contents_that_are_gone_are_named_and_intermediate_ones_never_asked_for() {
    let (mut shell, _) = two_hands();
    end(&mut shell);
    shell.done(write("a", "one|2|3|mine|5, later|6|seven"));
    let lost = shared_types::ContentHash::of(&text("1|2|3|4|5|6|7"));
    shell.forget(&lost);
    assert_eq!(shell.undo_run(run_id(1)), Err(Rejection::Missing { hashes: vec![lost] }));
}

/// Edits of the lines of one file: the run edits the even ones, the person the odd ones, with an untouched line between
/// any two of them.
#[derive(Debug, Clone)]
enum Turn {
    Run(usize, u8),
    Person(usize, u8),
    /// The run makes a file of its own, or changes it.
    Own(u8),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        3 => (0..4usize, any::<u8>()).prop_map(|(line, word)| Turn::Run(line, word)),
        2 => (0..4usize, any::<u8>()).prop_map(|(line, word)| Turn::Person(line, word)),
        1 => any::<u8>().prop_map(Turn::Own),
    ];
    prop::collection::vec(turn, 1..16)
}

proptest! {
    #![proptest_config(config(300))]

    /// However their edits alternate, undoing the run leaves the person's text as if the run had never been, redo
    /// brings all of it back, and neither depends on which steps were undone before.
    #[test]
    fn the_person_keeps_their_text(turns in turns(), singly in prop::collection::vec(any::<bool>(), 16)) {
        let lines = |at: &[String]| at.join("|");
        let original: Vec<String> = (0..16).map(|n| format!("line {n}")).collect();
        let (mut both, mut alone) = (original.clone(), original.clone());
        let (mut shell, _) = Shell::after([write("a", &lines(&original))]);
        for step in working() {
            shell.done(step);
        }
        let mut steps = Vec::new();
        for turn in &turns {
            let seq = shell.view.seq();
            let op = match turn {
                Turn::Run(line, word) => {
                    both[line * 4] = format!("run {word}");
                    agent_writes(&mut shell, "a", &lines(&both))
                }
                Turn::Person(line, word) => {
                    both[line * 4 + 2] = format!("mine {word}");
                    alone[line * 4 + 2] = format!("mine {word}");
                    shell.done(write("a", &lines(&both)));
                    continue;
                }
                Turn::Own(word) => agent_writes(&mut shell, "own", &format!("{word}")),
            };
            let changes = shell.log[seq.0 as usize..].iter().any(|event| matches!(event.payload, Payload::File(_)));
            if changes {
                steps.push(op);
            }
        }
        end(&mut shell);
        let wanted = format!("a: {}", lines(&alone));

        // Some steps are undone one by one, the newest first; the run's undo continues from there, after any conflict.
        let mut some = shell.clone();
        for (op, _) in steps.iter().rev().zip(&singly).take_while(|(_, undo)| **undo) {
            some.undo(*op).expect("the newest step goes back cleanly");
        }
        for mut shell in [shell, some] {
            let before = (shell.state(), shell.view.undone.sorted().len());
            match shell.undo_run(run_id(1)) {
                Ok(events) => {
                    prop_assert_eq!(shell.tree(), wanted.clone());
                    for op in &steps {
                        prop_assert_eq!(shell.undo(*op), Err(Rejection::AlreadyUndone { op: *op }));
                    }
                    shell.undo(events[0].op).expect("an undo can be taken back at once");
                    prop_assert_eq!((shell.state(), shell.view.undone.sorted().len()), before);
                }
                Err(refused) => {
                    prop_assert_eq!(refused, Rejection::NotReversible { op: run_op(1) });
                    prop_assert_eq!(shell.tree(), wanted.clone(), "nothing of it is left");
                }
            }
        }
    }
}

#[test]
fn a_run_may_end_with_its_last_call() {
    let (mut shell, _) = two_hands();
    let also = ends(1, TaskOutcome::Done);
    shell.done(make(1, &[], Some(also)));
    shell.done(complete());
    shell.undo_run(run_id(1)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|mine|5|6|7");
}
