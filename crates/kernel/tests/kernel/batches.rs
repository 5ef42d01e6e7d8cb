//! A change of more files than an append holds is one `file.batch`, whose list is content by hash.

use kernel::{Action, MAX_EVENTS};
use shared_types::Payload;
use shared_types::payload::file::{FileBatch, FileEvent, FileNode};
use shared_types::payload::system::SystemImport;
use shared_types::{ChainHash, ContentRef, Seq, UserId};

use crate::shell::Shell;
use crate::steps::*;

/// An import of `count` files with the same content.
fn arrival(count: usize) -> Step {
    let node = FileNode::file(ContentRef::of(&text("1")), FileNode::DEFAULT_MODE);
    let files = (0..count).map(|n| (path(&format!("d/{n}")), node.clone())).collect();
    let user = UserId::parse("ada").unwrap();
    let origin = SystemImport { user, seq: Seq(1), hash: ChainHash::default(), files: count as u64 };
    with(Action::ImportFiles { origin, files }.into(), &["1"])
}

#[test]
fn as_many_events_as_fit_stay_single() {
    let mut shell = Shell::new();
    let events = shell.run(arrival(MAX_EVENTS - 1)).unwrap();
    assert_eq!(events.len(), MAX_EVENTS);
    assert_eq!(shell.event(&events[1]), "write d/0: 1");
}

#[test]
fn one_more_and_all_changes_become_one_batch_with_its_list_in_the_decision() {
    let mut shell = Shell::new();
    shell.keep(text("1"));
    let op = shell.op();
    let command = shell.command(op, arrival(MAX_EVENTS).into_action());
    let decision = shell.decided(command).unwrap();
    let [_, batched] = &decision.events[..] else { panic!("an import and a batch were expected") };
    let Payload::File(FileEvent::Batch(batch)) = &batched.payload else { panic!("{batched:?}") };
    let [(hash, list)] = &decision.contents[..] else { panic!("only the list is new") };
    assert_eq!((batch.list, batch.count), (ContentRef::of(list), MAX_EVENTS as u64));
    assert_eq!(batch.list.hash, *hash);

    let mut read = FileBatch { changes: Vec::new(), ..batch.clone() };
    read.attach(list).unwrap();
    assert_eq!(read, *batch, "the list alone gives all changes back");
    assert!(read.attach(&list[..list.len() - 1]).is_ok(), "the last newline is not needed");
    assert!(read.attach(&list[..list.len() - 9]).is_err(), "a torn list is noticed");
    shell.append(decision);
    assert_eq!(shell.view.files.len(), MAX_EVENTS);
}

#[test]
fn batches_are_moved_deleted_undone_and_redone_like_any_operation() {
    let mut shell = Shell::new();
    let count = MAX_EVENTS * 2;
    let arrived = shell.done(arrival(count));
    let start = shell.state();
    let moved = shell.done(rename("d", "e"));
    assert_eq!(shell.events_of(moved).len(), 1);
    assert_eq!(shell.view.files.count_below(&path("e")) as usize, count);
    shell.done(write("e/0", "later"));
    let deleted = shell.done(delete("e"));
    assert!(shell.view.files.is_empty());

    shell.undo(deleted).unwrap();
    assert_eq!(shell.view.files.count_below(&path("e")) as usize, count);
    assert_eq!(shell.bytes("e/0"), Some(text("later").as_slice()));
    shell.redo(deleted).unwrap();
    shell.undo(deleted).unwrap();
    shell.undo(moved).expect_err("e/0 was edited since");
    shell.done(write("e/0", "1"));
    shell.undo(moved).unwrap();
    assert_eq!(shell.state(), start);
    shell.undo(arrived).unwrap();
    assert!(shell.view.files.is_empty());
    let live = shell.root();
    assert_eq!(shell.at(shell.view.seq()).root(), live);
}
