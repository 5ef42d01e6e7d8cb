//! Read models that are gone, of another format, or garbage; a log that was put back from an older backup. All of it
//! is found out and rebuilt, and edits made meanwhile stay.

use std::fs;

use rusqlite::Connection;

use crate::computer::{Computer, at};

/// A computer with some history, and its read models in one file.
fn settled() -> Computer {
    let computer = Computer::new();
    computer.write("kept", "kept\n");
    computer.write("x", "one\n");
    computer.write("x", "two\n");
    computer.write("d/gone", "gone\n");
    computer.delete("d/gone");
    computer.rename("kept", "d/kept");
    computer.settle();
    computer
}

/// Stops, damages the read models, lets the person edit, starts again.
#[track_caller]
fn check(
    damage: &dyn Fn(&Computer),
    edit: &dyn Fn(&Computer),
    expected: &[(&str, Option<&str>)],
) -> Computer {
    let mut computer = settled();
    let rows = computer.rows();
    computer.stop();
    damage(&computer);
    edit(&computer);
    computer.start();
    computer.settle();
    computer.assert_faithful();
    for (path, text) in expected {
        assert_eq!(computer.read(path).as_deref(), *text, "{path}");
    }
    if expected.is_empty() {
        assert_eq!(computer.rows(), rows, "another history than before");
    }
    computer
}

fn views_file(computer: &Computer) -> std::path::PathBuf {
    computer.state().join(projector::Views::FILE)
}

fn deleted(computer: &Computer) {
    computer.forget_views();
}

fn of_another_format(computer: &Computer) {
    let conn = Connection::open(views_file(computer)).unwrap();
    conn.execute_batch("PRAGMA user_version = 1; DROP TABLE files; CREATE TABLE files (x);").unwrap();
}

fn garbage(computer: &Computer) {
    computer.forget_views();
    fs::write(views_file(computer), "this is no database at all\n".repeat(500)).unwrap();
}

fn empty(computer: &Computer) {
    computer.forget_views();
    fs::write(views_file(computer), "").unwrap();
}

fn broken_inside(computer: &Computer) {
    let mut bytes = fs::read(views_file(computer)).unwrap();
    let middle = bytes.len() / 2;
    bytes[4096..4096 + 64].fill(0xa5);
    bytes[middle..].fill(0xa5);
    computer.forget_views();
    fs::write(views_file(computer), bytes).unwrap();
}

#[test]
fn lost_read_models_are_computed_again() {
    for damage in [deleted, of_another_format, garbage, empty, broken_inside] {
        check(&damage, &|_| (), &[]);
    }
}

#[test]
fn an_edit_made_meanwhile_is_kept() {
    for damage in [deleted, of_another_format, garbage] {
        let edit = |computer: &Computer| {
            computer.edit("x", "the person's\n");
            computer.edit("new", "new\n");
        };
        let computer = check(
            &damage,
            &edit,
            &[("x", Some("the person's\n")), ("new", Some("new\n")), ("d/kept", Some("kept\n"))],
        );
        assert_eq!(computer.logged("x").as_deref(), Some("the person's\n"));
        assert_eq!(computer.views().recent(1).unwrap()[0].actor, "capture");
    }
}

#[test]
fn what_is_missing_or_of_an_earlier_time_is_written() {
    let edit = |computer: &Computer| {
        fs::remove_file(computer.on_disk("d/kept")).unwrap();
        computer.edit("x", "one\n");
    };
    check(&deleted, &edit, &[("d/kept", Some("kept\n")), ("x", Some("two\n"))]);
}

#[test]
fn what_the_log_holds_for_another_path_is_an_edit_all_the_same() {
    let edit = |computer: &Computer| computer.edit("x", "gone\n");
    check(&deleted, &edit, &[("x", Some("gone\n"))]);
}

#[test]
fn shapes_that_changed_meanwhile_are_captured() {
    let edit = |computer: &Computer| {
        fs::remove_dir_all(computer.on_disk("d")).unwrap();
        computer.edit("d", "a file where the log has a folder\n");
        fs::remove_file(computer.on_disk("x")).unwrap();
        computer.edit("x/y", "below what the log has as a file\n");
    };
    let computer = check(
        &deleted,
        &edit,
        &[
            ("d", Some("a file where the log has a folder\n")),
            ("x/y", Some("below what the log has as a file\n")),
        ],
    );
    assert!(computer.holds(b"kept\n") && computer.holds(b"two\n"));
}

#[test]
fn a_folder_of_files_becomes_one_operation() {
    let mut computer = Computer::new();
    computer.stop();
    computer.forget_views();
    for number in 0..30 {
        computer.edit(&format!("folder/{number}"), format!("{number}\n"));
    }
    computer.start();
    computer.settle();
    computer.assert_faithful();
    let rows = computer.views().recent(10).unwrap();
    assert_eq!((rows.len(), rows[0].files), (1, 30));
}

/// Keeps the log's own files as they are now.
fn back_up(computer: &mut Computer) -> Vec<u8> {
    computer.stop();
    let bytes = fs::read(computer.state().join("state.sqlite")).unwrap();
    computer.start();
    bytes
}

/// Puts an older log in place of today's.
fn put_back(computer: &mut Computer, bytes: &[u8]) {
    computer.stop();
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(computer.state().join(format!("state.sqlite{suffix}")));
    }
    fs::write(computer.state().join("state.sqlite"), bytes).unwrap();
    computer.start();
}

#[test]
fn a_log_that_is_shorter_than_its_projection_takes_the_disk_as_edits() {
    let mut computer = settled();
    let backup = back_up(&mut computer);
    computer.write("x", "after the backup\n");
    computer.write("late", "after the backup too\n");
    computer.settle();
    let disk = computer.disk();
    put_back(&mut computer, &backup);
    computer.settle();
    computer.assert_faithful();
    assert_eq!(computer.disk(), disk, "what was on disk is there still");
    assert_eq!(computer.logged("x").as_deref(), Some("after the backup\n"));
    assert_eq!(computer.logged("late").as_deref(), Some("after the backup too\n"));
}

#[test]
fn another_history_of_the_same_length_is_noticed() {
    let mut computer = settled();
    let backup = back_up(&mut computer);
    computer.write("x", "one history\n");
    computer.write("late", "only in one history\n");
    computer.settle();
    let views = computer.copy_views();
    put_back(&mut computer, &backup);
    computer.write("y", "another history\n");
    computer.write("y", "another history, longer\n");
    computer.write("z", "longer still\n");
    // The read models of the one beside the log of the other, which has more events.
    computer.stop();
    computer.put_back_views(&views);
    computer.start();
    computer.settle();
    computer.assert_faithful();
    assert_eq!(computer.read("x").as_deref(), Some("one history\n"), "the disk's text is an edit now");
    assert_eq!(computer.read("y").as_deref(), Some("another history, longer\n"));
    assert!(computer.nodes().contains_key(&at("late")), "so is the file that only the disk has");
}

#[test]
fn readers_beside_the_projector_neither_change_nor_replace_anything() {
    let mut computer = settled();
    let views = projector::Views::open_read_only(&computer.state()).unwrap();
    assert_eq!(views.search("two", 10).unwrap().len(), 1);
    computer.write("x", "three\n");
    computer.settle();
    assert_eq!(views.search("three", 10).unwrap().len(), 1, "they see what is new");
    drop(views);
    computer.stop();
    let views = projector::Views::open_read_only(&computer.state()).unwrap();
    assert_eq!(views.search("three", 10).unwrap().len(), 1, "also without a process that updates them");
    let other = Computer::new();
    fs::remove_file(views_file(&other)).unwrap();
    assert!(projector::Views::open_read_only(&other.state()).is_err());
    assert!(!views_file(&other).exists(), "a reader makes no read models");
}
