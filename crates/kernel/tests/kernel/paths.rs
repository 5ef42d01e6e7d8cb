//! Write, delete, move and import: the events of each, and everything it refuses.

use kernel::{Action, Base, Rejection};
use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemImport;
use shared_types::{ChainHash, ContentHash, PathError, Seq, UserId};

use crate::shell::Shell;
use crate::show::{makes, refuses};
use crate::steps::*;

fn hash(lines: &str) -> ContentHash {
    ContentHash::of(&text(lines))
}

#[test]
fn a_write_creates_or_replaces_the_node_at_a_path() {
    makes([], write("a", "1"), &["write a: 1"]);
    makes([], write("d/e/f", "1"), &["write d/e/f: 1"]);
    makes([], folder("d"), &["write d/"]);
    makes([], link("d/l", "../a"), &["write d/l -> ../a"]);
    makes([write("a", "1")], write("a", "2"), &["replace a: 2"]);
    makes([write("a", "1")], write_mode("a", "1", 0o755), &["replace a: 1 (755)"]);
    makes([folder("d")], write("d/a", "1"), &["write d/a: 1"]);
    makes([folder("d")], write("d", "1"), &["replace d: 1"]);
    makes([write("d/a", "1")], folder("d"), &["write d/"]);
    makes([write("a", "1")], link("a", "b"), &["replace a -> b"]);
    makes([link("a", "b")], folder("a"), &["replace a/"]);
}

#[test]
fn a_write_of_what_is_there_makes_no_event() {
    makes([write("a", "1")], write("a", "1"), &[]);
    makes([folder("d")], folder("d"), &[]);
    makes([link("l", "a")], link("l", "a"), &[]);
}

#[test]
fn a_write_keeps_the_tree_a_tree() {
    refuses([write("a", "1")], write("a/b", "1"), Rejection::NotAFolder { path: path("a") });
    refuses([write("a", "1")], write("a/b/c", "1"), Rejection::NotAFolder { path: path("a") });
    refuses([link("l", "d")], write("l/b", "1"), Rejection::NotAFolder { path: path("l") });
    refuses([write("d/a", "1")], write("d", "1"), Rejection::IsAFolder { path: path("d") });
    refuses([folder("d"), write("d/a", "1")], write("d", "1"), Rejection::IsAFolder { path: path("d") });
    refuses([write("d/e/a", "1")], link("d", "x"), Rejection::IsAFolder { path: path("d") });
    makes([write("d-e", "1"), write("d.e/a", "1")], write("d", "1"), &["write d: 1"]);
}

#[test]
fn a_link_may_not_leave() {
    for target in ["/etc/passwd", "..", "../x", "a/../../x", "", ".choir/state.sqlite", "x\0y"] {
        refuses([], link("l", target), Rejection::LinkLeaves { path: path("l") });
    }
    makes([], link("d/l", ".."), &["write d/l -> .."]);
    refuses([link("d/l", "..")], rename("d/l", "l"), Rejection::LinkLeaves { path: path("l") });
    refuses([link("d/e/l", "../../a")], rename("d/e", "e"), Rejection::LinkLeaves { path: path("e/l") });
}

#[test]
fn a_write_names_what_it_was_based_on() {
    let stale = |expected: Option<&str>, actual: Option<&str>| Rejection::Stale {
        path: path("a"),
        expected: expected.map(hash),
        actual: actual.map(hash),
    };
    let seen = |lines: &str| Base::Content(hash(lines));
    makes([write("a", "1")], write_on("a", "2", seen("1")), &["replace a: 2"]);
    makes([], write_on("a", "2", Base::Absent), &["write a: 2"]);
    refuses([write("a", "1")], write_on("a", "3", seen("2")), stale(Some("2"), Some("1")));
    refuses([write("a", "1")], write_on("a", "1", seen("2")), stale(Some("2"), Some("1")));
    refuses([write("a", "1")], write_on("a", "2", Base::Absent), stale(None, Some("1")));
    refuses([], write_on("a", "2", seen("1")), stale(Some("1"), None));
    refuses([folder("a")], write_on("a", "2", seen("1")), stale(Some("1"), None));
    refuses([folder("a")], write_on("a", "2", Base::Absent), stale(None, None));
    refuses([link("a", "b")], write_on("a", "2", Base::Absent), stale(None, None));
    refuses([write("a/b", "1")], write_on("a", "2", Base::Absent), stale(None, None));
    let made = Action::WriteFile { path: path("a"), node: FileNode::Folder, base: Base::Absent };
    makes([write("a/b", "1")], made, &["write a/"]);
}

#[test]
fn a_deletion_takes_a_file_or_a_folder_with_all_below_it() {
    makes([write("a", "1")], delete("a"), &["delete a"]);
    makes([link("l", "a")], delete("l"), &["delete l"]);
    makes([folder("d")], delete("d"), &["delete d"]);
    let tree = || [folder("d"), write("d/a", "1"), write("d/e/b", "2"), write("d-x", "3"), write("da", "4")];
    makes(tree(), delete("d"), &["delete d", "delete d/a", "delete d/e/b"]);
    makes(tree(), delete("d/e"), &["delete d/e/b"]);
    for nothing in ["x", "d/x", "d/a/x", "d/", "d/e/b/c"].into_iter().filter(|at| !at.ends_with('/')) {
        refuses(tree(), delete(nothing), Rejection::NotFound { path: path(nothing) });
    }
}

#[test]
fn a_move_takes_a_file_or_a_folder_to_a_free_place() {
    makes([write("a", "1")], rename("a", "b"), &["move a to b"]);
    makes([write("a", "1")], rename("a", "d/e/b"), &["move a to d/e/b"]);
    makes([write("a", "1")], rename("a", "a"), &[]);
    let tree = || [folder("d"), write("d/a", "1"), write("d/e/a", "1"), link("d/l", "a")];
    let events =
        ["delete d", "delete d/l", "move d/a to x/a", "move d/e/a to x/e/a", "write x/", "write x/l -> a"];
    makes(tree(), rename("d", "x"), &events);
    makes(tree(), rename("d/e", "e"), &["move d/e/a to e/a"]);
    makes([write_mode("a", "1", 0o755)], rename("a", "b"), &["move a to b"]);
}

#[test]
fn files_of_one_content_move_to_their_own_names() {
    let (mut shell, _) = Shell::after([write("d/p/x", "1"), write("d/q/x", "1"), write("d/q/y", "1")]);
    let events = shell.run(rename("d", "e")).unwrap();
    assert_eq!(shell.events(&events), ["move d/p/x to e/p/x", "move d/q/x to e/q/x", "move d/q/y to e/q/y"]);
}

#[test]
fn a_move_is_refused_where_it_has_no_sense() {
    let tree = || [write("d/a", "1"), write("b", "2"), folder("e")];
    refuses(tree(), rename("x", "y"), Rejection::NotFound { path: path("x") });
    refuses(tree(), rename("d", "d/e"), Rejection::IntoItself { path: path("d") });
    refuses(tree(), rename("b", "b/c"), Rejection::IntoItself { path: path("b") });
    for taken in ["d", "d/a", "e"] {
        refuses(tree(), rename("b", taken), Rejection::Occupied { path: path(taken) });
    }
    refuses(tree(), rename("d/a", "d"), Rejection::Occupied { path: path("d") });
    refuses(tree(), rename("d", "b/d"), Rejection::NotAFolder { path: path("b") });
    makes(tree(), rename("d", "dx"), &["move d/a to dx/a"]);

    let deep = "x".repeat(200) + "/";
    let long = deep.repeat(15) + "x";
    let reason = PathError::TooLong;
    refuses(
        [write(&format!("d/{}", "y".repeat(100)), "1")],
        rename("d", &long),
        Rejection::BadPath { reason },
    );
}

fn import(files: &[(&str, FileNode)]) -> Step {
    let origin = SystemImport {
        user: UserId::parse("ada").unwrap(),
        seq: Seq(9),
        hash: ChainHash::default(),
        files: files.len() as u64,
    };
    let files = files.iter().map(|(at, node)| (path(at), node.clone())).collect();
    Action::ImportFiles { origin, files }.into()
}

#[test]
fn an_import_brings_files_of_another_computer() {
    let arriving = import(&[("a", file("1")), ("d/b", file("2"))]);
    makes([], with(arriving.clone(), &["1", "2"]), &["import 2", "write a: 1", "write d/b: 2"]);
    makes([write("a", "1")], with(arriving.clone(), &["2"]), &["import 2", "write d/b: 2"]);
    makes([], import(&[]), &["import 0"]);
}

#[test]
fn an_import_is_refused_where_paths_are_taken() {
    let arriving = || import(&[("a", file("1")), ("b", file("2")), ("d/c", file("3"))]);
    let taken = |paths: &[&str]| Rejection::Taken { paths: paths.iter().map(|at| path(at)).collect() };
    refuses([write("a", "x"), write("b", "2"), folder("d/c")], arriving(), taken(&["a", "d/c"]));
    refuses([write("d", "x")], arriving(), Rejection::NotAFolder { path: path("d") });
    refuses([write("a/x", "x")], arriving(), Rejection::IsAFolder { path: path("a") });
    refuses([], import(&[("a", file("1")), ("a/b", file("2"))]), Rejection::NotAFolder { path: path("a") });
    refuses([], import(&[("l", link_node("../x"))]), Rejection::LinkLeaves { path: path("l") });
}

#[test]
fn the_envelope_of_an_event_is_that_of_its_command() {
    let mut shell = Shell::new();
    let op = shell.op();
    let mut command = shell.command(op, delete("a").into_action());
    shell.done(write("a/b", "1"));
    shell.done(write("a/c", "1"));
    command.origin.source = shared_types::Source::Agent;
    command.origin.taint = vec![shared_types::Taint::IMPORT];
    command.origin.cause = Some(shell.log[0].id);
    let decision = shell.decided(command.clone()).unwrap();
    let seqs: Vec<u64> = decision.events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, [3, 4]);
    assert_ne!(decision.events[0].id, decision.events[1].id);
    for event in &decision.events {
        assert_eq!((event.op, event.ts, event.source), (op, command.ts, command.origin.source));
        assert_eq!(
            (&event.actor, &event.taint, event.cause),
            (&command.origin.actor, &command.origin.taint, command.origin.cause)
        );
    }
    shell.append(decision);
}
