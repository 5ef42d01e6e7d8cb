//! Edits made outside the log, noticed by the next command when no process holds the computer.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::test_computer::{DiskEntry, TestComputer};

/// What one look recorded: how many edits, and the events of their one operation as `type path`.
fn recorded(computer: &TestComputer) -> (u64, Vec<String>) {
    let status = computer.status();
    let Some(op) = status["captured_op"].as_str() else {
        return (status["captured"].as_u64().unwrap(), Vec::new());
    };
    let events = computer.ok(&["log", "--all", "--json", "--op", op]).json_lines();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let told =
        |event: &serde_json::Value| format!("{} {}", word(&event["type"]), word(&event["payload"]["path"]));
    (status["captured"].as_u64().unwrap(), events.iter().map(told).collect())
}

#[test]
fn every_kind_of_edit_is_recorded_once() {
    let computer = TestComputer::over(&[("a", "one\n"), ("b", "two\n"), ("dir/c", "three\n")]);
    assert_eq!(recorded(&computer), (0, Vec::new()));

    computer.edit("a", "plain write\n");
    assert_eq!(recorded(&computer), (1, vec!["file.write a".into()]));

    // As vim saves: a new file is renamed over the old one.
    computer.edit("a.tmp", "renamed over\n");
    fs::rename(computer.path("a.tmp"), computer.path("a")).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.write a".into()]));

    // Same length, same second: only the content differs.
    computer.edit("a", "RENAMED OVER\n");
    assert_eq!(recorded(&computer), (1, vec!["file.write a".into()]));

    fs::remove_file(computer.path("b")).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.delete b".into()]));

    fs::create_dir(computer.path("empty")).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.write empty".into()]));

    fs::set_permissions(computer.path("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.write a".into()]));

    symlink("dir/c", computer.path("link")).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.write link".into()]));

    fs::remove_dir(computer.path("empty")).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.delete empty".into()]));

    // Looking again finds nothing, and so does a touch without a change.
    computer.edit("a", "RENAMED OVER\n");
    fs::set_permissions(computer.path("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(recorded(&computer), (0, Vec::new()));
    computer.assert_intact();
}

#[test]
fn many_edits_are_one_operation_and_one_undo() {
    let computer = TestComputer::over(&[("a", "1\n"), ("b", "2\n"), ("dir/c", "3\n")]);
    let before = computer.files();
    computer.edit("a", "changed\n");
    fs::remove_file(computer.path("b")).unwrap();
    fs::rename(computer.path("dir"), computer.path("folder")).unwrap();
    computer.edit("new/deep/file", "n\n");
    let (edits, events) = recorded(&computer);
    // A file that went from one place to another is one event of moving.
    assert_eq!(edits, 5);
    assert_eq!(events, ["file.delete b", "file.move ", "file.write a", "file.write new/deep/file"]);
    let after = computer.files();
    computer.ok(&["undo"]);
    assert_eq!(computer.files(), before);
    computer.ok(&["redo"]);
    assert_eq!(computer.files(), after);
    computer.assert_intact();
}

#[test]
fn every_command_that_changes_something_looks_first() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    computer.edit("a", "edited\n");
    computer.write("b", "2\n");
    let names: Vec<_> =
        computer.events().iter().map(|event| event["actor"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["cli", "capture", "capture", "cli"]);
    // A file that was deleted while no process held the computer stays deleted.
    fs::remove_file(computer.path("a")).unwrap();
    computer.ok(&["mv", "b", "c"]);
    assert!(!computer.has("a"));
    let last = computer.events();
    assert_eq!(last[4]["type"], "file.delete");
    assert_eq!(last[4]["payload"]["path"], "a");
    computer.assert_intact();
}

#[test]
fn a_write_over_an_unrecorded_edit_keeps_both_in_the_log() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    computer.edit("a", "typed in an editor\n");
    computer.write("a", "written by choir\n");
    assert_eq!(computer.read("a"), "written by choir\n");
    computer.ok(&["undo"]);
    assert_eq!(computer.read("a"), "typed in an editor\n");
}

#[test]
fn ignored_files_stay_out_unless_the_log_holds_them() {
    let computer = TestComputer::bare();
    computer.edit(".gitignore", "*.log\ntarget/\n");
    computer.edit(".choirignore", "!important.log\nprivate.txt\n");
    computer.edit("important.log", "kept\n");
    computer.edit("noise.log", "x\n");
    computer.edit("private.txt", "x\n");
    computer.edit("target/debug/out", "x\n");
    computer.edit("sub/.gitignore", "local\n");
    computer.edit("sub/local", "x\n");
    computer.edit("local", "not ignored here\n");
    let computer = computer.set_up();
    let held = |computer: &TestComputer| {
        let diff = computer.ok(&["diff", "0..", "--names", "--json"]).json_lines();
        diff.iter().map(|change| change["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected = [".choirignore", ".gitignore", "important.log", "local", "sub/.gitignore"];
    assert_eq!(held(&computer), expected);

    computer.write("wanted.log", "one\n");
    computer.edit("wanted.log", "two\n");
    assert_eq!(recorded(&computer), (1, vec!["file.write wanted.log".into()]));
    computer.edit("noise.log", "y\n");
    assert_eq!(recorded(&computer).0, 0);
    fs::remove_file(computer.path("wanted.log")).unwrap();
    assert_eq!(recorded(&computer), (1, vec!["file.delete wanted.log".into()]));
    assert_eq!(computer.read("noise.log"), "y\n");
    computer.assert_intact();
}

#[test]
fn bytes_links_modes_and_names_come_back_exactly() {
    let computer = TestComputer::bare();
    let binary: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    fs::write(computer.path("binary"), &binary).unwrap();
    computer.edit("no newline at the end", "x");
    computer.edit("q'u\"o`te $HOME;*?", "x");
    computer.edit("new\nline\ttab\x1b[31m", "x");
    computer.edit("ünï/コード/🎼", "x");
    computer.edit("-rf", "x");
    computer.edit(&"n".repeat(255), "x");
    computer.edit("script", "#!/bin/sh\n");
    computer.edit("empty file", "");
    fs::set_permissions(computer.path("script"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("nowhere", computer.path("dangling")).unwrap();
    symlink("../binary", computer.path("ünï/up")).unwrap();
    fs::create_dir_all(computer.path("a/b/empty")).unwrap();
    let computer = computer.set_up();
    let before = computer.files();
    assert_eq!(before.len(), 12);
    for (path, found) in &before {
        if let DiskEntry::File { .. } = found {
            computer.ok(&["mv", "--", path, "elsewhere"]);
            computer.ok(&["undo"]);
        }
    }
    fs::rename(computer.path("binary"), computer.path("../kept")).unwrap();
    for path in before.keys().filter(|path| *path != "binary") {
        let full = computer.path(path);
        if full.is_dir() { fs::remove_dir(full).unwrap() } else { fs::remove_file(full).unwrap() }
    }
    computer.status();
    computer.ok(&["undo"]);
    assert_eq!(computer.files(), before);
    // Control sequences in a file name do not reach the terminal.
    let shown =
        computer.ok(&["log"]).out + &computer.ok(&["show", "@2"]).out + &computer.ok(&["search", "line"]).out;
    assert!(!shown.contains('\x1b') && !shown.contains('\t'), "{shown}");
    computer.assert_intact();
}

#[test]
fn what_cannot_be_recorded_is_told_and_left_alone() {
    let computer = TestComputer::new();
    let odd = computer.work.join(OsStr::from_bytes(b"bad\xffname"));
    fs::write(&odd, "x").unwrap();
    symlink("/etc/passwd", computer.path("out")).unwrap();
    symlink("../../etc", computer.path("up")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(computer.path("pipe")).status().unwrap();
    assert!(made.success());
    computer.edit(".CHOIR/x", "x");
    computer.edit("good", "x");
    let status = computer.status();
    assert_eq!(status["captured"], 1);
    let skipped: Vec<_> =
        status["skipped"].as_array().unwrap().iter().map(|s| s[0].as_str().unwrap()).collect();
    assert_eq!(skipped, [".CHOIR", "bad\u{fffd}name", "out", "pipe", "up"]);
    computer.ok(&["status"]).says("not recorded").says("not UTF-8").says("leaves the workspace");
    computer.ok(&["rm", "good"]);
    computer.ok(&["restore", "1"]);
    assert!(odd.exists() && computer.has("out") && computer.has("pipe") && computer.has(".CHOIR/x"));
    computer.assert_intact();
}

#[test]
fn a_computers_own_folder_is_never_recorded_or_shown() {
    let computer = TestComputer::new();
    fs::write(computer.state("note"), "mine").unwrap();
    assert_eq!(computer.status()["captured"], 0);
    computer.run(&["cat", ".choir/note"]).exits(2);
    computer.ok(&["restore", "1"]);
    assert_eq!(fs::read_to_string(computer.state("note")).unwrap(), "mine");
}
