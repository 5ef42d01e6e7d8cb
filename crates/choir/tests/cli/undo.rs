//! Undo of any operation, redo, restore: against today's files, with a look at them first.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::home::{Found, Home};

/// A gesture, by whatever means.
type Gesture = fn(&Home);

fn gestures() -> Vec<(&'static str, Gesture)> {
    vec![
        ("create", |home| drop(home.write("new/file", "x\n"))),
        ("edit", |home| drop(home.write("a", "changed\n"))),
        ("remove a file", |home| drop(home.ok(&["rm", "a"]))),
        ("remove a folder", |home| drop(home.ok(&["rm", "dir"]))),
        ("move a file", |home| drop(home.ok(&["mv", "a", "dir/moved"]))),
        ("move a folder", |home| drop(home.ok(&["mv", "dir", "elsewhere/dir"]))),
        ("restore", |home| drop(home.ok(&["restore", "1"]))),
        ("an edit outside", |home| home.edit("dir/b", "edited outside\n")),
        ("a mode outside", |home| {
            fs::set_permissions(home.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("rm -rf outside", |home| fs::remove_dir_all(home.path("dir")).unwrap()),
        ("a file becomes a folder", |home| {
            fs::remove_file(home.path("a")).unwrap();
            home.edit("a/inside", "x\n");
        }),
        ("a link replaces a file", |home| {
            fs::remove_file(home.path("a")).unwrap();
            std::os::unix::fs::symlink("dir/b", home.path("a")).unwrap();
        }),
    ]
}

fn sample() -> Home {
    let home = Home::bare();
    home.edit("a", "one\ntwo\nthree\n");
    home.edit("dir/b", "b\n");
    home.edit("dir/sub/c", "c\n");
    fs::write(home.path("dir/binary"), [0, 159, 146, 150, 0, 255]).unwrap();
    std::os::unix::fs::symlink("b", home.path("dir/link")).unwrap();
    fs::create_dir(home.path("empty")).unwrap();
    home.set_up()
}

#[test]
fn whatever_was_done_undo_takes_back_and_redo_does_again() {
    for (name, act) in gestures() {
        let home = sample();
        let before = home.files();
        act(&home);
        home.status();
        let after = home.files();
        assert_ne!(after, before, "{name} did nothing");
        home.ok(&["undo"]);
        assert_eq!(home.files(), before, "undo of {name}");
        home.ok(&["redo"]);
        assert_eq!(home.files(), after, "redo of {name}");
        home.ok(&["undo"]);
        assert_eq!(home.files(), before, "second undo of {name}");
        home.assert_intact();
    }
}

#[test]
fn any_operation_can_be_undone_and_the_later_ones_stay() {
    let home = Home::new();
    let ops = ["a", "b", "c", "d"].map(|name| home.write(name, "text\n"));
    home.ok(&["undo", &ops[1]]);
    home.ok(&["undo", &ops[2][28..]]).says("undone");
    let names: Vec<_> = home.files().into_keys().collect();
    assert_eq!(names, ["a", "d"]);
    home.run(&["undo", &ops[1]]).exits(5).says("undone already");
    home.ok(&["redo", &ops[1]]);
    home.ok(&["redo", "@4"]);
    assert_eq!(home.files().len(), 4);
    home.run(&["redo", &ops[1]]).exits(5).says("not undone");
    home.run(&["undo", "@1"]).exits(5).says("can be undone");
    home.run(&["undo", "@99"]).exits(4);
    home.run(&["undo", "01234567"]).exits(4).says("choir log");
    home.assert_intact();
}

#[test]
fn a_bare_undo_goes_back_step_by_step_and_ends() {
    let home = Home::new();
    home.run(&["undo"]).exits(4).says("nothing of yours to undo");
    home.run(&["redo"]).exits(4).says("nothing to redo");
    let mut past: Vec<BTreeMap<String, Found>> = Vec::new();
    for text in ["1\n", "2\n", "3\n"] {
        past.push(home.files());
        home.write("a", text);
    }
    for expected in past.iter().rev() {
        home.ok(&["undo"]);
        assert_eq!(home.files(), *expected);
    }
    home.run(&["undo"]).exits(4);
    for expected in ["1\n", "2\n", "3\n"] {
        home.ok(&["redo"]);
        assert_eq!(home.read("a"), expected);
    }
    home.run(&["redo"]).exits(4);
}

#[test]
fn later_edits_of_other_lines_are_spared() {
    let home = Home::over(&[("poem", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")]);
    let op = home.write("poem", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    home.edit("poem", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    home.ok(&["undo", &op]);
    assert_eq!(home.read("poem"), "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    home.ok(&["redo"]);
    assert_eq!(home.read("poem"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    home.assert_intact();
}

#[test]
fn an_edit_that_nobody_recorded_yet_is_recorded_before_it_could_be_lost() {
    let home = Home::new();
    let op = home.write("a", "mine\n");
    home.edit("a", "mine\nand outside\n");
    home.edit("b", "new outside\n");
    home.run(&["undo", &op]).exits(3);
    assert_eq!((home.read("a"), home.read("b")), ("mine\nand outside\n".into(), "new outside\n".into()));
    home.ok(&["undo", &op, "--take", "a"]);
    assert!(!home.has("a"));
    home.ok(&["redo"]);
    assert_eq!(home.read("a"), "mine\nand outside\n");
}

#[test]
fn a_preview_shows_the_lines_and_changes_nothing() {
    let home = Home::new();
    home.write("a", "one\n");
    home.write("a", "two\n");
    home.ok(&["undo"]);
    let standing = home.standing();
    home.ok(&["undo", "--preview"]).says("would undo").says("-one");
    home.ok(&["redo", "--preview"]).says("would redo").says("+two");
    home.ok(&["restore", "3", "--preview"]).says("would restore").says("+two");
    let preview = home.json(&["undo", "@2", "--preview"]);
    assert_eq!((&preview["preview"], &preview["first"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(home.standing(), standing);
}

#[test]
fn restore_returns_to_a_moment_and_can_itself_be_undone() {
    let home = Home::over(&[("a", "one\n"), ("b", "b\n")]);
    let then = (home.head(), home.files());
    home.write("a", "two\n");
    home.ok(&["rm", "b"]);
    home.edit("c", "outside\n");
    home.status();
    let now = home.files();
    home.ok(&["restore", &then.0.to_string()]);
    assert_eq!(home.files(), then.1);
    home.ok(&["undo"]);
    assert_eq!(home.files(), now);
    home.run(&["restore", "999"]).exits(4).says("no event 999");
    assert_eq!(home.files(), now);
    // Today was kept as a checkpoint before anything was changed.
    home.ok(&["checkpoint", "list"]).says("Before restoring event");
    home.assert_intact();
}
