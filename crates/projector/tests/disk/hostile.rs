//! Hostile files that try to lead the projector out of the workspace, or to block it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use projector::scan::{SkipReason, scan};
use projector::workspace::{DiskError, Expected, ObservedKind, OpenError, Workspace, hash_file};
use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};

use crate::fixture::{Home, at, listing, names, skips};

fn is_link_at(error: &DiskError, place: &str) -> bool {
    matches!(error, DiskError::LinkInPath { at, .. } if at.as_str() == place)
}

#[test]
fn a_link_above_a_path_is_never_followed() {
    let home = Home::new();
    home.folder("a").link(home.outside(), "a/out").link("../../outside", "a/up").link("/tmp", "tmp");
    home.folder("real").link("real", "inside");
    for (path, link) in
        [("a/out/x", "a/out"), ("a/up/x/y", "a/up"), ("tmp/choir-x", "tmp"), ("inside/x", "inside")]
    {
        let ws = &home.workspace;
        let errors = [
            home.place(path, "bad", 0o644).unwrap_err(),
            home.place_link(path, "x").unwrap_err(),
            home.place_folder(path).unwrap_err(),
            ws.remove(&at(path), Expected::Anything).unwrap_err(),
            ws.observe(&at(path)).unwrap_err(),
            ws.open_file(&at(path)).unwrap_err(),
            hash_file(ws, &at(path)).unwrap_err(),
        ];
        for error in errors {
            assert!(is_link_at(&error, link), "{path}: {error}");
        }
    }
    assert!(!Path::new("/tmp/choir-x").exists());
    assert!(names(&home.on_disk("real")).is_empty());
    home.assert_clean();
}

#[test]
fn a_link_at_a_path_is_replaced_and_not_written_through() {
    let home = Home::new();
    fs::write(home.outside().join("secret"), "untouched").unwrap();
    home.link(home.outside().join("secret"), "x").link(home.outside(), "folder");
    assert!(matches!(home.workspace.open_file(&at("x")), Err(DiskError::NotAFile { .. })));
    home.place("x", "new", 0o644).unwrap();
    home.place_folder("folder").unwrap();
    home.place("folder/y", "new", 0o644).unwrap();
    assert_eq!(fs::read_to_string(home.outside().join("secret")).unwrap(), "untouched");
    assert_eq!(home.read("x"), "new");
    fs::remove_file(home.outside().join("secret")).unwrap();
    home.assert_clean();
}

#[test]
fn a_folder_that_is_swapped_for_a_link_all_the_time_leads_nowhere() {
    let home = Home::new();
    home.folder("a/b").link(home.outside(), "a/link");
    let stop = AtomicBool::new(false);
    let (mut placed, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, link) = (home.on_disk("a/b"), home.on_disk("a/link"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for round in 0..1_000 {
            match home.place(&format!("a/b/{}", round % 50), "inside", 0o644) {
                Ok(_) => placed += 1,
                Err(DiskError::LinkInPath { .. } | DiskError::Busy { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
            if round % 20 == 0 {
                let found = scan(&home.workspace, []).unwrap();
                assert!(found.entries.iter().all(|(path, _)| path.as_str().starts_with("a/")));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(placed > 0 && refused > 0, "{placed} placed, {refused} refused: the race did not happen");
    home.assert_clean();
}

#[test]
fn a_fifo_or_a_socket_blocks_nothing() {
    let home = Home::new();
    mkfifoat(CWD, home.on_disk("fifo"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(home.on_disk("socket")).unwrap();
    for name in ["fifo", "socket"] {
        assert_eq!(home.workspace.observe(&at(name)).unwrap().unwrap().kind, ObservedKind::Other);
        assert!(matches!(home.workspace.open_file(&at(name)), Err(DiskError::NotAFile { .. })));
        assert!(matches!(hash_file(&home.workspace, &at(name)), Err(DiskError::NotAFile { .. })));
    }
    let found = home.scan();
    assert_eq!(skips(&found), [("fifo", SkipReason::Special), ("socket", SkipReason::Special)]);
    assert!(found.entries.is_empty());
    // A fifo instead of an ignore file must not block the scan either.
    mkfifoat(CWD, home.on_disk(".gitignore"), Mode::RWXU).unwrap();
    assert!(home.scan().entries.is_empty());
    home.place("fifo", "now a file", 0o644).unwrap();
    assert_eq!(home.read("fifo"), "now a file");
}

#[test]
fn what_the_log_cannot_hold_is_listed_with_its_reason() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let home = Home::new();
    home.write("good", "x").write(".CHOIR/x", "x").write("sub/.choir/x", "x").write(".choir/state", "x");
    fs::write(home.root().join(OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    home.link(OsStr::from_bytes(b"to\xff"), "odd");
    home.link("nowhere", "dangling").link("/etc/passwd", "abs").link("../outside", "out");
    home.link(".choir/state", "own").link("../good", "sub/fine");
    let found = home.scan();
    assert_eq!(listing(&found), ["dangling -> nowhere", "good", "sub/fine -> ../good"]);
    assert_eq!(
        skips(&found),
        [
            (".CHOIR", SkipReason::Reserved),
            ("abs", SkipReason::LinkLeaves),
            ("bad\u{fffd}", SkipReason::NotUtf8),
            ("odd", SkipReason::NotUtf8),
            ("out", SkipReason::LinkLeaves),
            ("own", SkipReason::LinkLeaves),
            ("sub/.choir", SkipReason::Reserved),
        ]
    );
}

#[test]
fn a_link_that_leaves_is_not_made() {
    let home = Home::new();
    for target in ["/etc/passwd", "../outside", "a/../../b", ".choir/state.sqlite", ""] {
        let error = home.place_link("link", target).unwrap_err();
        assert!(matches!(error, DiskError::LinkLeaves { .. }), "{target}: {error}");
    }
    home.place_link("deep/link", "../gone").unwrap();
    assert_eq!(fs::read_link(home.on_disk("deep/link")).unwrap(), Path::new("../gone"));
    home.assert_clean();
}

#[test]
fn a_scratch_folder_behind_a_link_is_refused() {
    let home = Home::new();
    let root = home.on_disk("other");
    fs::create_dir(&root).unwrap();
    symlink(home.outside(), root.join(".choir")).unwrap();
    let error = Workspace::open(&root, &root.join(".choir/tmp")).unwrap_err();
    assert!(matches!(error, OpenError::Scratch { .. }), "{error}");
    let error = Workspace::open(&home.on_disk("missing"), &home.on_disk("x")).unwrap_err();
    assert!(matches!(error, OpenError::Root { .. }), "{error}");
    home.assert_clean();
}

#[test]
fn a_tree_deeper_than_the_descriptors_is_walked() {
    let home = Home::new();
    let deep = vec!["d"; 1_100].join("/");
    let path = at(&format!("{deep}/end"));
    home.place(path.as_str(), "x", 0o644).unwrap();
    let found = home.scan();
    assert_eq!(found.entries.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&path]);
    // The standard library cannot remove a tree like this one.
    assert!(Command::new("rm").arg("-rf").arg(home.on_disk("d")).status().unwrap().success());
    assert!(home.scan().entries.is_empty());
}
