//! A real conflict: exit code 3, both sides named, nothing changed until the person chooses.

use crate::home::Home;

/// Two files of one operation that were both changed since, and one that was not. Returns the operation.
fn conflict() -> (Home, String) {
    let home = Home::over(&[("a", "a1\n"), ("b", "b1\n"), ("free", "f1\n")]);
    home.edit("a", "a2\n");
    home.edit("b", "b2\n");
    home.edit("free", "f2\n");
    let op = home.captured();
    home.write("a", "a3 and more\n");
    home.write("b", "b3\n");
    (home, op)
}

fn contents(home: &Home) -> [String; 3] {
    ["a", "b", "free"].map(|path| home.read(path))
}

#[test]
fn both_sides_are_named_and_nothing_is_changed() {
    let (home, op) = conflict();
    let standing = home.standing();
    for preview in [&["undo", &op][..], &["undo", &op, "--preview"]] {
        let ran = home.run(preview).exits(3).says("nothing was changed").says("--keep a").says("--take-all");
        for words in
            ["a: the same lines were changed since", "b: the same", "today:        12 B", "the undo has: 3 B"]
        {
            assert!(ran.err.contains(words), "no {words:?} in {}", ran.err);
        }
        assert_eq!(ran.out, "");
    }
    let ran = home.run(&["undo", &op, "--json"]).exits(3);
    let error = ran.json_lines().remove(0)["error"].clone();
    assert_eq!(error["code"], "conflict");
    let conflicts = error["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 2);
    assert_eq!(conflicts[0]["subject"]["file"], "a");
    assert_eq!(conflicts[0]["today"]["file"]["file"]["size"], 12);
    assert_eq!(conflicts[0]["undone"]["file"]["file"]["size"], 3);
    assert_eq!(home.standing(), standing);
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
        let (home, op) = conflict();
        let before = contents(&home);
        let args = [&["undo", op.as_str()], choice].concat();
        let standing = home.standing();
        home.ok(&[&args[..], &["--preview"]].concat()).says("would undo");
        assert_eq!(home.standing(), standing, "{choice:?}");
        home.ok(&args);
        assert_eq!(contents(&home), expected, "{choice:?}");
        home.ok(&["redo"]);
        assert_eq!(contents(&home), before, "redo of {choice:?}");
        home.assert_intact();
    }
}

#[test]
fn a_choice_for_one_leaves_the_conflict_of_the_other() {
    let (home, op) = conflict();
    let standing = home.standing();
    let ran = home.run(&["undo", &op, "--keep", "a"]).exits(3);
    assert!(ran.err.contains("b: ") && !ran.err.contains("  a: "), "{}", ran.err);
    home.run(&["undo", &op, "--keep-all", "--take-all"]).exits(2);
    home.run(&["undo", &op, "--keep", "../x"]).exits(2);
    assert_eq!(home.standing(), standing);
}

#[test]
fn a_file_made_by_the_operation_and_edited_since_is_a_conflict_with_nothing() {
    let home = Home::new();
    let op = home.write("draft", "first\n");
    home.write("draft", "first\nsecond\n");
    let ran = home.run(&["undo", &op]).exits(3);
    assert!(ran.err.contains("the undo has: nothing"), "{}", ran.err);
    assert_eq!(home.read("draft"), "first\nsecond\n");
}

#[test]
fn a_file_deleted_since_is_a_conflict_with_what_the_undo_has() {
    let home = Home::over(&[("a", "one\n")]);
    let op = home.write("a", "two\n");
    home.ok(&["rm", "a"]);
    let standing = home.standing();
    let ran = home.run(&["undo", &op]).exits(3);
    assert!(ran.err.contains("today:        nothing"), "{}", ran.err);
    assert_eq!(home.standing(), standing);
    home.ok(&["undo", &op, "--take", "a"]);
    assert_eq!(home.read("a"), "one\n");
}

#[test]
fn binary_files_are_never_merged() {
    let home = Home::bare();
    let write = |bytes: &[u8]| std::fs::write(home.path("image"), bytes).unwrap();
    write(&[0, 1, 2, 3, 0, 9]);
    let home = Home::at(home.work.clone()).set_up();
    write(&[0, 1, 2, 3, 0, 8]);
    let op = home.captured();
    write(&[7, 1, 2, 3, 0, 8]);
    home.run(&["undo", &op]).exits(3).says("image");
    assert_eq!(std::fs::read(home.path("image")).unwrap(), [7, 1, 2, 3, 0, 8]);
}
