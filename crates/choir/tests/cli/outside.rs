//! Edits made behind the log's back, noticed by the next command when nobody holds the computer.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::home::{Found, Home};

/// What one look recorded: how many edits, and the events of their one operation as `type path`.
fn recorded(home: &Home) -> (u64, Vec<String>) {
    let status = home.status();
    let Some(op) = status["captured_op"].as_str() else {
        return (status["captured"].as_u64().unwrap(), Vec::new());
    };
    let events = home.ok(&["log", "--all", "--json", "--op", op]).json_lines();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let told =
        |event: &serde_json::Value| format!("{} {}", word(&event["type"]), word(&event["payload"]["path"]));
    (status["captured"].as_u64().unwrap(), events.iter().map(told).collect())
}

#[test]
fn every_kind_of_edit_is_recorded_once() {
    let home = Home::over(&[("a", "one\n"), ("b", "two\n"), ("dir/c", "three\n")]);
    assert_eq!(recorded(&home), (0, Vec::new()));

    home.edit("a", "plain write\n");
    assert_eq!(recorded(&home), (1, vec!["file.write a".into()]));

    // As vim saves: a new file is renamed over the old one.
    home.edit("a.tmp", "renamed over\n");
    fs::rename(home.path("a.tmp"), home.path("a")).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.write a".into()]));

    // Same length, same second: only the content tells.
    home.edit("a", "RENAMED OVER\n");
    assert_eq!(recorded(&home), (1, vec!["file.write a".into()]));

    fs::remove_file(home.path("b")).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.delete b".into()]));

    fs::create_dir(home.path("empty")).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.write empty".into()]));

    fs::set_permissions(home.path("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.write a".into()]));

    symlink("dir/c", home.path("link")).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.write link".into()]));

    fs::remove_dir(home.path("empty")).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.delete empty".into()]));

    // Looking again finds nothing, and so does a touch without a change.
    home.edit("a", "RENAMED OVER\n");
    fs::set_permissions(home.path("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(recorded(&home), (0, Vec::new()));
    home.assert_intact();
}

#[test]
fn many_edits_are_one_operation_and_one_undo() {
    let home = Home::over(&[("a", "1\n"), ("b", "2\n"), ("dir/c", "3\n")]);
    let before = home.files();
    home.edit("a", "changed\n");
    fs::remove_file(home.path("b")).unwrap();
    fs::rename(home.path("dir"), home.path("folder")).unwrap();
    home.edit("new/deep/file", "n\n");
    let (edits, events) = recorded(&home);
    // A file that went from one place to another is one event of moving.
    assert_eq!(edits, 5);
    assert_eq!(events, ["file.delete b", "file.move ", "file.write a", "file.write new/deep/file"]);
    let after = home.files();
    home.ok(&["undo"]);
    assert_eq!(home.files(), before);
    home.ok(&["redo"]);
    assert_eq!(home.files(), after);
    home.assert_intact();
}

#[test]
fn every_command_that_changes_something_looks_first() {
    let home = Home::over(&[("a", "1\n")]);
    home.edit("a", "edited\n");
    home.write("b", "2\n");
    let names: Vec<_> =
        home.events().iter().map(|event| event["actor"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["cli", "capture", "capture", "cli"]);
    // A file that somebody deleted while nobody looked stays deleted.
    fs::remove_file(home.path("a")).unwrap();
    home.ok(&["mv", "b", "c"]);
    assert!(!home.has("a"));
    let last = home.events();
    assert_eq!(last[4]["type"], "file.delete");
    assert_eq!(last[4]["payload"]["path"], "a");
    home.assert_intact();
}

#[test]
fn a_write_over_an_unrecorded_edit_keeps_both_in_the_log() {
    let home = Home::over(&[("a", "1\n")]);
    home.edit("a", "typed in an editor\n");
    home.write("a", "written by choir\n");
    assert_eq!(home.read("a"), "written by choir\n");
    home.ok(&["undo"]);
    assert_eq!(home.read("a"), "typed in an editor\n");
}

#[test]
fn ignored_files_stay_out_unless_the_log_holds_them() {
    let home = Home::bare();
    home.edit(".gitignore", "*.log\ntarget/\n");
    home.edit(".choirignore", "!important.log\nprivate.txt\n");
    home.edit("important.log", "kept\n");
    home.edit("noise.log", "x\n");
    home.edit("private.txt", "x\n");
    home.edit("target/debug/out", "x\n");
    home.edit("sub/.gitignore", "local\n");
    home.edit("sub/local", "x\n");
    home.edit("local", "not ignored here\n");
    let home = home.set_up();
    let held = |home: &Home| {
        let diff = home.ok(&["diff", "0..", "--names", "--json"]).json_lines();
        diff.iter().map(|change| change["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected = [".choirignore", ".gitignore", "important.log", "local", "sub/.gitignore"];
    assert_eq!(held(&home), expected);

    home.write("wanted.log", "one\n");
    home.edit("wanted.log", "two\n");
    assert_eq!(recorded(&home), (1, vec!["file.write wanted.log".into()]));
    home.edit("noise.log", "y\n");
    assert_eq!(recorded(&home).0, 0);
    fs::remove_file(home.path("wanted.log")).unwrap();
    assert_eq!(recorded(&home), (1, vec!["file.delete wanted.log".into()]));
    assert_eq!(home.read("noise.log"), "y\n");
    home.assert_intact();
}

#[test]
fn bytes_links_modes_and_names_come_back_exactly() {
    let home = Home::bare();
    let binary: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    fs::write(home.path("binary"), &binary).unwrap();
    home.edit("no newline at the end", "x");
    home.edit("q'u\"o`te $HOME;*?", "x");
    home.edit("new\nline\ttab\x1b[31m", "x");
    home.edit("ünï/コード/🎼", "x");
    home.edit("-rf", "x");
    home.edit(&"n".repeat(255), "x");
    home.edit("script", "#!/bin/sh\n");
    home.edit("empty file", "");
    fs::set_permissions(home.path("script"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("nowhere", home.path("dangling")).unwrap();
    symlink("../binary", home.path("ünï/up")).unwrap();
    fs::create_dir_all(home.path("a/b/empty")).unwrap();
    let home = home.set_up();
    let before = home.files();
    assert_eq!(before.len(), 12);
    for (path, found) in &before {
        if let Found::File { .. } = found {
            home.ok(&["mv", "--", path, "elsewhere"]);
            home.ok(&["undo"]);
        }
    }
    fs::rename(home.path("binary"), home.path("../kept")).unwrap();
    for path in before.keys().filter(|path| *path != "binary") {
        let full = home.path(path);
        if full.is_dir() { fs::remove_dir(full).unwrap() } else { fs::remove_file(full).unwrap() }
    }
    home.status();
    home.ok(&["undo"]);
    assert_eq!(home.files(), before);
    // Nothing that stands in a name reaches a terminal as a control sequence.
    let shown = home.ok(&["log"]).out + &home.ok(&["show", "@2"]).out + &home.ok(&["search", "line"]).out;
    assert!(!shown.contains('\x1b') && !shown.contains('\t'), "{shown}");
    home.assert_intact();
}

#[test]
fn what_cannot_be_recorded_is_told_and_left_alone() {
    let home = Home::new();
    let odd = home.work.join(OsStr::from_bytes(b"bad\xffname"));
    fs::write(&odd, "x").unwrap();
    symlink("/etc/passwd", home.path("out")).unwrap();
    symlink("../../etc", home.path("up")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(home.path("pipe")).status().unwrap();
    assert!(made.success());
    home.edit(".CHOIR/x", "x");
    home.edit("good", "x");
    let status = home.status();
    assert_eq!(status["captured"], 1);
    let skipped: Vec<_> =
        status["skipped"].as_array().unwrap().iter().map(|s| s[0].as_str().unwrap()).collect();
    assert_eq!(skipped, [".CHOIR", "bad\u{fffd}name", "out", "pipe", "up"]);
    home.ok(&["status"]).says("not recorded").says("not UTF-8").says("leaves the workspace");
    home.ok(&["rm", "good"]);
    home.ok(&["restore", "1"]);
    assert!(odd.exists() && home.has("out") && home.has("pipe") && home.has(".CHOIR/x"));
    home.assert_intact();
}

#[test]
fn a_computers_own_folder_is_never_recorded_or_shown() {
    let home = Home::new();
    fs::write(home.state("note"), "mine").unwrap();
    assert_eq!(home.status()["captured"], 0);
    home.run(&["cat", ".choir/note"]).exits(2);
    home.ok(&["restore", "1"]);
    assert_eq!(fs::read_to_string(home.state("note")).unwrap(), "mine");
}
