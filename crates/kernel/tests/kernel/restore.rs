//! Restore: files, windows, settings and notes return to a seq; everything else stays.

use std::sync::Arc;

use kernel::{Action, MAX_EVENTS, Rejection};
use serde_json::json;
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::payload::file::FileNode;
use shared_types::{ContentRef, Seq};

use crate::shell::{Shell, reversible_roots};
use crate::steps::*;

fn busy() -> Shell {
    let request = Action::RequestCheckpoint {
        effect: effect_id(1),
        reason: CheckpointReason::Restore,
        message: "before a restore".into(),
    };
    let (mut shell, ops) = Shell::after([
        Action::CreateUser { name: "Ada".into() }.into(),
        write("a", "1"),
        folder("d"),
        write("d/b", "2"),
        link("l", "a"),
        window(1, "A"),
        set("zero", json!(0.0)),
        note(1, "Tone"),
        start(1, "Plans"),
        request.into(),
        write("a", "one"),
        rename("d", "e"),
        delete("l"),
        write("l/x", "1"),
        write_mode("a", "one", 0o755),
        window(1, "B"),
        window(2, "C"),
        close(1),
        clear("zero"),
        set("zero", json!(-0.0)),
        set("k", json!({"a": 1.25})),
        forget_note(1),
        start(2, "More"),
        OldEvent::RenameUser("Bo".into()).into(),
    ]);
    shell.undo(ops[10]).unwrap();
    shell.undo(ops[11]).unwrap();
    shell
}

fn others(shell: &mut Shell) -> Vec<String> {
    let untouched = ["conversations", "undone", "pending"];
    let roots = shell.view.roots().into_iter().filter(|(name, _)| untouched.contains(name));
    let owner = shell.view.computer.owner.clone().unwrap_or_default();
    roots.map(|(name, root)| format!("{name} {root}")).chain([owner.into()]).collect()
}

#[test]
fn a_restore_leads_to_any_earlier_moment_and_can_be_undone() {
    let start = busy();
    for seq in 0..=start.view.seq().0 {
        let mut shell = start.clone();
        let (before, untouched) = (shell.state(), others(&mut shell));
        let expected = reversible_roots(&mut shell.at(Seq(seq)));
        let events = shell.restore(Seq(seq)).unwrap();
        assert_eq!(shell.state(), expected, "restore to {seq}");
        assert_eq!(others(&mut shell), untouched, "restore to {seq}");
        if expected == before {
            assert!(events.is_empty());
            continue;
        }
        assert_eq!(shell.event(&events[0]), format!("restore {seq}"));
        let op = events[0].op;
        assert!(events.iter().all(|event| event.op == op));
        shell.undo(op).unwrap();
        assert_eq!(shell.state(), before, "the restore to {seq} is undone");
        shell.redo(op).unwrap();
        assert_eq!(shell.state(), expected, "and redone");
        let live = shell.root();
        assert_eq!(shell.at(shell.view.seq()).root(), live);
    }
}

#[test]
fn a_restore_to_now_does_nothing() {
    let mut shell = busy();
    let now = shell.view.seq();
    assert_eq!(shell.restore(now), Ok(Vec::new()));
}

#[test]
fn a_restore_to_what_is_not_yet_is_refused() {
    let mut shell = busy();
    let next = shell.view.seq().next();
    assert_eq!(shell.restore(next), Err(Rejection::NotYet { seq: next }));
    let target = Arc::new(shell.at(Seq(3)));
    let wrong = Action::Restore { seq: Seq(4), target };
    assert_eq!(shell.run(wrong), Err(Rejection::NotYet { seq: Seq(4) }), "the view is of another moment");
}

#[test]
fn a_restore_spares_edits_when_it_is_undone() {
    let (mut shell, _) = Shell::after([write("a", "1|2|3"), write("a", "one|2|3")]);
    let op = shell.restore(Seq(1)).unwrap()[0].op;
    shell.done(write("a", "1|2|3|4"));
    shell.undo(op).unwrap();
    assert_eq!(shell.tree(), "a: one|2|3|4");
}

#[test]
fn a_restore_of_many_files_is_a_batch() {
    let (mut shell, _) = Shell::after([set("k", 1)]);
    let node = FileNode::file(ContentRef::of(&text("1")), FileNode::DEFAULT_MODE);
    shell.keep(text("1"));
    let count = MAX_EVENTS + 1;
    let edits: Vec<String> = (0..count).map(|n| format!("d/{n}")).collect();
    let edits: Vec<Edit<'_>> = edits.iter().map(|at| (at.as_str(), None, Some(node.clone()))).collect();
    shell.done(capture(&edits));
    assert_eq!(shell.view.seq(), Seq(2));
    let events = shell.restore(Seq(1)).unwrap();
    assert_eq!(shell.events(&events), ["restore 1".to_owned(), format!("batch of {count}")]);
    assert!(shell.view.files.is_empty());
    shell.restore(Seq(2)).unwrap();
    assert_eq!(shell.view.files.len(), count);
}

#[test]
fn a_restore_leads_into_the_middle_of_an_operation() {
    // The file z moves below a former file, and a file takes the place of the folder d: every single step is a valid
    // tree.
    let (mut shell, _) = Shell::after([write("a", "1"), write("z", "2"), write("d/x", "3"), write("q", "4")]);
    let from = shell.view.seq();
    shell.done(capture(&[
        ("a", Some(file("1")), Some(FileNode::Folder)),
        ("z", Some(file("2")), None),
        ("a/b", None, Some(file("2"))),
        ("d/x", Some(file("3")), None),
        ("y", None, Some(file("3"))),
        ("q", Some(file("4")), None),
        ("d", None, Some(file("4"))),
    ]));
    assert_eq!(shell.tree(), "a/; a/b: 2; d: 4; y: 3");
    for seq in from.0..=shell.view.seq().0 {
        let mut shell = shell.clone();
        let expected = reversible_roots(&mut shell.at(Seq(seq)));
        shell.restore(Seq(seq)).unwrap();
        assert_eq!(shell.state(), expected, "restore to {seq}");
    }
}
