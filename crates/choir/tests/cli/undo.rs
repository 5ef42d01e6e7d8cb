//! Undo of any operation, redo and restore, applied to the current files, with previews.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::test_computer::{DiskEntry, TestComputer};

/// One way to change a computer.
type Gesture = fn(&TestComputer);

fn gestures() -> Vec<(&'static str, Gesture)> {
    vec![
        ("create", |computer| drop(computer.write("new/file", "x\n"))),
        ("edit", |computer| drop(computer.write("a", "changed\n"))),
        ("remove a file", |computer| drop(computer.ok(&["rm", "a"]))),
        ("remove a folder", |computer| drop(computer.ok(&["rm", "dir"]))),
        ("move a file", |computer| drop(computer.ok(&["mv", "a", "dir/moved"]))),
        ("move a folder", |computer| drop(computer.ok(&["mv", "dir", "elsewhere/dir"]))),
        ("restore", |computer| drop(computer.ok(&["restore", "1"]))),
        ("an edit outside", |computer| computer.edit("dir/b", "edited outside\n")),
        ("a mode outside", |computer| {
            fs::set_permissions(computer.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("rm -rf outside", |computer| fs::remove_dir_all(computer.path("dir")).unwrap()),
        ("a file becomes a folder", |computer| {
            fs::remove_file(computer.path("a")).unwrap();
            computer.edit("a/inside", "x\n");
        }),
        ("a link replaces a file", |computer| {
            fs::remove_file(computer.path("a")).unwrap();
            std::os::unix::fs::symlink("dir/b", computer.path("a")).unwrap();
        }),
    ]
}

fn sample() -> TestComputer {
    let computer = TestComputer::bare();
    computer.edit("a", "one\ntwo\nthree\n");
    computer.edit("dir/b", "b\n");
    computer.edit("dir/sub/c", "c\n");
    fs::write(computer.path("dir/binary"), [0, 159, 146, 150, 0, 255]).unwrap();
    std::os::unix::fs::symlink("b", computer.path("dir/link")).unwrap();
    fs::create_dir(computer.path("empty")).unwrap();
    computer.set_up()
}

#[test]
fn undo_and_redo_cover_every_kind_of_change() {
    for (name, act) in gestures() {
        let computer = sample();
        let before = computer.files();
        act(&computer);
        computer.status();
        let after = computer.files();
        assert_ne!(after, before, "{name} did nothing");
        computer.ok(&["undo"]);
        assert_eq!(computer.files(), before, "undo of {name}");
        computer.ok(&["redo"]);
        assert_eq!(computer.files(), after, "redo of {name}");
        computer.ok(&["undo"]);
        assert_eq!(computer.files(), before, "second undo of {name}");
        computer.assert_intact();
    }
}

#[test]
fn any_operation_can_be_undone_and_the_later_ones_stay() {
    let computer = TestComputer::new();
    let ops = ["a", "b", "c", "d"].map(|name| computer.write(name, "text\n"));
    computer.ok(&["undo", &ops[1]]);
    computer.ok(&["undo", &ops[2][28..]]).says("undone");
    let names: Vec<_> = computer.files().into_keys().collect();
    assert_eq!(names, ["a", "d"]);
    computer.run(&["undo", &ops[1]]).exits(5).says("undone already");
    computer.ok(&["redo", &ops[1]]);
    computer.ok(&["redo", "@4"]);
    assert_eq!(computer.files().len(), 4);
    computer.run(&["redo", &ops[1]]).exits(5).says("not undone");
    computer.run(&["undo", "@1"]).exits(5).says("can be undone");
    computer.run(&["undo", "@99"]).exits(4);
    computer.run(&["undo", "01234567"]).exits(4).says("choir log");
    computer.assert_intact();
}

#[test]
fn a_bare_undo_goes_back_step_by_step_and_ends() {
    let computer = TestComputer::new();
    computer.run(&["undo"]).exits(4).says("nothing of yours to undo");
    computer.run(&["redo"]).exits(4).says("nothing to redo");
    let mut past: Vec<BTreeMap<String, DiskEntry>> = Vec::new();
    for text in ["1\n", "2\n", "3\n"] {
        past.push(computer.files());
        computer.write("a", text);
    }
    for expected in past.iter().rev() {
        computer.ok(&["undo"]);
        assert_eq!(computer.files(), *expected);
    }
    computer.run(&["undo"]).exits(4);
    for expected in ["1\n", "2\n", "3\n"] {
        computer.ok(&["redo"]);
        assert_eq!(computer.read("a"), expected);
    }
    computer.run(&["redo"]).exits(4);
}

#[test]
fn later_edits_of_other_lines_are_spared() {
    let computer = TestComputer::over(&[("poem", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")]);
    let op = computer.write("poem", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    computer.edit("poem", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    computer.ok(&["undo", &op]);
    assert_eq!(computer.read("poem"), "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    computer.ok(&["redo"]);
    assert_eq!(computer.read("poem"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    computer.assert_intact();
}

#[test]
fn an_unrecorded_edit_is_recorded_before_it_could_be_lost() {
    let computer = TestComputer::new();
    let op = computer.write("a", "mine\n");
    computer.edit("a", "mine\nand outside\n");
    computer.edit("b", "new outside\n");
    computer.run(&["undo", &op]).exits(3);
    assert_eq!(
        (computer.read("a"), computer.read("b")),
        ("mine\nand outside\n".into(), "new outside\n".into())
    );
    computer.ok(&["undo", &op, "--take", "a"]);
    assert!(!computer.has("a"));
    computer.ok(&["redo"]);
    assert_eq!(computer.read("a"), "mine\nand outside\n");
}

#[test]
fn a_preview_shows_the_lines_and_changes_nothing() {
    let computer = TestComputer::new();
    computer.write("a", "one\n");
    computer.write("a", "two\n");
    computer.ok(&["undo"]);
    let snapshot = computer.snapshot();
    computer.ok(&["undo", "--preview"]).says("would undo").says("-one");
    computer.ok(&["redo", "--preview"]).says("would redo").says("+two");
    computer.ok(&["restore", "3", "--preview"]).says("would restore").says("+two");
    let preview = computer.json(&["undo", "@2", "--preview"]);
    assert_eq!((&preview["preview"], &preview["first"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn restore_returns_to_a_moment_and_can_itself_be_undone() {
    let computer = TestComputer::over(&[("a", "one\n"), ("b", "b\n")]);
    let then = (computer.head(), computer.files());
    computer.write("a", "two\n");
    computer.ok(&["rm", "b"]);
    computer.edit("c", "outside\n");
    computer.status();
    let now = computer.files();
    computer.ok(&["restore", &then.0.to_string()]);
    assert_eq!(computer.files(), then.1);
    computer.ok(&["undo"]);
    assert_eq!(computer.files(), now);
    computer.run(&["restore", "999"]).exits(4).says("no event 999");
    assert_eq!(computer.files(), now);
    // Today was kept as a checkpoint before anything was changed.
    computer.ok(&["checkpoint", "list"]).says("Before restoring event");
    computer.assert_intact();
}
