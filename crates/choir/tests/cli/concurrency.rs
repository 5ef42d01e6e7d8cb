//! Many at once, with and without a holder: everybody succeeds, the log is gapless, nothing is lost.

use std::io::Write;
use std::process::{Child, Stdio};

use crate::home::Home;
use crate::process::Beside;

const WRITERS: usize = 20;

/// Starts a write that is under way when this returns.
fn start_write(home: &Home, path: &str, text: &str) -> Child {
    let mut command = home.command(&["write", path]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child
}

fn write_all_at_once(home: &Home) {
    let children: Vec<Child> =
        (0..WRITERS).map(|index| start_write(home, &format!("f{index}"), &format!("{index}\n"))).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for index in 0..WRITERS {
        assert_eq!(home.read(&format!("f{index}")), format!("{index}\n"));
    }
    assert_eq!(home.head(), 1 + WRITERS as u64);
    home.assert_intact();
}

#[test]
fn twenty_writers_share_one_holder() {
    let home = Home::new();
    let watch = Beside::watch(&home);
    write_all_at_once(&home);
    assert!(watch.so_far().is_empty(), "choir's own writing was taken for somebody's edit");
}

#[test]
fn twenty_writers_take_turns_without_a_holder() {
    let home = Home::new();
    write_all_at_once(&home);
}

#[test]
fn writers_of_one_file_leave_every_version_in_the_log() {
    let home = Home::new();
    let _watch = Beside::watch(&home);
    let children: Vec<Child> =
        (0..WRITERS).map(|index| start_write(&home, "one", &format!("{index}\n"))).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let events = home.events();
    assert_eq!(events.len(), 1 + WRITERS);
    let last = home.ok(&["cat", "one"]).out;
    assert_eq!(home.read("one"), last);
    // Each version names the one before it, so every one of them can be undone to.
    for _ in 1..WRITERS {
        home.ok(&["undo"]);
    }
    assert_eq!(home.read("one"), home.ok(&["cat", "one", "--at", "2"]).out);
    home.assert_intact();
}

#[test]
fn a_holder_that_starts_among_writers_waits_for_its_turn() {
    let home = Home::new();
    let children: Vec<Child> = (0..6).map(|index| start_write(&home, &format!("f{index}"), "x")).collect();
    let _watch = Beside::watch(&home);
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(home.files().len(), 6);
    home.assert_intact();
}
