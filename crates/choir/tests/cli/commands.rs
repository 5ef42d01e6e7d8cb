//! Every command does what its help says, with text and with JSON output.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::test_computer::{DiskEntry, TestComputer};

#[test]
fn init_takes_a_folder_as_it_is_in_one_operation() {
    let computer = TestComputer::bare();
    computer.edit("a.txt", "one\n");
    computer.edit("src/main.rs", "fn main() {}\n");
    fs::create_dir(computer.path("empty")).unwrap();
    let before = computer.files();
    let status = computer.json(&["init", ".", "--user", "ada-1", "--name", "Ada Lovelace"]);
    assert_eq!(status["user"], "ada-1");
    assert_eq!(status["owner"], "Ada Lovelace");
    assert_eq!(status["files"], 2);
    assert_eq!(status["captured"], 3);
    assert_eq!(computer.files(), before);
    let events = computer.events();
    assert_eq!(events[0]["type"], "user.create");
    assert!(events[1..].iter().all(|event| event["op"] == events[1]["op"] && event["actor"] == "capture"));
    computer.run(&["init", "."]).exits(5).says("already");
    computer.assert_intact();
}

#[test]
fn init_makes_the_folder_and_a_failed_one_leaves_none() {
    let computer = TestComputer::bare();
    computer.ok(&["init", "new/notes"]).says("is a computer now");
    let state = computer.path("new/notes/.choir").metadata().unwrap();
    assert_eq!(state.permissions().mode() & 0o777, 0o700);
    for user in ["a.b", "*", "", "A", "a b", ">", &"x".repeat(65)] {
        computer.run(&["init", "other", &format!("--user={user}")]).exits(2).says("user");
        assert!(!computer.has("other"));
    }
}

#[test]
fn write_takes_standard_input_or_a_file_and_says_what_it_did() {
    let computer = TestComputer::new();
    let done = computer.feed(&["write", "a.txt", "--json"], b"hello\n").exits(0).json_lines().remove(0);
    assert_eq!(done["first"], 2);
    assert_eq!(done["total"], 1);
    assert_eq!(done["changes"][0]["path"], "a.txt");
    assert_eq!(computer.read("a.txt"), "hello\n");
    computer.feed(&["write", "a.txt"], b"hello\n").exits(0).says("nothing to do");
    computer.feed(&["write", "deep/down/b.txt"], b"x").exits(0).says("+ deep/down/b.txt");
    computer.feed(&["write", "raw"], b"\xff\xfe\0\x80").exits(0);
    assert_eq!(fs::read(computer.path("raw")).unwrap(), b"\xff\xfe\0\x80");

    let tool = computer.path(".choir/tool");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    computer.ok(&["write", "tool", "--from", ".choir/tool"]);
    assert_eq!(computer.files()["tool"], DiskEntry::File { bytes: b"#!/bin/sh\n".to_vec(), mode: 0o755 });
    computer.feed(&["write", "tool"], b"#!/bin/bash\n").exits(0);
    assert_eq!(computer.files()["tool"], DiskEntry::File { bytes: b"#!/bin/bash\n".to_vec(), mode: 0o755 });
    computer.feed(&["write", "tool", "--mode", "600"], b"").exits(0);
    assert_eq!(computer.files()["tool"], DiskEntry::File { bytes: Vec::new(), mode: 0o600 });
    computer.run(&["write", "x", "--from", "/no/such/file"]).exits(4).says("/no/such/file");
    computer.run(&["write", "x", "--from", "deep"]).exits(1).says("not a regular file");
    computer.assert_intact();
}

#[test]
fn write_with_a_base_never_overwrites_what_was_not_seen() {
    let computer = TestComputer::new();
    let seen = computer.feed(&["write", "a", "--new", "--json"], b"one\n").exits(0).json_lines();
    let hash = seen[0]["changes"][0]["after"]["file"]["hash"].as_str().unwrap().to_owned();
    computer.feed(&["write", "a", "--base", &hash], b"two\n").exits(0);
    let snapshot = computer.snapshot();
    computer
        .feed(&["write", "a", "--base", &hash], b"three\n")
        .exits(3)
        .says("a has changed since you last read it");
    computer.feed(&["write", "a", "--new"], b"four\n").exits(3).says("a already exists");
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn rm_and_mv_work_on_files_and_folders() {
    let computer = TestComputer::over(&[("a", "1"), ("dir/b", "2"), ("dir/sub/c", "3")]);
    assert_eq!(computer.json(&["mv", "a", "dir/a"])["changes"][0]["from"], "a");
    assert_eq!(computer.read("dir/a"), "1");
    computer.ok(&["mv", "dir", "folder"]);
    assert_eq!(computer.read("folder/sub/c"), "3");
    assert!(!computer.has("dir"));
    assert_eq!(computer.json(&["rm", "folder/sub"])["total"], 1);
    assert!(!computer.has("folder/sub") && computer.has("folder/b"));
    let snapshot = computer.snapshot();
    computer.run(&["rm", "nothing"]).exits(4);
    computer.run(&["mv", "nothing", "x"]).exits(4);
    computer.run(&["mv", "folder/a", "folder/b"]).exits(5).says("already something");
    computer.run(&["mv", "folder", "folder/deeper"]).exits(5).says("into itself");
    computer.feed(&["write", "folder"], b"").exits(5).says("folder");
    computer.feed(&["write", "folder/a/x"], b"").exits(5).says("not a folder");
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn paths_are_taken_from_where_the_person_stands() {
    let computer = TestComputer::over(&[("sub/a", "1")]);
    let from_sub = |args: &[&str]| {
        let mut command = computer.command(args);
        crate::test_computer::CommandOutput::of(command.current_dir(computer.path("sub")))
    };
    assert_eq!(from_sub(&["cat", "a"]).exits(0).out, "1");
    from_sub(&["mv", "a", "../b"]).exits(0);
    assert_eq!(computer.read("b"), "1");
    computer.ok(&["cat", computer.path("b").to_str().unwrap()]);
    let outside = crate::test_computer::CommandOutput::of(
        computer.command(&["-C", "work", "cat", "b"]).current_dir(computer.path("..")),
    );
    assert_eq!(outside.exits(0).out, "1");
    let by_variable = crate::test_computer::CommandOutput::of(
        computer.command(&["cat", "b"]).current_dir("/").env("CHOIR_DIR", &computer.work),
    );
    assert_eq!(by_variable.exits(0).out, "1");
}

#[test]
fn cat_shows_now_and_then() {
    let computer = TestComputer::new();
    computer.write("a", "one\n");
    computer.write("a", "two\n");
    fs::create_dir(computer.path("dir")).unwrap();
    std::os::unix::fs::symlink("a", computer.path("link")).unwrap();
    computer.edit("full/x", "");
    computer.status();
    assert_eq!(computer.ok(&["cat", "a"]).out, "two\n");
    assert_eq!(computer.ok(&["cat", "a", "--at", "2"]).out, "one\n");
    assert_eq!(computer.ok(&["cat", "link"]).out, "a\n");
    computer.run(&["cat", "a", "--at", "1"]).exits(4);
    computer.run(&["cat", "a", "--at", "99"]).exits(4).says("ends at event");
    computer.run(&["cat", "dir"]).exits(5).says("folder");
    computer.run(&["cat", "full"]).exits(5).says("folder");
    computer.run(&["cat", "none"]).exits(4);
}

#[test]
fn search_finds_the_persons_own_last_edit() {
    let computer =
        TestComputer::over(&[("notes/plan.md", "a living document\n"), ("b.txt", "nothing of it\n")]);
    computer.edit("c.txt", "another living thing, a document\n");
    let hits = computer.ok(&["search", "living", "document", "--json"]).json_lines();
    let paths: Vec<_> = hits.iter().map(|hit| hit["path"].as_str().unwrap()).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(paths.contains(&"c.txt") && paths.contains(&"notes/plan.md"), "{paths:?}");
    computer.ok(&["search", "plan"]).says("notes/plan.md");
    computer.ok(&["search", "unheard-of"]).says("no file");
    computer.ok(&["search", "\"", "*", "(", "NEAR"]);
}

#[test]
fn replay_and_verify_come_to_the_root_that_status_shows() {
    let computer = TestComputer::over(&[("a", "1")]);
    computer.write("b", "2");
    let root = computer.status()["root"].clone();
    let replayed = computer.json(&["replay"]);
    assert_eq!((&replayed["root"], &replayed["events"]), (&root, &Value::from(3)));
    assert_ne!(computer.json(&["replay", "--to", "2"])["root"], root);
    computer.run(&["replay", "--to", "4"]).exits(4);
    let verified = computer.json(&["verify"]);
    assert_eq!(verified["ok"], true);
    let checks: Vec<_> =
        verified["checks"].as_array().unwrap().iter().map(|c| c["what"].as_str().unwrap()).collect();
    assert_eq!(checks, ["chain", "roots", "read models", "files", "contents"]);
}

#[test]
fn a_checkpoint_is_made_listed_compared_and_restored() {
    let computer = TestComputer::over(&[("a", "one\n")]);
    computer.ok(&["checkpoint", "list"]).says("no checkpoint yet");
    computer.ok(&["checkpoint", "-m", "Before the talk"]).says("saved");
    let listed = computer.ok(&["checkpoint", "list", "--json"]).json_lines();
    assert_eq!(listed[0]["message"], "Before the talk");
    let commit = &listed[0]["commit"].as_str().unwrap()[..10];
    computer.write("a", "two\n");
    computer.write("b", "new\n");
    let diff = computer.ok(&["checkpoint", "diff", commit, "--json"]).json_lines();
    assert_eq!(diff.len(), 2, "{diff:?}");
    let snapshot = computer.snapshot();
    computer.ok(&["checkpoint", "restore", commit, "--preview"]).says("would restore");
    assert_eq!(computer.snapshot(), snapshot);
    computer.ok(&["checkpoint", "restore", commit]);
    assert_eq!(computer.read("a"), "one\n");
    assert!(!computer.has("b"));
    computer.ok(&["undo"]);
    assert_eq!((computer.read("a"), computer.read("b")), ("two\n".into(), "new\n".into()));
    computer.run(&["checkpoint", "restore", "0123456789"]).exits(4);
    computer.assert_intact();
}

#[test]
fn an_export_becomes_another_computer_or_files_of_one() {
    let computer = TestComputer::over(&[("a", "one\n"), ("dir/b", "two\n")]);
    computer.write("a", "three\n");
    let root = computer.status()["root"].clone();
    let manifest = computer.json(&["export", "../out.zip"]);
    assert_eq!(manifest["root"], root);

    let other = TestComputer::new();
    let archive = computer.path("../out.zip");
    let archive = archive.to_str().unwrap();
    assert_eq!(other.json(&["import", archive])["root"], root);
    assert_eq!(other.files(), computer.files());
    other.assert_intact();

    let third = TestComputer::over(&[("a", "mine\n")]);
    let snapshot = third.snapshot();
    third.run(&["import", archive]).exits(3).says("a");
    third.run(&["import", "a"]).exits(5).says("zip");
    third.run(&["import", "/no/such.zip"]).exits(4);
    assert_eq!(third.snapshot(), snapshot);
    assert_eq!(third.json(&["import", archive, "--into", "from-laptop"])["total"], 2);
    assert_eq!(third.read("from-laptop/dir/b"), "two\n");
    third.ok(&["undo"]);
    assert!(!third.has("from-laptop"));
    computer.run(&["export", "../late.zip", "--at", "99"]).exits(4);
    computer.run(&["export", "/no/such/folder/x.zip"]).exits(4);
    assert!(!computer.has("../late.zip"));
}

#[test]
fn purge_drops_bytes_for_good_and_the_chain_still_verifies() {
    let computer = TestComputer::new();
    computer.write("secret", "hunter2\n");
    computer.run(&["purge", "secret"]).exits(5).says("still holds");
    computer.ok(&["rm", "secret"]);
    computer.run(&["purge", "nothing"]).exits(4);
    computer.ok(&["purge", "secret", "--reason", "pasted by mistake"]).says("1 of 1");
    computer.run(&["cat", "secret", "--at", "2"]).exits(4).says("purged");
    computer.run(&["undo", "@3"]).exits(5).says("purged");
    computer.ok(&["purge", "--orphans"]).says("unreferenced contents deleted");
    for entry in fs::read_dir(computer.path(".choir")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{}", path.display());
        }
    }
    computer.assert_intact();
}

#[test]
fn every_command_speaks_json_a_line_at_a_time() {
    let computer = TestComputer::over(&[("a", "one\n"), ("b", "two\n")]);
    computer.write("a", "three\n");
    for args in [
        "status",
        "mv b c",
        "log",
        "log -n 1",
        "show @2",
        "undo --preview",
        "undo",
        "redo",
        "redo @4",
        "diff 1..",
        "diff 3..3",
        "rm c",
        "restore 3 --preview",
        "restore 3",
        "search one",
        "search nothing",
        "replay",
        "verify",
        "checkpoint -m x",
        "checkpoint list",
        "export ../e.zip",
        "export ../f.zip --at 2",
        "write d",
        "rm d",
        "purge d",
        "purge --orphans",
        "import ../e.zip --into e",
        "doctor",
        "doctor --rebuild",
        "init ../other",
        "bench undo --quick",
    ] {
        let words: Vec<_> = args.split(' ').chain(["--json"]).collect();
        let ran = computer.run(&words);
        assert!(ran.code == 0 || args == "redo @4", "{args}: {ran:?}");
        assert_eq!(ran.err, "", "{args}");
        let lines = ran.json_lines();
        assert!(!lines.is_empty() || ["diff 3..3", "search nothing"].contains(&args), "{args}");
    }
    computer.assert_intact();
}

#[test]
fn doctor_names_every_setting_with_its_origin() {
    let computer = TestComputer::new();
    fs::write(computer.state("choir.toml"), "[git]\nauto_operations = 7\n").unwrap();
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("choir.toml"), "[server]\nidle_close = 60\n").unwrap();
    let mut command = computer.command(&["doctor", "--json"]);
    command.env("CHOIR_GIT_AUTO_SECONDS", "9").env("CHOIR_DATA", data.path()).env("CHOIR_PORT", "9000");
    let ran = crate::test_computer::CommandOutput::of(&mut command).exits(0);
    let told = ran.json_lines().remove(0);
    let settings = told["configuration"].as_array().unwrap();
    let origin = |key: &str| settings.iter().find(|s| s["key"] == key).unwrap()["origin"].to_string();
    assert!(origin("git.auto_operations").contains("choir.toml"));
    assert!(origin("git.auto_seconds").contains("CHOIR_GIT_AUTO_SECONDS"));
    assert!(origin("server.idle_close").contains("choir.toml"));
    assert!(origin("server.listen").contains("CHOIR_PORT"));
    assert_eq!(origin("server.tls"), "\"default\"");
    assert!(told["findings"].as_array().unwrap().iter().all(|finding| finding["ok"] == true), "{told}");
    computer.ok(&["doctor", "--rebuild"]);
    computer.assert_intact();
    let unusable = "[server]\ntls = { certificate = \"none.pem\", key = \"none.pem\" }\n";
    fs::write(data.path().join("choir.toml"), unusable).unwrap();
    let mut command = computer.command(&["doctor"]);
    crate::test_computer::CommandOutput::of(command.env("CHOIR_DATA", data.path()))
        .exits(1)
        .says("none.pem")
        .says("check the path");
}
