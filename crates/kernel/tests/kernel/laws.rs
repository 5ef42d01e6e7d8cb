//! The laws of the kernel, for any sequence of commands.

use std::collections::BTreeMap;

use kernel::{View, evolve};
use proptest::prelude::*;
use proptest::sample::Index;
use shared_types::payload::file::FileNode;
use shared_types::{FilePath, Seq};

use crate::agents::run_id;
use crate::commands::{Doing, doings};
use crate::shell::{Shell, all};

/// Every node above another is a folder, and the counts equal a new count.
pub(crate) fn check_counts(view: &View) -> Result<(), TestCaseError> {
    let mut below: BTreeMap<FilePath, u32> = BTreeMap::new();
    for (path, _) in view.files.iter() {
        below.entry(path.clone()).or_default();
        for above in path.ancestors() {
            *below.entry(above).or_default() += 1;
        }
    }
    for (path, count) in &below {
        prop_assert_eq!(view.files.count_below(path), *count, "below {}", path);
        let within: Vec<_> =
            view.files.sorted().into_iter().filter(|(other, _)| other.is_within(path)).collect();
        prop_assert_eq!(view.files.within(path), within);
    }
    Ok(())
}

pub(crate) fn check_tree(view: &View) -> Result<(), TestCaseError> {
    for (path, _) in view.files.iter() {
        for above in path.ancestors() {
            let node = view.files.get(&above);
            prop_assert!(
                matches!(node, None | Some(FileNode::Folder)),
                "{} lies below {}: {:?}",
                path,
                above,
                node
            );
        }
    }
    check_counts(view)
}

/// The view behind the bytes of its slices.
pub(crate) fn reopened(view: &mut View) -> View {
    let slices = view.to_slices();
    let bytes = |name| slices.iter().find(|slice| slice.name == name).map(|slice| slice.bytes.as_slice());
    View::from_slices(view.seq(), bytes).expect("a snapshot can be read")
}

/// This many cases, or `PROPTEST_CASES`; failures are printed and not saved to a file.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = std::env::var_os("PROPTEST_CASES").map_or(cases, |_| given.cases);
    ProptestConfig { cases, failure_persistence: None, ..given }
}

fn many(count: usize) -> impl Strategy<Value = Vec<Doing>> {
    prop::collection::vec(doings(), 1..count)
}

proptest! {
    #![proptest_config(config(1500))]

    /// A replay of the recorded events, and any snapshot with the rest of the log, both lead to the root of the live
    /// view.
    #[test]
    fn replay_equals_live(doings in many(40), cut in any::<Index>(), asks in any::<u64>()) {
        let mut shell = Shell::new();
        for (n, doing) in doings.iter().enumerate() {
            let _ = shell.attempt(doing);
            // The root is computed lazily, so it must not depend on when it is read.
            if asks >> (n % 64) & 1 == 1 {
                shell.root();
            }
        }
        let live = shell.root();
        let mut replayed = shell.at(shell.view.seq());
        prop_assert_eq!(replayed.root(), live);
        prop_assert_eq!(replayed.to_slices(), shell.view.to_slices(), "equal views are equal bytes");

        let seq = Seq(cut.index(shell.log.len() + 1) as u64);
        let mut early = shell.at(seq);
        let mut opened = reopened(&mut early);
        prop_assert_eq!(opened.seq(), seq);
        prop_assert_eq!(opened.root(), early.root());
        for event in &shell.log[seq.0 as usize..] {
            evolve(&mut opened, event);
        }
        prop_assert_eq!(opened.root(), live);
        check_tree(&opened)?;
    }

    /// Undoing an undo returns to the state before it, for every choice in its conflicts.
    #[test]
    fn undo_then_redo_is_identity(doings in many(30), choice in prop::option::of(prop::bool::ANY)) {
        let mut shell = Shell::new();
        for doing in &doings {
            let _ = shell.attempt(doing);
        }
        for op in shell.ops() {
            let mut shell = shell.clone();
            let before = (shell.state(), shell.view.undone.contains(&op));
            let undone = match choice {
                None => shell.undo(op),
                Some(true) => shell.undo_with(op, all(kernel::Choice::Keep)),
                Some(false) => shell.undo_with(op, all(kernel::Choice::Take)),
            };
            let Ok(events) = undone else { continue };
            shell.undo(events[0].op).expect("an undo can be taken back at once");
            prop_assert_eq!((shell.state(), shell.view.undone.contains(&op)), before);
        }
        for run in [run_id(1), run_id(2)] {
            let mut shell = shell.clone();
            let undone = |shell: &Shell| -> Vec<_> {
                shell.view.undone.sorted().into_iter().map(|(op, by)| (*op, *by)).collect()
            };
            let before = (shell.state(), undone(&shell));
            let taken = match choice {
                None => shell.undo_run(run),
                Some(true) => shell.undo_run_with(run, all(kernel::Choice::Keep)),
                Some(false) => shell.undo_run_with(run, all(kernel::Choice::Take)),
            };
            let Ok(events) = taken else { continue };
            prop_assert_eq!(shell.undo_run(run).is_err(), true, "once is all");
            shell.undo(events[0].op).expect("the undo of a run can be taken back at once");
            prop_assert_eq!((shell.state(), undone(&shell)), before);
        }
    }

    /// A refused command changes nothing. (That the same command gives the same answer is checked in the shell, for
    /// every decision of every test.)
    #[test]
    fn a_refusal_changes_nothing(doings in many(40)) {
        let mut shell = Shell::new();
        for doing in &doings {
            let before = (shell.root(), shell.view.seq(), shell.log.len());
            if shell.attempt(doing).is_err() {
                prop_assert_eq!((shell.root(), shell.view.seq(), shell.log.len()), before);
            }
        }
    }

    /// After every single event the files are a valid tree, also in the middle of an operation.
    #[test]
    fn the_tree_stays_a_tree(doings in many(40)) {
        let mut shell = Shell::new();
        let mut checked = View::default();
        for doing in &doings {
            let done = shell.log.len();
            let _ = shell.attempt(doing);
            for event in &shell.log[done..] {
                evolve(&mut checked, event);
                check_tree(&checked)?;
            }
        }
    }

    /// A restore leads to exactly the state at that seq, and touches nothing else.
    #[test]
    fn a_restore_leads_to_any_moment(doings in many(25)) {
        let mut shell = Shell::new();
        for doing in &doings {
            let _ = shell.attempt(doing);
        }
        let rest = |view: &mut View| view.roots().into_iter().skip(4).take(3).collect::<Vec<_>>();
        for seq in 0..=shell.view.seq().0 {
            let mut shell = shell.clone();
            let untouched = rest(&mut shell.view);
            let expected = crate::shell::reversible_roots(&mut shell.at(Seq(seq)));
            shell.restore(Seq(seq)).expect("every moment can be restored");
            prop_assert_eq!(shell.state(), expected);
            prop_assert_eq!(rest(&mut shell.view), untouched);
        }
    }
}
