//! Bad input on the command line and in the configuration: a clear message, a fitting exit code, nothing changed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::test_computer::{CommandOutput, TestComputer};

#[test]
fn hostile_paths_are_refused() {
    let computer = TestComputer::over(&[("a", "1\n"), ("dir/b", "2\n")]);
    let snapshot = computer.snapshot();
    let long = "x".repeat(256);
    let deep = "abc/".repeat(1000) + "x";
    let hostile = [
        "",
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "/",
        ".",
        "./",
        ".choir",
        ".choir/state.sqlite",
        ".CHOIR/x",
        "dir/.Choir/x",
        ".choir.",
        ".ch\u{200c}oir",
        &long,
        &deep,
    ];
    for path in hostile {
        for args in
            [&["write", path][..], &["rm", path], &["mv", "a", path], &["mv", path, "z"], &["cat", path]]
        {
            computer.feed(args, b"x").exits(2);
        }
        computer.run(&["log", "--path", path]).exits(2);
        computer.run(&["purge", path]).exits(2);
        computer.run(&["undo", "--keep", path]).exits(2);
    }
    assert_eq!(computer.snapshot(), snapshot);
    assert!(!computer.has("../x"));
    assert_eq!(fs::read_dir(computer.path("..")).unwrap().count(), 1);
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let snapshot = computer.snapshot();
    let bad = OsString::from(OsStr::from_bytes(b"bad\xff"));
    for args in [
        vec!["write".into(), bad.clone()],
        vec!["rm".into(), bad.clone()],
        vec!["mv".into(), "a".into(), bad.clone()],
        vec!["undo".into(), bad.clone()],
        vec!["show".into(), bad.clone()],
        vec!["log".into(), "--type".into(), bad.clone()],
        vec!["checkpoint".into(), "-m".into(), bad.clone()],
        vec![bad.clone()],
    ] {
        let ran = CommandOutput::of(&mut computer.command(&args)).exits(2);
        assert!(ran.err.contains("UTF-8") || ran.err.contains("unrecognized"), "{args:?}: {ran:?}");
    }
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn a_link_in_a_path_is_not_followed_out() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), computer.path("out")).unwrap();
    let files = computer.files();
    let ran = computer.feed(&["write", "out/x"], b"x");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{ran:?}");
    assert_eq!(computer.files(), files);
    computer.assert_intact_but_for_disk(&ran);
}

impl TestComputer {
    /// A path below something that the log cannot hold is recorded and waits for the way to be clear.
    fn assert_intact_but_for_disk(&self, ran: &CommandOutput) {
        if ran.code == 0 {
            assert!(ran.out.contains("not yet on disk"), "{ran:?}");
            fs::remove_file(self.path("out")).unwrap();
            self.status();
            assert_eq!(self.read("out/x"), "x");
        }
        self.assert_intact();
    }
}

#[test]
fn a_setting_that_cannot_be_right_is_named() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let snapshot = computer.snapshot();
    for (text, words) in [
        ("[git]\npush = 3\n", "true or false"),
        ("[git]\nauto_operations = \"many\"\n", "whole number"),
        ("[git]\nauto_seconds = -1\n", "0 or more"),
        ("[git]\nremote = 1\n", "a text"),
        ("[git]\nauto_ops = 1\n", "auto_operations"),
        ("[gti]\npush = true\n", "[gti]"),
        ("push = true\n", "push"),
        ("[git\n", "line 1"),
        ("\u{feff}\0", "TOML"),
    ] {
        fs::write(computer.state("choir.toml"), text).unwrap();
        for args in [&["write", "a"][..], &["status"], &["undo"], &["watch"]] {
            let ran = computer.feed(args, b"x").exits(2).says(words).says("choir.toml");
            assert!(!ran.err.contains('\0'), "{ran:?}");
        }
        computer.run(&["doctor"]).exits(1).says(words);
        // Reading the past needs no settings.
        computer.ok(&["log"]);
        assert_eq!(computer.ok(&["cat", "a"]).out, "1\n");
    }
    fs::write(computer.state("choir.toml"), [b'#', 0xff]).unwrap();
    computer.run(&["status"]).exits(2).says("choir.toml");
    fs::remove_file(computer.state("choir.toml")).unwrap();
    for (name, value) in [("CHOIR_GIT_PUSH", "maybe"), ("CHOIR_GIT_AUTO_SECONDS", "1.5")] {
        CommandOutput::of(computer.command(&["status"]).env(name, value)).exits(2).says(name);
    }
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn failures_are_json_for_machines() {
    let computer = TestComputer::new();
    for (args, code, name) in [
        (&["cat", "nothing"][..], 4, "not_found"),
        (&["rm", "../x"], 2, "bad_path"),
        (&["undo", "zz"], 2, "bad_request"),
        (&["undo", "@1"], 5, "refused"),
        (&["init", "."], 5, "refused"),
        (&["-C", "/", "status"], 4, "no_computer"),
    ] {
        let ran = computer.run(&[args, &["--json"]].concat()).exits(code);
        let lines = ran.json_lines();
        assert_eq!(lines.len(), 1, "{ran:?}");
        assert_eq!(lines[0]["error"]["code"], name, "{ran:?}");
        assert!(lines[0]["error"]["message"].as_str().unwrap().len() > 10);
        assert_eq!(ran.err, "");
    }
}

#[test]
fn an_archive_that_is_not_one_leaves_nothing_behind() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    computer.ok(&["export", "../good.zip"]);
    let good = fs::read(computer.path("../good.zip")).unwrap();
    let empty = TestComputer::new();
    let snapshot = (computer.snapshot(), empty.snapshot());
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    for bytes in [&[][..], b"PK", &[0xff; 5000], &good[..good.len() / 2], &flipped] {
        fs::write(computer.path("../bad.zip"), bytes).unwrap();
        let bad = computer.path("../bad.zip");
        for target in [&computer, &empty] {
            let ran = target.run(&["import", bad.to_str().unwrap(), "--into", "x"]);
            assert!([5, 6].contains(&ran.code), "{ran:?}");
        }
        let ran = empty.run(&["import", bad.to_str().unwrap()]);
        assert!([5, 6].contains(&ran.code), "{ran:?}");
    }
    assert_eq!((computer.snapshot(), empty.snapshot()), snapshot);
    empty.assert_intact();
}
