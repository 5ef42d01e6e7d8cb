//! Many commands at once, with and without a holder: all succeed, the log is gapless, nothing is lost.

use std::io::Write;
use std::process::{Child, Stdio};

use crate::process::BackgroundProcess;
use crate::test_computer::TestComputer;

const WRITERS: usize = 20;

/// Starts a write that is under way when this returns.
fn start_write(computer: &TestComputer, path: &str, text: &str) -> Child {
    let mut command = computer.command(&["write", path]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child
}

fn write_all_at_once(computer: &TestComputer) {
    let children: Vec<Child> = (0..WRITERS)
        .map(|index| start_write(computer, &format!("f{index}"), &format!("{index}\n")))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for index in 0..WRITERS {
        assert_eq!(computer.read(&format!("f{index}")), format!("{index}\n"));
    }
    assert_eq!(computer.head(), 1 + WRITERS as u64);
    computer.assert_intact();
}

#[test]
fn twenty_writers_share_one_holder() {
    let computer = TestComputer::new();
    let watch = BackgroundProcess::watch(&computer);
    write_all_at_once(&computer);
    assert!(watch.so_far().is_empty(), "choir's own writing was taken for an outside edit");
}

#[test]
fn twenty_writers_take_turns_without_a_holder() {
    let computer = TestComputer::new();
    write_all_at_once(&computer);
}

#[test]
fn writers_of_one_file_leave_every_version_in_the_log() {
    let computer = TestComputer::new();
    let _watch = BackgroundProcess::watch(&computer);
    let children: Vec<Child> =
        (0..WRITERS).map(|index| start_write(&computer, "one", &format!("{index}\n"))).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let events = computer.events();
    assert_eq!(events.len(), 1 + WRITERS);
    let last = computer.ok(&["cat", "one"]).out;
    assert_eq!(computer.read("one"), last);
    // Each version names the one before it, so every one of them can be undone to.
    for _ in 1..WRITERS {
        computer.ok(&["undo"]);
    }
    assert_eq!(computer.read("one"), computer.ok(&["cat", "one", "--at", "2"]).out);
    computer.assert_intact();
}

#[test]
fn a_holder_that_starts_among_writers_waits_for_its_turn() {
    let computer = TestComputer::new();
    let children: Vec<Child> =
        (0..6).map(|index| start_write(&computer, &format!("f{index}"), "x")).collect();
    let _watch = BackgroundProcess::watch(&computer);
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(computer.files().len(), 6);
    computer.assert_intact();
}
