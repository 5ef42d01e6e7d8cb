//! Undo where the tree changed its shape, where things moved, and inside git repositories.

use kernel::{Choice, Rejection};
use shared_types::payload::file::FileNode;
use shared_types::payload::revert::RevertEvent;
use shared_types::{Payload, Subject};

use crate::shell::{Shell, all, each};
use crate::steps::*;
use crate::undo::{conflicts, undoes};

#[test]
fn a_moved_folder_goes_back() {
    let tree = || [folder("d"), write("d/a", "1"), write("d/e/b", "2"), link("d/l", "a"), rename("d", "x/y")];
    undoes(tree(), 4, "d/; d/a: 1; d/e/b: 2; d/l -> a");
    undoes(
        tree().into_iter().chain([write("x/y/new", "3")]),
        4,
        "d/; d/a: 1; d/e/b: 2; d/l -> a; x/y/new: 3",
    );
}

#[test]
fn what_was_moved_and_edited_since_stays_or_goes_back_as_a_whole() {
    conflicts(
        [write("d/a", "1"), write("d/b", "2"), rename("d", "x"), write("x/a", "edited")],
        2,
        &["x/a: edited or nothing, it was changed since it was created"],
        "d/b: 2; x/a: edited",
        "d/a: 1; d/b: 2",
    );
}

#[test]
fn what_was_moved_is_not_lost_when_its_old_place_is_kept() {
    conflicts(
        [write("a", "1"), rename("a", "b"), write("a", "new")],
        1,
        &["a: new or 1, something else was put there since"],
        "a: new; b: 1",
        "a: 1",
    );
    conflicts(
        [write("d/a", "1"), rename("d/a", "b"), write("d", "new")],
        1,
        &["d: new or nothing, a file is now where a folder is needed"],
        "b: 1; d: new",
        "d/a: 1",
    );
    let mut shell = Shell::new();
    shell.done(write("a", "1"));
    let op = shell.op();
    shell.run_in(op, rename("a", "b")).unwrap();
    shell.run_in(op, rename("b", "c")).unwrap();
    shell.done(write("a", "new"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: new; c: 1", "a move in two steps is one move");
}

#[test]
fn what_was_moved_and_changed_is_redone_as_a_whole_or_not_at_all() {
    let (mut shell, _) = Shell::after([write("a", "1|2|3")]);
    let op = shell.op();
    shell.run_in(op, write("a", "1|two|3")).unwrap();
    shell.run_in(op, rename("a", "d")).unwrap();
    let undone = shell.undo(op).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3");
    shell.done(write("d", "new"));
    shell.undo_with(undone[0].op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3; d: new", "the other end of the move stays with the one that is kept");
}

#[test]
fn what_took_the_place_of_what_was_moved_stays_with_it() {
    let (mut shell, _) = Shell::after([write("a", "1"), write("b", "2")]);
    let op = shell.op();
    shell.run_in(op, rename("b", "c")).unwrap();
    shell.run_in(op, rename("a", "b")).unwrap();
    shell.done(write("a", "new"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(
        shell.tree(),
        "a: new; b: 1; c: 2",
        "`a` is kept, so its file stays at `b`, and that of `b` at `c`"
    );
}

/// What a command does to files is known from how it found and left them.
#[test]
fn what_a_command_moved_over_another_stays_with_it() {
    let (one, two) = (Some(file("1")), Some(file("2")));
    let after = |edits: &[Edit<'_>]| {
        let (mut shell, _) = Shell::after([write("a", "1"), write("b", "2")]);
        let op = shell.op();
        shell.run_in(op, capture(edits)).unwrap();
        (shell, op)
    };
    // mv b c; mv a b
    let chain = [("a", one.clone(), None), ("b", two.clone(), one.clone()), ("c", None, two.clone())];
    let (mut shell, op) = after(&chain);
    shell.done(write("a", "new"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: new; b: 1; c: 2");
    // mv a b
    let (mut shell, op) = after(&[("a", one.clone(), None), ("b", two.clone(), one.clone())]);
    shell.done(write("a", "new"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: new; b: 1");
    // mv a t; mv b a; mv t b
    let (mut shell, op) = after(&[("a", one.clone(), two.clone()), ("b", two.clone(), one.clone())]);
    shell.done(write("a", "new"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: new; b: 1");
    // cp b a; echo 3 > b
    let three = with(capture(&[("a", one, two.clone()), ("b", two, Some(file("3")))]), &["3"]);
    let (mut shell, _) = Shell::after([write("a", "1"), write("b", "2")]);
    let op = shell.op();
    shell.run_in(op, three).unwrap();
    shell.done(write("b", "new"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: 2; b: new", "what `b` was is not lost with the last copy of it");
}

#[test]
fn what_was_moved_beside_something_kept_goes_back() {
    let (mut shell, _) = Shell::after([]);
    let op = shell.op();
    for (text, to) in [("1", "a"), ("2", "b")] {
        shell.run_in(op, write("draft", text)).unwrap();
        shell.run_in(op, rename("draft", to)).unwrap();
    }
    shell.done(write("a", "edited"));
    shell.undo_with(op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: edited");
}

#[test]
fn what_was_moved_and_changed_is_known_also_where_another_file_takes_its_place() {
    let (mut shell, _) = Shell::after([write("a", "1|2|3"), write("e", "1|two|3")]);
    let op = shell.op();
    shell.run_in(op, write("a", "1|two|3")).unwrap();
    shell.run_in(op, delete("e")).unwrap();
    shell.run_in(op, rename("a", "d")).unwrap();
    let undone = shell.undo(op).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3; e: 1|two|3");
    shell.done(write("d", "new"));
    shell.undo_with(undone[0].op, all(Choice::Keep)).unwrap();
    assert!(shell.tree().contains("a: 1|2|3; d: new"), "{}", shell.tree());
}

#[test]
fn a_merge_that_is_left_out_after_all_leaves_no_contents_behind() {
    let over = capture(&[
        ("a", Some(file("one|2|3|4")), None),
        ("b", Some(file("1|2|3|4")), Some(file("one|2|3|4"))),
    ]);
    let (mut shell, ops) = Shell::after([
        write("a", "one|2|3|4"),
        write("b", "1|2|3|4"),
        over,
        write("a", "new"),
        write("b", "one|2|3|4|5"),
    ]);
    // The shell checks that what a decision brings is named by one of its events.
    shell.undo_with(ops[2], all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: new; b: one|2|3|4|5");
}

#[test]
fn what_was_moved_in_two_steps_and_changed_is_not_lost_when_its_redo_leaves_one_end() {
    let (mut shell, _) = Shell::after([write("a", "1|2|3")]);
    let op = shell.op();
    for step in [write("a", "1|two|3"), rename("a", "t"), rename("t", "d")] {
        shell.run_in(op, step).unwrap();
    }
    let undone = shell.undo(op).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3");
    shell.done(write("d", "new"));
    shell.undo_with(undone[0].op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3; d: new");
}

#[test]
fn what_was_overwritten_goes_back_though_a_file_that_began_like_it_stays() {
    let both = capture(&[("config", Some(file("{}")), Some(file("set"))), ("cache", None, Some(file("{}")))]);
    conflicts(
        [write("config", "{}"), with(both, &["set"]), write("cache", "{1}")],
        1,
        &["cache: {1} or nothing, it was changed since it was created"],
        "cache: {1}; config: {}",
        "config: {}",
    );
}

#[test]
fn thousands_that_were_moved_and_changed_are_told_of_by_their_folders() {
    let names: Vec<String> = (0..600).map(|n| format!("src/{n}.rs")).collect();
    let (mut shell, _) = Shell::after(names.iter().map(|at| write(at, &format!("{at}|old|tail"))));
    let op = shell.op();
    for at in &names {
        shell.run_in(op, write(at, &format!("{at}|new|tail"))).unwrap();
    }
    shell.run_in(op, rename("src", "lib")).unwrap();
    let undone = shell.undo(op).unwrap();
    let Payload::Revert(RevertEvent::Undo(undo)) = &undone[0].payload else { panic!("no undo") };
    assert_eq!(undo.moves, [(path("src"), path("lib"))]);
    shell.done(write("lib/7.rs", "mine"));
    shell.undo_with(undone[0].op, all(Choice::Keep)).unwrap();
    assert_eq!(shell.bytes("src/7.rs"), Some("src/7.rs\nold\ntail\n".as_bytes()), "it is not lost");
    assert_eq!(shell.bytes("lib/7.rs"), Some("mine\n".as_bytes()));
    assert_eq!(shell.bytes("src/8.rs"), None, "all others go");
}

#[test]
fn a_file_where_a_folder_is_needed_is_a_conflict() {
    conflicts(
        [write("d/a", "1"), write("d/b", "2"), delete("d"), write("d", "file")],
        2,
        &["d: file or nothing, a file is now where a folder is needed"],
        "d: file",
        "d/a: 1; d/b: 2",
    );
}

#[test]
fn a_folder_with_other_files_where_a_file_is_needed_is_a_conflict() {
    conflicts(
        [write("d", "1"), delete("d"), write("d/new", "2"), write("d/e/newer", "3")],
        1,
        &["d: 2 files or 1, a folder with other files is there now"],
        "d/e/newer: 3; d/new: 2",
        "d: 1",
    );
    let replaced =
        || capture(&[("d", Some(file("1")), Some(FileNode::Folder)), ("d/a", None, Some(file("2")))]);
    undoes([write("d", "1"), with(replaced(), &["2"])], 1, "d: 1");
    conflicts(
        [write("d", "1"), with(replaced(), &["2"]), write("d/b", "3")],
        1,
        &["d: 1 files or 1, a folder with other files is there now"],
        "d/; d/a: 2; d/b: 3",
        "d: 1",
    );
}

#[test]
fn every_place_that_is_in_the_way_is_listed() {
    conflicts(
        [
            write("d/a", "1"),
            write("d/b/c", "2"),
            write("e/a", "3"),
            delete("d"),
            delete("e"),
            write("d", "x"),
        ],
        3,
        &["d: x or nothing, a file is now where a folder is needed"],
        "d: x",
        "d/a: 1; d/b/c: 2",
    );
    conflicts(
        [
            write("top/d/a", "1"),
            write("top/e/a", "2"),
            delete("top"),
            write("top/d", "x"),
            write("top/e", "y"),
        ],
        2,
        &[
            "top/d: x or nothing, a file is now where a folder is needed",
            "top/e: y or nothing, a file is now where a folder is needed",
        ],
        "top/d: x; top/e: y",
        "top/d/a: 1; top/e/a: 2",
    );
}

#[test]
fn a_folder_that_was_made_and_filled_since_keeps_its_files() {
    undoes([folder("d"), write("d/a", "1")], 0, "d/a: 1");
    conflicts(
        [folder("d"), delete("d"), write("d", "1")],
        1,
        &["d: 1 or /, something else was put there since"],
        "d: 1",
        "d/",
    );
}

#[test]
fn one_choice_for_each_conflict() {
    let steps = [
        write("d/a", "1"),
        write("d/b", "1"),
        write("d/c", "1"),
        delete("d"),
        write("d/a", "A"),
        write("d/b", "B"),
    ];
    let (mut shell, ops) = Shell::after(steps);
    let mut resolutions = each([Subject::File(path("d/a"))], Choice::Keep);
    resolutions.others = Some(Choice::Take);
    shell.undo_with(ops[3], resolutions).unwrap();
    assert_eq!(shell.tree(), "d/a: A; d/b: 1; d/c: 1");
}

/// A repository with a commit in it, and then an operation that makes another one and edits a file.
fn committed() -> Vec<Step> {
    let before = [("p/.git/HEAD", "ref: main"), ("p/.git/main", "c1"), ("p/.git/log", "1|2|3"), ("p/a", "1")];
    let after = [("p/.git/main", "c1", "c2"), ("p/.git/log", "1|2|3", "1|2|3|4"), ("p/a", "1", "2")];
    let mut steps: Vec<Step> = before.into_iter().map(|(at, lines)| write(at, lines)).collect();
    let mut edits: Vec<Edit<'_>> =
        after.iter().map(|(at, old, new)| (*at, Some(file(old)), Some(file(new)))).collect();
    edits.push(("p/.git/objects/c2", None, Some(file("commit"))));
    steps.push(with(capture(&edits), &["c2", "1|2|3|4", "2", "commit"]));
    steps
}

#[test]
fn a_repository_goes_back_as_a_whole() {
    let before = "p/.git/HEAD: ref: main; p/.git/log: 1|2|3; p/.git/main: c1; p/a: 1";
    undoes(committed(), 4, before);
    undoes(committed().into_iter().chain([write("p/b", "1")]), 4, &format!("{before}; p/b: 1"));
}

#[test]
fn a_repository_that_was_used_since_is_one_conflict_and_never_merged() {
    // The later edits of these files could be merged line by line if they were ordinary text.
    let later = [write("p/.git/log", "0|1|2|3|4"), write("p/.git/main", "c3")];
    conflicts(
        committed().into_iter().chain(later),
        4,
        &[
            "p/.git (a git repository): 2 files or 3 files, the repository was changed since, and repositories are never merged",
        ],
        "p/.git/HEAD: ref: main; p/.git/log: 0|1|2|3|4; p/.git/main: c3; p/.git/objects/c2: commit; p/a: 1",
        "p/.git/HEAD: ref: main; p/.git/log: 1|2|3; p/.git/main: c1; p/a: 1",
    );
}

#[test]
fn what_was_moved_out_of_a_repository_is_not_lost_when_the_repository_is_kept() {
    conflicts(
        [write("p/.git/x", "1"), rename("p/.git/x", "y"), write("p/.git/x", "new")],
        1,
        &[
            "p/.git (a git repository): 1 files or 1 files, the repository was changed since, and repositories are never merged",
        ],
        "p/.git/x: new; y: 1",
        "p/.git/x: 1",
    );
}

#[test]
fn each_repository_is_a_conflict_of_its_own() {
    let both = |old: &str, new: &str| {
        let edit = |at| (at, Some(file(old)), Some(file(new)));
        with(capture(&[edit("p/.git/x"), edit("p/.git/y"), edit("q/.git/x")]), &[new])
    };
    let steps = [
        write("p/.git/x", "1"),
        write("p/.git/y", "1"),
        write("q/.git/x", "1"),
        both("1", "2"),
        both("2", "3"),
    ];
    let (mut shell, ops) = Shell::after(steps);
    let Err(Rejection::Conflicts { conflicts }) = shell.undo(ops[3]) else {
        panic!("conflicts were expected")
    };
    let repositories = [Subject::Repository(path("p/.git")), Subject::Repository(path("q/.git"))];
    assert_eq!(conflicts.into_iter().map(|c| c.subject).collect::<Vec<_>>(), repositories);
    let mut resolutions = each([repositories[1].clone()], Choice::Take);
    resolutions.others = Some(Choice::Keep);
    shell.undo_with(ops[3], resolutions).unwrap();
    assert_eq!(shell.tree(), "p/.git/x: 3; p/.git/y: 3; q/.git/x: 1");
}

#[test]
fn a_repository_is_not_put_back_in_part_where_the_tree_changed() {
    let steps = [
        write("p/.git/HEAD", "h"),
        write("p/.git/refs/a", "1"),
        write("p/a", "1"),
        delete("p"),
        write("p/.git/refs", "x"),
    ];
    conflicts(
        steps,
        3,
        &["p/.git (a git repository): x or nothing, a file is now where a folder is needed"],
        "p/.git/refs: x; p/a: 1",
        "p/.git/HEAD: h; p/.git/refs/a: 1; p/a: 1",
    );
}
