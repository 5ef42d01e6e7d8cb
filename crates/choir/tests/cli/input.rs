//! Bad input on the command line and in the configuration: a clear message, a fitting exit code, nothing changed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::home::{Home, Ran};

#[test]
fn hostile_paths_are_refused() {
    let home = Home::over(&[("a", "1\n"), ("dir/b", "2\n")]);
    let standing = home.standing();
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
            home.feed(args, b"x").exits(2);
        }
        home.run(&["log", "--path", path]).exits(2);
        home.run(&["purge", path]).exits(2);
        home.run(&["undo", "--keep", path]).exits(2);
    }
    assert_eq!(home.standing(), standing);
    assert!(!home.has("../x"));
    assert_eq!(fs::read_dir(home.path("..")).unwrap().count(), 1);
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    let home = Home::over(&[("a", "1\n")]);
    let standing = home.standing();
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
        let ran = Ran::of(&mut home.command(&args)).exits(2);
        assert!(ran.err.contains("UTF-8") || ran.err.contains("unrecognized"), "{args:?}: {ran:?}");
    }
    assert_eq!(home.standing(), standing);
}

#[test]
fn a_link_in_a_path_is_not_followed_out() {
    let home = Home::over(&[("a", "1\n")]);
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), home.path("out")).unwrap();
    let files = home.files();
    let ran = home.feed(&["write", "out/x"], b"x");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{ran:?}");
    assert_eq!(home.files(), files);
    home.assert_intact_but_for_disk(&ran);
}

impl Home {
    /// A path below something that the log cannot hold is recorded and waits for the way to be clear.
    fn assert_intact_but_for_disk(&self, ran: &Ran) {
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
    let home = Home::over(&[("a", "1\n")]);
    let standing = home.standing();
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
        fs::write(home.state("choir.toml"), text).unwrap();
        for args in [&["write", "a"][..], &["status"], &["undo"], &["watch"]] {
            let ran = home.feed(args, b"x").exits(2).says(words).says("choir.toml");
            assert!(!ran.err.contains('\0'), "{ran:?}");
        }
        home.run(&["doctor"]).exits(1).says(words);
        // Reading the past needs no settings.
        home.ok(&["log"]);
        assert_eq!(home.ok(&["cat", "a"]).out, "1\n");
    }
    fs::write(home.state("choir.toml"), [b'#', 0xff]).unwrap();
    home.run(&["status"]).exits(2).says("choir.toml");
    fs::remove_file(home.state("choir.toml")).unwrap();
    for (name, value) in [("CHOIR_GIT_PUSH", "maybe"), ("CHOIR_GIT_AUTO_SECONDS", "1.5")] {
        Ran::of(home.command(&["status"]).env(name, value)).exits(2).says(name);
    }
    assert_eq!(home.standing(), standing);
}

#[test]
fn failures_are_json_for_machines() {
    let home = Home::new();
    for (args, code, name) in [
        (&["cat", "nothing"][..], 4, "not_found"),
        (&["rm", "../x"], 2, "bad_path"),
        (&["undo", "zz"], 2, "bad_request"),
        (&["undo", "@1"], 5, "refused"),
        (&["init", "."], 5, "refused"),
        (&["-C", "/", "status"], 4, "no_computer"),
    ] {
        let ran = home.run(&[args, &["--json"]].concat()).exits(code);
        let lines = ran.json_lines();
        assert_eq!(lines.len(), 1, "{ran:?}");
        assert_eq!(lines[0]["error"]["code"], name, "{ran:?}");
        assert!(lines[0]["error"]["message"].as_str().unwrap().len() > 10);
        assert_eq!(ran.err, "");
    }
}

#[test]
fn an_archive_that_is_not_one_leaves_nothing_behind() {
    let home = Home::over(&[("a", "1\n")]);
    home.ok(&["export", "../good.zip"]);
    let good = fs::read(home.path("../good.zip")).unwrap();
    let empty = Home::new();
    let standing = (home.standing(), empty.standing());
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    for bytes in [&[][..], b"PK", &[0xff; 5000], &good[..good.len() / 2], &flipped] {
        fs::write(home.path("../bad.zip"), bytes).unwrap();
        let bad = home.path("../bad.zip");
        for computer in [&home, &empty] {
            let ran = computer.run(&["import", bad.to_str().unwrap(), "--into", "x"]);
            assert!([5, 6].contains(&ran.code), "{ran:?}");
        }
        let ran = empty.run(&["import", bad.to_str().unwrap()]);
        assert!([5, 6].contains(&ran.code), "{ran:?}");
    }
    assert_eq!((home.standing(), empty.standing()), standing);
    empty.assert_intact();
}
