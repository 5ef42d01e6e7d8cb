//! Blocked writes: links, ignored files, folders with other files in them, missing bytes. Nothing is written through a
//! link, the other paths do not wait, and blocked writes are retried.

use std::fs;
use std::os::unix::fs::symlink;

use shared_types::ContentHash;
use shared_types::payload::file::FileNode;

use crate::computer::{Computer, at};

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_link_in_the_place_of_a_folder_is_captured_and_never_followed() {
    let computer = Computer::new();
    computer.write("d/x", "in the folder\n");
    computer.write("other/y", "elsewhere\n");
    computer.settle();
    fs::remove_dir_all(computer.on_disk("d")).unwrap();
    symlink("other", computer.on_disk("d")).unwrap();
    computer.write("d/x", "newer, for the folder\n");
    computer.write("d/z", "new, for the folder\n");
    computer.catch_up();
    computer.settle();
    computer.assert_faithful();
    assert_eq!(names(&computer.on_disk("other")), ["y"], "something was written through the link");
    assert_eq!(computer.nodes()[&at("d")], FileNode::Symlink { target: "other".into() });
    for text in ["newer, for the folder\n", "new, for the folder\n"] {
        assert!(computer.holds(text.as_bytes()), "{text:?} is gone");
    }
}

#[test]
fn a_link_that_leaves_blocks_only_what_is_below_it() {
    let mut computer = Computer::new();
    computer.write("d/x", "in the folder\n");
    computer.settle();
    let elsewhere = computer.state().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("x"), "not ours\n").unwrap();
    fs::remove_dir_all(computer.on_disk("d")).unwrap();
    symlink(&elsewhere, computer.on_disk("d")).unwrap();
    computer.write("d/x", "newer, for the folder\n");
    computer.write("d/new", "also\n");
    computer.write("free", "not below the link\n");

    for _ in 0..2 {
        let done = computer.catch_up();
        let blocked: Vec<_> = done.blocked.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(blocked, ["d/new", "d/x"], "said every time");
        assert!(done.blocked[0].1.contains("symbolic link"), "{:?}", done.blocked);
        assert_eq!(computer.projector().lag().unwrap().events(), 0);
        assert_eq!(computer.read("free").as_deref(), Some("not below the link\n"));
        assert_eq!(names(&elsewhere), ["x"]);
        assert_eq!(fs::read_to_string(elsewhere.join("x")).unwrap(), "not ours\n");
        computer.restart();
    }
    // The log may change its mind, and the person may clear the way.
    computer.write("d/x", "the newest\n");
    computer.delete("d/new");
    assert_eq!(computer.catch_up().blocked.len(), 1);
    fs::remove_file(computer.on_disk("d")).unwrap();
    computer.settle();
    assert_eq!(computer.catch_up().blocked, []);
    computer.assert_faithful();
    assert_eq!(computer.read("d/x").as_deref(), Some("the newest\n"));
}

#[test]
fn a_link_that_leaves_is_not_replaced_by_a_file_of_its_name() {
    let computer = Computer::new();
    let elsewhere = computer.state().join("elsewhere");
    fs::write(&elsewhere, "not ours\n").unwrap();
    symlink(&elsewhere, computer.on_disk("x")).unwrap();
    computer.write("x", "ours\n");
    computer.write("y", "free\n");
    let done = computer.catch_up();
    assert_eq!(done.blocked.len(), 1);
    assert_eq!(computer.read("y").as_deref(), Some("free\n"));
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "not ours\n");
    assert!(computer.on_disk("x").is_symlink());
    computer.delete("x");
    assert_eq!(computer.catch_up().blocked, [], "it is wanted no more");
    assert!(computer.on_disk("x").is_symlink(), "what is not ours stays");
}

#[test]
fn an_ignored_file_in_the_way_is_kept_before_the_log_writes_there() {
    let computer = Computer::new();
    computer.edit(".gitignore", "build/\n.env\n");
    computer.edit(".env", "their=secret\n");
    computer.edit("build/out", "built by hand\n");
    computer.settle();
    assert_eq!(computer.nodes().len(), 1, "ignored");
    computer.write(".env", "ours=1\n");
    computer.write("build/out", "written by an agent\n");
    computer.write("free", "free\n");
    assert_eq!(computer.catch_up().blocked, []);
    computer.settle();
    assert_eq!(computer.read("free").as_deref(), Some("free\n"));
    for text in ["their=secret\n", "ours=1\n", "built by hand\n", "written by an agent\n"] {
        let here =
            computer.disk().into_keys().any(|path| computer.read(path.as_str()).as_deref() == Some(text));
        assert!(here, "{text:?} is not on disk");
    }
}

#[test]
fn a_file_takes_the_place_of_a_folder_only_when_nothing_of_others_is_in_it() {
    let computer = Computer::new();
    computer.edit(".gitignore", "*.o\n");
    computer.write("d/x", "ours\n");
    computer.settle();
    computer.edit("d/cache.o", "ignored, but another program's\n");
    computer.delete("d");
    computer.write("d", "a file now\n");
    computer.write("free", "free\n");
    computer.catch_up();
    assert_eq!(computer.read("d/cache.o").as_deref(), Some("ignored, but another program's\n"));
    assert_eq!(computer.read("free").as_deref(), Some("free\n"));
    assert!(computer.holds(b"a file now\n"));
}

#[test]
fn a_file_whose_bytes_are_gone_is_named_and_holds_up_nothing() {
    let mut computer = Computer::new();
    computer.write("kept", "kept\n");
    computer.settle();
    computer.write("secret", "a pasted key\n");
    computer.write("kept", "kept, newer\n");
    computer.log_purge(&[ContentHash::of(b"a pasted key\n")]);
    for _ in 0..2 {
        let done = computer.catch_up();
        assert_eq!(done.unavailable, [at("secret")], "said every time");
        assert_eq!(computer.read("kept").as_deref(), Some("kept, newer\n"));
        assert_eq!(computer.projector().lag().unwrap().events(), 0);
        assert_eq!(computer.capture().op, None, "that it is not there is no deletion");
        computer.restart();
    }
    // The same bytes come back.
    computer.write("again", "a pasted key\n");
    assert_eq!(computer.catch_up().unavailable, []);
    assert_eq!(computer.read("secret").as_deref(), Some("a pasted key\n"));
    computer.assert_faithful();
}

#[test]
fn a_purged_file_that_is_edited_on_disk_is_captured() {
    let computer = Computer::new();
    computer.write("x", "one\n");
    computer.settle();
    computer.write("x", "two, purged before it reached the disk\n");
    computer.log_purge(&[ContentHash::of(b"two, purged before it reached the disk\n")]);
    assert_eq!(computer.catch_up().unavailable, [at("x")]);
    computer.edit("x", "three\n");
    computer.settle();
    assert_eq!(computer.logged("x").as_deref(), Some("three\n"));
    assert_eq!(computer.read("x").as_deref(), Some("three\n"));
}

#[test]
fn special_things_are_listed_and_stay() {
    let computer = Computer::new();
    let made = std::process::Command::new("mkfifo").arg(computer.on_disk("pipe")).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no mkfifo");
        return;
    }
    computer.edit("x", "x\n");
    let captured = computer.capture();
    assert_eq!(captured.edits, 1);
    assert_eq!(captured.skipped, [("pipe".into(), projector::scan::SkipReason::Special)]);
    computer.catch_up();
    assert!(computer.on_disk("pipe").exists());
}
