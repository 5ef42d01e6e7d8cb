//! The process that holds the computer: others reach it by its socket, and its end leaves nothing in the way.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::home::Home;
use crate::process::{Beside, knock};

#[test]
fn commands_go_to_the_holder_over_a_private_socket() {
    let home = Home::over(&[("a", "1\n")]);
    let watch = Beside::watch(&home);
    let socket = home.state("choir.sock").symlink_metadata().unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);

    // Nobody else can open the log for writing now, so what works went over the socket.
    home.write("b", "2\n");
    assert_eq!(home.read("b"), "2\n");
    home.ok(&["undo"]);
    assert!(!home.has("b"));
    home.ok(&["redo"]);
    home.ok(&["mv", "b", "c"]);
    home.ok(&["rm", "a"]);
    home.ok(&["checkpoint", "-m", "held"]);
    home.ok(&["restore", "2"]);
    assert_eq!(home.status()["files"], 1);
    home.run(&["undo", "@1"]).exits(5).says("can be undone");
    home.ok(&["doctor"]).says("holds the computer and answers");
    home.run(&["watch"]).exits(7).says(&format!("process {}", watch.pid()));
    home.ok(&["search", "a"]);
    home.ok(&["export", "../held.zip"]);
    home.assert_intact();
}

#[test]
fn a_conflict_over_the_socket_has_both_sides_too() {
    let home = Home::over(&[("a", "1\n")]);
    let _watch = Beside::watch(&home);
    let op = home.write("a", "2\n");
    home.write("a", "3\n");
    let standing = home.standing();
    let ran = home.run(&["undo", &op, "--json"]).exits(3);
    assert_eq!(ran.json_lines()[0]["error"]["conflicts"][0]["subject"]["file"], "a");
    assert_eq!(home.standing(), standing);
    home.ok(&["undo", &op, "--take-all"]);
    assert_eq!(home.read("a"), "1\n");
}

#[test]
fn sigterm_ends_it_cleanly_even_beside_a_caller_that_says_nothing() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let mut watch = Beside::watch(&home);
        home.write("a", "1\n");
        let silent = knock(&home);
        let asked = Instant::now();
        watch.signal(signal);
        assert!(watch.end().success());
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
        drop(silent);
        assert!(!home.state("choir.sock").exists());
        home.write("b", "2\n");
        home.assert_intact();
    }
}

#[test]
fn a_holder_that_was_killed_is_no_obstacle() {
    let home = Home::new();
    let mut watch = Beside::watch(&home);
    home.write("a", "1\n");
    watch.kill();
    assert!(home.state("choir.sock").exists(), "a killed process cannot tidy up");
    home.write("b", "2\n");
    home.assert_intact();
    let again = Beside::watch(&home);
    home.write("c", "3\n");
    drop(again);
    assert_eq!(home.files().len(), 3);
    home.assert_intact();
}

#[test]
fn a_stale_socket_is_no_obstacle() {
    let home = Home::new();
    drop(UnixListener::bind(home.state("choir.sock")).unwrap());
    home.write("a", "1\n");
    let watch = Beside::watch(&home);
    home.write("b", "2\n");
    drop(watch);
    std::fs::remove_file(home.state("choir.sock")).unwrap();
    std::fs::write(home.state("choir.sock"), "not a socket").unwrap();
    home.write("c", "3\n");
    let _watch = Beside::watch(&home);
    home.write("d", "4\n");
    home.assert_intact();
}

#[test]
fn a_folder_with_a_long_name_can_be_held() {
    let home = Home::bare();
    let deep = home.work.join("x".repeat(120)).join("y".repeat(120));
    let home = Home::at(deep).set_up();
    let _watch = Beside::watch(&home);
    home.write("a", "1\n");
    assert_eq!(home.read("a"), "1\n");
}

#[test]
fn an_empty_computer_that_is_held_says_why_it_cannot_adopt() {
    let home = Home::over(&[("a", "1\n")]);
    home.ok(&["export", "../out.zip"]);
    let archive = home.path("../out.zip");
    let other = Home::new();
    let watch = Beside::watch(&other);
    other.run(&["import", archive.to_str().unwrap()]).exits(7).says("choir watch");
    drop(watch);
    other.ok(&["import", archive.to_str().unwrap()]);
    assert_eq!(other.read("a"), "1\n");
}

#[test]
fn a_holder_that_goes_away_before_it_answers_costs_nothing() {
    let home = Home::over(&[("a", "1\n")]);
    let listener = UnixListener::bind(home.state("choir.sock")).unwrap();
    let going = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        drop(stream);
    });
    home.ok(&["mv", "a", "b"]);
    going.join().unwrap();
    let moves = home.events().iter().filter(|event| event["type"] == "file.move").count();
    assert_eq!((moves, home.read("b").as_str()), (1, "1\n"));
}
