//! Edits found on disk: taken as they are, merged with the log's changes, or kept under another name.

use kernel::{Choice, Rejection};
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef};

use crate::shell::{Shell, all};
use crate::show::{makes, refuses};
use crate::steps::*;

/// After these steps in the log, these edits on disk lead to this tree.
#[track_caller]
fn captures(steps: &[Step], edits: &[Edit<'_>], texts: &[&str], tree: &str) {
    let (mut shell, _) = Shell::after(steps.iter().cloned());
    let before = shell.state();
    let op = shell.done(with(capture(edits), texts));
    assert_eq!(shell.tree(), tree);
    if shell.state() == before {
        return;
    }
    shell.undo(op).unwrap();
    assert_eq!(shell.state(), before, "a capture is undone like any operation");
    shell.redo(op).unwrap();
    assert_eq!(shell.tree(), tree);
}

fn beside(name: &str, lines: &str, extension: &str) -> String {
    let hash = ContentHash::of(&text(lines)).to_string();
    format!("{name}.conflict-{}{extension}", &hash[..8])
}

#[test]
fn what_only_the_disk_changed_is_taken_as_it_is() {
    captures(&[], &[("a", None, Some(file("1")))], &["1"], "a: 1");
    captures(&[write("a", "1")], &[("a", Some(file("1")), Some(file("2")))], &["2"], "a: 2");
    captures(&[write("a", "1")], &[("a", Some(file("1")), None)], &[], "");
    captures(&[write("a", "1")], &[("a", Some(file("1")), Some(link_node("b")))], &[], "a -> b");
    captures(&[], &[("d", None, Some(FileNode::Folder))], &[], "d/");
    let run = FileNode::file(ContentRef::of(&text("1")), 0o755);
    captures(&[write("a", "1")], &[("a", Some(file("1")), Some(run))], &[], "a: 1 (755)");
}

#[test]
fn what_is_no_change_makes_no_event() {
    makes([write("a", "1")], capture(&[("a", Some(file("1")), Some(file("1")))]), &[]);
    makes([write("a", "2")], capture(&[("a", Some(file("1")), Some(file("1")))]), &[]);
    makes([write("a", "2")], capture(&[("a", Some(file("1")), Some(file("2")))]), &[]);
    makes([write("a", "1"), delete("a")], capture(&[("a", Some(file("1")), None)]), &[]);
    makes([], capture(&[]), &[]);
}

#[test]
fn edits_of_different_lines_are_merged() {
    let steps = [write("a", "1|2|3|4"), write("a", "one|2|3|4")];
    captures(
        &steps,
        &[("a", Some(file("1|2|3|4")), Some(file("1|2|3|four")))],
        &["1|2|3|four"],
        "a: one|2|3|four",
    );
    let run = FileNode::file(ContentRef::of(&text("1|2|3|4")), 0o755);
    captures(&steps, &[("a", Some(file("1|2|3|4")), Some(run))], &[], "a: one|2|3|4 (755)");
}

#[test]
fn the_merge_asks_for_what_it_needs() {
    let (mut shell, _) = Shell::after([write("a", "1|2|3|4"), write("a", "one|2|3|4")]);
    let unseen = file("1|2|3|four");
    let edits = [("a", Some(file("1|2|3|4")), Some(unseen.clone()))];
    let missing = vec![unseen.content().unwrap().hash];
    assert_eq!(shell.run(capture(&edits)), Err(Rejection::Missing { hashes: missing }));
}

#[test]
fn a_clash_keeps_both_the_disk_at_the_path_and_the_log_beside() {
    let aside = |name: &str| {
        format!("{}: log; {name}: disk", beside(name.trim_end_matches(".md"), "log", &name[1..]))
    };
    for name in ["a.md", "b"] {
        let steps = [write(name, "1"), write(name, "log")];
        captures(&steps, &[(name, Some(file("1")), Some(file("disk")))], &["disk"], &sorted(&aside(name)));
    }
    // Both created a file.
    let both = sorted(&format!("{}: log; a: disk", beside("a", "log", "")));
    captures(&[write("a", "log")], &[("a", None, Some(file("disk")))], &["disk"], &both);
    // A leading dot does not start an extension.
    let hidden = sorted(&format!("{}: log; .env: disk", beside(".env", "log", "")));
    captures(&[write(".env", "log")], &[(".env", None, Some(file("disk")))], &["disk"], &hidden);
    captures(&[link("l", "x")], &[("l", None, Some(link_node("y")))], &[], "l -> y; l.conflict-other -> x");
}

fn sorted(tree: &str) -> String {
    let mut lines: Vec<&str> = tree.split("; ").collect();
    lines.sort_unstable_by_key(|line| line.split(": ").next());
    lines.join("; ")
}

#[test]
fn a_second_clash_finds_another_name() {
    let steps = [write("a", "log"), write(&beside("a", "log", ""), "mine")];
    let (mut shell, _) = Shell::after(steps);
    shell.done(with(capture(&[("a", None, Some(file("disk")))]), &["disk"]));
    let expected = format!("{0}: mine; {0}-2: log; a: disk", beside("a", "log", ""));
    assert_eq!(shell.tree(), sorted(&expected));

    let steps = [link("l", "x"), link("l.conflict-other", "z")];
    let tree = "l -> y; l.conflict-other -> z; l.conflict-other-2 -> x";
    captures(&steps, &[("l", None, Some(link_node("y")))], &[], tree);
}

#[test]
fn a_version_that_is_kept_beside_already_is_not_kept_twice() {
    let steps = [write("a", "log"), write(&beside("a", "log", ""), "log")];
    let tree = sorted(&format!("{}: log; a: disk", beside("a", "log", "")));
    captures(&steps, &[("a", None, Some(file("disk")))], &["disk"], &tree);
}

#[test]
fn a_long_name_is_shortened_rather_than_a_version_lost() {
    for name in ["n".repeat(255), format!("{}.md", "ü".repeat(126)), format!("x.{}", "e".repeat(253))] {
        let (mut shell, _) = Shell::after([write(&name, "log")]);
        shell.done(with(capture(&[(&name, None, Some(file("disk")))]), &["disk"]));
        assert_eq!(shell.bytes(&name), Some(text("disk").as_slice()));
        assert_eq!(shell.view.files.len(), 2, "both versions are there");
    }
}

#[test]
fn an_edit_wins_over_a_deletion() {
    let steps = [write("a", "1"), write("a", "log")];
    captures(&steps, &[("a", Some(file("1")), None)], &[], "a: log");
    let steps = [write("a", "1"), delete("a")];
    captures(&steps, &[("a", Some(file("1")), Some(file("disk")))], &["disk"], "a: disk");
}

#[test]
fn a_file_becomes_a_folder_and_a_folder_a_file() {
    let steps = [write("d", "1")];
    captures(&steps, &[("d", Some(file("1")), None), ("d/a", None, Some(file("2")))], &["2"], "d/a: 2");
    let steps = [write("d/a", "1"), write("d/e/b", "2")];
    let edits: [Edit<'_>; 3] =
        [("d", None, Some(file("3"))), ("d/a", Some(file("1")), None), ("d/e/b", Some(file("2")), None)];
    captures(&steps, &edits, &["3"], "d: 3");
}

#[test]
fn what_the_log_put_in_the_way_meanwhile_is_kept_beside() {
    // On disk d is a folder now; in the log the file d was edited.
    let steps = [write("d", "1"), write("d", "log")];
    let tree = sorted(&format!("d/a: 2; {}: log", beside("d", "log", "")));
    captures(&steps, &[("d", Some(file("1")), None), ("d/a", None, Some(file("2")))], &["2"], &tree);
    // On disk d is a file now; in the log something was put into the folder d.
    let steps = [write("d/a", "1"), write("d/new", "log"), write("d/e/new", "log")];
    let edits: [Edit<'_>; 2] = [("d", None, Some(file("3"))), ("d/a", Some(file("1")), None)];
    captures(&steps, &edits, &["3"], "d: 3; d.conflict-other/e/new: log; d.conflict-other/new: log");
    // The log made a file where the disk made a folder.
    let steps = [write("d", "log")];
    captures(&steps, &[("d/a/b", None, Some(file("2")))], &["2"], &tree_beside("d/a/b: 2"));
}

fn tree_beside(line: &str) -> String {
    sorted(&format!("{line}; {}: log", beside("d", "log", "")))
}

#[test]
fn a_repository_is_taken_from_the_disk_without_stray_files() {
    let steps = [write(".git/refs/main", "1"), write(".git/refs/main", "log"), write("a", "1")];
    captures(
        &steps,
        &[(".git/refs/main", Some(file("1")), Some(file("disk")))],
        &["disk"],
        ".git/refs/main: disk; a: 1",
    );
    captures(&steps, &[(".git/refs/main", Some(file("1")), None)], &[], "a: 1");
    captures(
        &[write(".git/HEAD", "log")],
        &[(".git", None, Some(file("gitdir")))],
        &["gitdir"],
        ".git: gitdir",
    );
    // In an ordinary text file these two edits would be merged.
    let steps = [write(".git/log", "1|2|3|4"), write(".git/log", "one|2|3|4")];
    let edits: [Edit<'_>; 1] = [(".git/log", Some(file("1|2|3|4")), Some(file("1|2|3|four")))];
    captures(&steps, &edits, &["1|2|3|four"], ".git/log: 1|2|3|four");
}

#[test]
fn what_moved_on_disk_is_a_move() {
    let edits: [Edit<'_>; 2] = [("a", Some(file("1")), None), ("d/b", None, Some(file("1")))];
    makes([write("a", "1")], capture(&edits), &["move a to d/b"]);
    // Of two candidates, the one with the same name.
    let edits: [Edit<'_>; 3] =
        [("x/a", Some(file("1")), None), ("y/b", Some(file("1")), None), ("z/b", None, Some(file("1")))];
    makes([write("x/a", "1"), write("y/b", "1")], capture(&edits), &["delete x/a", "move y/b to z/b"]);
    // All empty files are equal, so they show a move only if there is a single pair.
    let edits: [Edit<'_>; 2] = [("a", Some(file("")), None), ("b", None, Some(file("")))];
    makes([write("a", "")], capture(&edits), &["move a to b"]);
    let edits: [Edit<'_>; 3] =
        [("a", Some(file("")), None), ("b", Some(file("")), None), ("c", None, Some(file("")))];
    makes([write("a", ""), write("b", "")], capture(&edits), &["delete a", "delete b", "write c: "]);
    // Another mode is another file.
    let run = FileNode::file(ContentRef::of(&text("1")), 0o755);
    let edits: [Edit<'_>; 2] = [("a", Some(file("1")), None), ("b", None, Some(run))];
    makes([write("a", "1")], capture(&edits), &["delete a", "write b: 1 (755)"]);
}

#[test]
fn a_link_that_leaves_is_not_captured() {
    refuses(
        [],
        capture(&[("l", None, Some(link_node("/etc/passwd")))]),
        Rejection::LinkLeaves { path: path("l") },
    );
}

#[test]
fn an_undo_meets_a_later_capture_like_any_edit() {
    let (mut shell, ops) = Shell::after([write("a", "1|2|3"), write("a", "one|2|3")]);
    shell.done(with(capture(&[("a", Some(file("one|2|3")), Some(file("one|2|3|vim")))]), &["one|2|3|vim"]));
    shell.undo(ops[1]).unwrap();
    assert_eq!(shell.tree(), "a: 1|2|3|vim");
    shell.undo_with(ops[0], all(Choice::Take)).unwrap();
    assert_eq!(shell.tree(), "");
}
