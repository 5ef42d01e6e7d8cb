//! The process that holds the computer: others reach it by its socket, and its end leaves nothing behind.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{BackgroundProcess, knock};
use crate::test_computer::TestComputer;

#[test]
fn commands_go_to_the_holder_over_a_private_socket() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let watch = BackgroundProcess::watch(&computer);
    let socket = computer.state("choir.sock").symlink_metadata().unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);

    // No other process can open the log for writing now, so successful commands used the socket.
    computer.write("b", "2\n");
    assert_eq!(computer.read("b"), "2\n");
    computer.ok(&["undo"]);
    assert!(!computer.has("b"));
    computer.ok(&["redo"]);
    computer.ok(&["mv", "b", "c"]);
    computer.ok(&["rm", "a"]);
    computer.ok(&["checkpoint", "-m", "held"]);
    computer.ok(&["restore", "2"]);
    assert_eq!(computer.status()["files"], 1);
    computer.run(&["undo", "@1"]).exits(5).says("can be undone");
    computer.ok(&["doctor"]).says("holds the computer and answers");
    computer.run(&["watch"]).exits(7).says(&format!("process {}", watch.pid()));
    computer.ok(&["search", "a"]);
    computer.ok(&["export", "../held.zip"]);
    computer.assert_intact();
}

#[test]
fn a_conflict_over_the_socket_has_both_sides_too() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let _watch = BackgroundProcess::watch(&computer);
    let op = computer.write("a", "2\n");
    computer.write("a", "3\n");
    let snapshot = computer.snapshot();
    let ran = computer.run(&["undo", &op, "--json"]).exits(3);
    assert_eq!(ran.json_lines()[0]["error"]["conflicts"][0]["subject"]["file"], "a");
    assert_eq!(computer.snapshot(), snapshot);
    computer.ok(&["undo", &op, "--take-all"]);
    assert_eq!(computer.read("a"), "1\n");
}

#[test]
fn sigterm_ends_it_cleanly_even_beside_a_caller_that_says_nothing() {
    for signal in [Signal::TERM, Signal::INT] {
        let computer = TestComputer::new();
        let mut watch = BackgroundProcess::watch(&computer);
        computer.write("a", "1\n");
        let silent = knock(&computer);
        let asked = Instant::now();
        watch.signal(signal);
        assert!(watch.end().success());
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
        drop(silent);
        assert!(!computer.state("choir.sock").exists());
        computer.write("b", "2\n");
        computer.assert_intact();
    }
}

#[test]
fn a_holder_that_was_killed_is_no_obstacle() {
    let computer = TestComputer::new();
    let mut watch = BackgroundProcess::watch(&computer);
    computer.write("a", "1\n");
    watch.kill();
    assert!(computer.state("choir.sock").exists(), "a killed process cannot tidy up");
    computer.write("b", "2\n");
    computer.assert_intact();
    let again = BackgroundProcess::watch(&computer);
    computer.write("c", "3\n");
    drop(again);
    assert_eq!(computer.files().len(), 3);
    computer.assert_intact();
}

#[test]
fn a_stale_socket_is_no_obstacle() {
    let computer = TestComputer::new();
    drop(UnixListener::bind(computer.state("choir.sock")).unwrap());
    computer.write("a", "1\n");
    let watch = BackgroundProcess::watch(&computer);
    computer.write("b", "2\n");
    drop(watch);
    std::fs::remove_file(computer.state("choir.sock")).unwrap();
    std::fs::write(computer.state("choir.sock"), "not a socket").unwrap();
    computer.write("c", "3\n");
    let _watch = BackgroundProcess::watch(&computer);
    computer.write("d", "4\n");
    computer.assert_intact();
}

#[test]
fn a_folder_with_a_long_name_can_be_held() {
    let computer = TestComputer::bare();
    let deep = computer.work.join("x".repeat(120)).join("y".repeat(120));
    let computer = TestComputer::at(deep).set_up();
    let _watch = BackgroundProcess::watch(&computer);
    computer.write("a", "1\n");
    assert_eq!(computer.read("a"), "1\n");
}

#[test]
fn an_empty_computer_that_is_held_says_why_it_cannot_adopt() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    computer.ok(&["export", "../out.zip"]);
    let archive = computer.path("../out.zip");
    let other = TestComputer::new();
    let watch = BackgroundProcess::watch(&other);
    other.run(&["import", archive.to_str().unwrap()]).exits(7).says("choir watch");
    drop(watch);
    other.ok(&["import", archive.to_str().unwrap()]);
    assert_eq!(other.read("a"), "1\n");
}

#[test]
fn a_holder_that_goes_away_before_it_answers_costs_nothing() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let listener = UnixListener::bind(computer.state("choir.sock")).unwrap();
    let going = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        drop(stream);
    });
    computer.ok(&["mv", "a", "b"]);
    going.join().unwrap();
    let moves = computer.events().iter().filter(|event| event["type"] == "file.move").count();
    assert_eq!((moves, computer.read("b").as_str()), (1, "1\n"));
}
