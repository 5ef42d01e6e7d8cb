//! Edits made while `choir watch` runs: noticed as they happen, one operation for each burst.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::BackgroundProcess;
use crate::test_computer::TestComputer;

/// Shorter than the pause after which a burst counts as over.
const QUICK: Duration = Duration::from_millis(100);

/// Makes a burst that was quick enough to be one, and says what was recorded of it. A machine that stalls in the
/// middle makes two bursts of one; then the next try counts.
fn burst(computer: &TestComputer, watch: &BackgroundProcess, mut act: impl FnMut(usize)) -> Value {
    for attempt in 0..20 {
        let started = Instant::now();
        act(attempt);
        let quick = started.elapsed() < QUICK;
        let first = watch.next();
        assert!(first["op"].is_string(), "{first}");
        if quick {
            return first;
        }
        // Let everything of the slow burst be recorded and told before the next try.
        computer.status();
        let last = computer.events().into_iter().rfind(|event| event["actor"] == "capture").unwrap();
        let mut told = first;
        while told["op"] != last["op"] {
            told = watch.next();
        }
    }
    panic!("this machine is too slow for a burst");
}

fn events_of(computer: &TestComputer, told: &Value) -> Vec<String> {
    let events = computer.ok(&["log", "--all", "--json", "--op", told["op"].as_str().unwrap()]).json_lines();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .map(|event| format!("{} {}", word(&event["type"]), word(&event["payload"]["path"])))
        .collect()
}

#[test]
fn a_plain_write_a_rename_over_a_delete_and_a_folder_are_noticed() {
    let computer = TestComputer::over(&[("a", "one\n"), ("b", "two\n")]);
    let watch = BackgroundProcess::watch(&computer);

    computer.edit("a", "plain write\n");
    let told = watch.next();
    assert_eq!(
        (&told["captured"], events_of(&computer, &told)),
        (&1.into(), vec!["file.write a".to_owned()])
    );

    let told = burst(&computer, &watch, |attempt| {
        computer.edit(".a.swp", &format!("saved as vim does {attempt}\n"));
        fs::rename(computer.path("a"), computer.path("a~")).unwrap();
        fs::rename(computer.path(".a.swp"), computer.path("a")).unwrap();
        fs::remove_file(computer.path("a~")).unwrap();
    });
    assert_eq!(
        (&told["captured"], events_of(&computer, &told)),
        (&1.into(), vec!["file.write a".to_owned()])
    );

    fs::remove_file(computer.path("b")).unwrap();
    let told = watch.next();
    assert_eq!(events_of(&computer, &told), ["file.delete b"]);

    fs::create_dir(computer.path("empty")).unwrap();
    let told = watch.next();
    assert_eq!(events_of(&computer, &told), ["file.write empty"]);

    symlink("a", computer.path("link")).unwrap();
    let told = watch.next();
    assert_eq!(events_of(&computer, &told), ["file.write link"]);
    assert_eq!(watch.so_far(), Vec::<Value>::new());
    computer.assert_intact();
}

#[test]
fn a_save_that_begins_as_soon_as_watch_is_ready_is_recorded_once() {
    let computer = TestComputer::over(&[("a", "one\n")]);
    let watch = BackgroundProcess::watch(&computer);
    let told = burst(&computer, &watch, |attempt| {
        let mut file = fs::File::create(computer.path("a")).unwrap();
        std::thread::sleep(QUICK / 2);
        writeln!(file, "saved in two steps {attempt}").unwrap();
    });
    assert_eq!(events_of(&computer, &told), ["file.write a"]);
    assert_eq!(computer.status()["captured"], 0);
    assert_eq!(watch.so_far(), Vec::<Value>::new());
    computer.assert_intact();
}

#[test]
fn a_burst_is_one_operation_and_one_undo() {
    let computer = TestComputer::over(&[("a", "one\n")]);
    let watch = BackgroundProcess::watch(&computer);
    let told = burst(&computer, &watch, |attempt| {
        for index in 0..20 {
            fs::write(computer.path(&format!("f{index}")), format!("{attempt} {index}\n")).unwrap();
        }
        fs::write(computer.path("a"), format!("{attempt}\n")).unwrap();
    });
    assert_eq!(told["captured"], 21);
    assert_eq!(events_of(&computer, &told).len(), 21);
    computer.ok(&["undo", told["op"].as_str().unwrap()]);
    // What choir itself puts on disk is not taken for an edit.
    assert_eq!(computer.status()["captured"], 0);
    assert_eq!(watch.so_far(), Vec::<Value>::new());
    computer.assert_intact();
}

#[test]
fn a_tree_that_arrives_at_once_is_watched_from_then_on() {
    let computer = TestComputer::new();
    let watch = BackgroundProcess::watch(&computer);
    let staged = computer.path("../staged");
    for index in 0..30 {
        fs::create_dir_all(staged.join(format!("d{}", index % 3))).unwrap();
        fs::write(staged.join(format!("d{}/f{index}", index % 3)), "x").unwrap();
    }
    fs::rename(&staged, computer.path("tree")).unwrap();
    assert_eq!(watch.next()["captured"], 30);
    computer.edit("tree/d1/later", "y");
    let told = watch.next();
    assert_eq!(events_of(&computer, &told), ["file.write tree/d1/later"]);
    fs::rename(computer.path("tree"), computer.path("../gone")).unwrap();
    assert_eq!(watch.next()["captured"], 31);
    assert_eq!(computer.status()["files"], 0);
    computer.ok(&["undo"]);
    assert_eq!(computer.files().len(), 31);
    computer.assert_intact();
}

#[test]
fn what_happened_before_the_watch_is_recorded_when_it_starts() {
    let computer = TestComputer::over(&[("a", "one\n")]);
    computer.edit("a", "while no process watched\n");
    let watch = BackgroundProcess::watch(&computer);
    let told = watch.next();
    assert_eq!(told["captured"], 1);
    assert_eq!(events_of(&computer, &told), ["file.write a"]);
}

#[test]
fn ignored_files_do_not_wake_anybody() {
    let computer = TestComputer::over(&[(".gitignore", "*.log\n"), ("kept.txt", "1\n")]);
    computer.write("known.log", "in the log\n");
    let watch = BackgroundProcess::watch(&computer);
    computer.edit("noise.log", "x\n");
    computer.edit("known.log", "still noticed\n");
    let told = watch.next();
    assert_eq!(events_of(&computer, &told), ["file.write known.log"]);
    computer.edit("kept.txt", "2\n");
    let told = watch.next();
    assert_eq!(events_of(&computer, &told), ["file.write kept.txt"]);
}

#[test]
fn an_edit_in_the_middle_of_choirs_own_writing_is_not_lost() {
    let computer = TestComputer::new();
    let _watch = BackgroundProcess::watch(&computer);
    for round in 0..10 {
        let (mine, outside) = (format!("mine {round}\n"), format!("outside {round}\n"));
        computer.write("shared", &mine);
        computer.edit("shared", &outside);
        computer.write("other", &mine);
    }
    computer.status();
    let held: Vec<String> = computer
        .ok(&["log", "--all", "--json", "--path", "shared"])
        .json_lines()
        .iter()
        .map(|event| computer.ok(&["cat", "shared", "--at", &event["seq"].to_string()]).out)
        .collect();
    for round in 0..10 {
        assert!(held.contains(&format!("outside {round}\n")), "{round} is missing in {held:?}");
    }
    assert_eq!(computer.read("shared"), "outside 9\n");
    computer.assert_intact();
}
