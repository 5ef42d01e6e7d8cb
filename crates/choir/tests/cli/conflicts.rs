//! A real conflict: exit code 3, both sides named, nothing changed until the person chooses.

use crate::test_computer::TestComputer;

/// Two files of one operation that were both changed since, and one that was not. Returns the operation.
fn conflict() -> (TestComputer, String) {
    let computer = TestComputer::over(&[("a", "a1\n"), ("b", "b1\n"), ("free", "f1\n")]);
    computer.edit("a", "a2\n");
    computer.edit("b", "b2\n");
    computer.edit("free", "f2\n");
    let op = computer.captured();
    computer.write("a", "a3 and more\n");
    computer.write("b", "b3\n");
    (computer, op)
}

fn contents(computer: &TestComputer) -> [String; 3] {
    ["a", "b", "free"].map(|path| computer.read(path))
}

#[test]
fn both_sides_are_named_and_nothing_is_changed() {
    let (computer, op) = conflict();
    let snapshot = computer.snapshot();
    for preview in [&["undo", &op][..], &["undo", &op, "--preview"]] {
        let ran =
            computer.run(preview).exits(3).says("nothing was changed").says("--keep a").says("--take-all");
        for words in
            ["a: the same lines were changed since", "b: the same", "current:      12 B", "the undo has: 3 B"]
        {
            assert!(ran.err.contains(words), "no {words:?} in {}", ran.err);
        }
        assert_eq!(ran.out, "");
    }
    let ran = computer.run(&["undo", &op, "--json"]).exits(3);
    let error = ran.json_lines().remove(0)["error"].clone();
    assert_eq!(error["code"], "conflict");
    let conflicts = error["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 2);
    assert_eq!(conflicts[0]["subject"]["file"], "a");
    assert_eq!(conflicts[0]["today"]["file"]["file"]["size"], 12);
    assert_eq!(conflicts[0]["undone"]["file"]["file"]["size"], 3);
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn the_person_chooses_for_each_file_or_for_all() {
    for (choice, expected) in [
        (&["--keep", "a", "--take", "b"][..], ["a3 and more\n", "b1\n", "f1\n"]),
        (&["--take", "a", "--keep", "b"], ["a1\n", "b3\n", "f1\n"]),
        (&["--keep-all"], ["a3 and more\n", "b3\n", "f1\n"]),
        (&["--take-all"], ["a1\n", "b1\n", "f1\n"]),
        (&["--take", "a", "--keep-all"], ["a1\n", "b3\n", "f1\n"]),
    ] {
        let (computer, op) = conflict();
        let before = contents(&computer);
        let args = [&["undo", op.as_str()], choice].concat();
        let snapshot = computer.snapshot();
        computer.ok(&[&args[..], &["--preview"]].concat()).says("would undo");
        assert_eq!(computer.snapshot(), snapshot, "{choice:?}");
        computer.ok(&args);
        assert_eq!(contents(&computer), expected, "{choice:?}");
        computer.ok(&["redo"]);
        assert_eq!(contents(&computer), before, "redo of {choice:?}");
        computer.assert_intact();
    }
}

#[test]
fn a_choice_for_one_leaves_the_conflict_of_the_other() {
    let (computer, op) = conflict();
    let snapshot = computer.snapshot();
    let ran = computer.run(&["undo", &op, "--keep", "a"]).exits(3);
    assert!(ran.err.contains("b: ") && !ran.err.contains("  a: "), "{}", ran.err);
    computer.run(&["undo", &op, "--keep-all", "--take-all"]).exits(2);
    computer.run(&["undo", &op, "--keep", "../x"]).exits(2);
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn a_file_made_by_the_operation_and_edited_since_is_a_conflict_with_nothing() {
    let computer = TestComputer::new();
    let op = computer.write("draft", "first\n");
    computer.write("draft", "first\nsecond\n");
    let ran = computer.run(&["undo", &op]).exits(3);
    assert!(ran.err.contains("the undo has: nothing"), "{}", ran.err);
    assert_eq!(computer.read("draft"), "first\nsecond\n");
}

#[test]
fn a_file_deleted_since_is_a_conflict_with_what_the_undo_has() {
    let computer = TestComputer::over(&[("a", "one\n")]);
    let op = computer.write("a", "two\n");
    computer.ok(&["rm", "a"]);
    let snapshot = computer.snapshot();
    let ran = computer.run(&["undo", &op]).exits(3);
    assert!(ran.err.contains("current:      nothing"), "{}", ran.err);
    assert_eq!(computer.snapshot(), snapshot);
    computer.ok(&["undo", &op, "--take", "a"]);
    assert_eq!(computer.read("a"), "one\n");
}

#[test]
fn binary_files_are_never_merged() {
    let computer = TestComputer::bare();
    let write = |bytes: &[u8]| std::fs::write(computer.path("image"), bytes).unwrap();
    write(&[0, 1, 2, 3, 0, 9]);
    let computer = TestComputer::at(computer.work.clone()).set_up();
    write(&[0, 1, 2, 3, 0, 8]);
    let op = computer.captured();
    write(&[7, 1, 2, 3, 0, 8]);
    computer.run(&["undo", &op]).exits(3).says("image");
    assert_eq!(std::fs::read(computer.path("image")).unwrap(), [7, 1, 2, 3, 0, 8]);
}
