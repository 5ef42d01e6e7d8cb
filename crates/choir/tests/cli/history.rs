//! History: log with its filters, following, one operation, and the diff between two events.

use std::fs;

use serde_json::Value;

use crate::process::BackgroundProcess;
use crate::test_computer::TestComputer;

fn seqs(computer: &TestComputer, filter: &[&str]) -> Vec<u64> {
    let args = [&["log", "--json"], filter].concat();
    computer.ok(&args).json_lines().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[test]
fn the_log_is_filtered_by_path_operation_type_and_number() {
    let computer = TestComputer::new();
    computer.write("src/a", "1");
    computer.write("src/b", "2");
    let op = computer.write("other", "3");
    computer.ok(&["mv", "src/a", "moved"]);
    computer.ok(&["rm", "src/b"]);
    computer.ok(&["undo"]);
    assert_eq!(seqs(&computer, &[]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(seqs(&computer, &["-n", "2"]), [7, 8]);
    assert_eq!(seqs(&computer, &["--path", "src"]), [2, 3, 5, 6, 8]);
    assert_eq!(seqs(&computer, &["--path", "src/a"]), [2, 5]);
    assert_eq!(seqs(&computer, &["--path", "sr"]), [0; 0]);
    assert_eq!(seqs(&computer, &["--op", &op]), [4]);
    assert_eq!(seqs(&computer, &["--op", &op[28..]]), [4]);
    assert_eq!(seqs(&computer, &["--op", "@8"]), [7, 8]);
    for spelling in ["file.write", "FILE_WRITE", "file_write", "file/write"] {
        assert_eq!(seqs(&computer, &["--type", spelling]), [2, 3, 4, 8], "{spelling}");
    }
    assert_eq!(seqs(&computer, &["--type", "file"]), [2, 3, 4, 5, 6, 8]);
    assert_eq!(seqs(&computer, &["--type", "undo"]), [7]);
    assert_eq!(seqs(&computer, &["--type", "file", "--path", "src", "-n", "1"]), [8]);
    computer.ok(&["log", "--type", "undo"]).says("undo ");
    computer.run(&["log", "--op", "@99"]).exits(4);
}

#[test]
fn since_is_a_span_or_a_date() {
    let computer = TestComputer::new();
    computer.write("a", "1");
    assert_eq!(seqs(&computer, &["--since", "1h"]), [1, 2]);
    assert_eq!(seqs(&computer, &["--since", "3d"]), [1, 2]);
    assert_eq!(seqs(&computer, &["--since", "2020-01-01"]), [1, 2]);
    assert_eq!(seqs(&computer, &["--since", "2999-01-01T08:00"]), [0; 0]);
    let second = computer.events()[1]["ts"].as_i64().unwrap();
    while jiff::Timestamp::now().as_millisecond() <= second + 1 {
        std::thread::yield_now();
    }
    computer.write("b", "2");
    let third = jiff::Timestamp::from_millisecond(computer.events()[2]["ts"].as_i64().unwrap()).unwrap();
    assert_eq!(seqs(&computer, &["--since", &third.to_string()]), [3]);
}

#[test]
fn following_shows_what_another_process_writes_in_order() {
    let computer = TestComputer::new();
    computer.write("before", "0");
    let follower = BackgroundProcess::start(&computer, &["log", "--follow", "--json"]);
    let by_type =
        BackgroundProcess::start(&computer, &["log", "--follow", "--json", "--type", "file.delete"]);
    let seq = |event: &Value| event["seq"].as_u64().unwrap();
    assert_eq!([seq(&follower.next()), seq(&follower.next())], [1, 2]);
    for index in 0..5 {
        computer.write(&format!("f{index}"), "x");
    }
    computer.ok(&["rm", "f3"]);
    computer.edit("outside", "x");
    computer.status();
    let seen: Vec<u64> = (0..7).map(|_| seq(&follower.next())).collect();
    assert_eq!(seen, (3..=9).collect::<Vec<_>>());
    assert_eq!(seq(&by_type.next()), 8);
    // A process that holds the computer is followed in the same way.
    let _watch = BackgroundProcess::watch(&computer);
    computer.write("held", "x");
    assert_eq!(seq(&follower.next()), 10);
    assert_eq!(follower.so_far(), Vec::<Value>::new());
}

#[test]
fn one_operation_is_shown_by_id_short_id_or_seq() {
    let computer = TestComputer::over(&[("a", "one\n"), ("b", "x\n")]);
    let op = computer.write("a", "two\n");
    for name in [op.as_str(), &op[28..], &op[..13], "@4"] {
        let shown = computer.json(&["show", name]);
        assert_eq!(shown["op"], op.as_str(), "{name}");
        assert_eq!(shown["changes"][0]["path"], "a");
        assert_eq!(shown["events"][0]["seq"], 4);
    }
    let words =
        computer.ok(&["show", &op[28..]]).says("edit a").says("-one").says("+two").says("can be undone");
    assert!(words.out.contains(&op), "{}", words.out);
    computer.ok(&["show", "@2"]).says("create a and 1 more").says("+ b");
    computer.ok(&["show", "@1"]).says("stays done");
    computer.run(&["show", "ffffffff"]).exits(4);
    computer.run(&["show", "@99"]).exits(4);
    computer.run(&["show", "zz"]).exits(2);
    computer.run(&["show", "01"]).exits(2);
}

#[test]
fn two_moments_are_compared_in_either_direction() {
    let computer = TestComputer::over(&[("a", "one\n"), ("gone", "x\n")]);
    let early = computer.head();
    computer.write("a", "two\n");
    computer.ok(&["rm", "gone"]);
    computer.write("new", "n\n");
    fs::write(computer.path("raw"), [0, 255, 0, 1]).unwrap();
    computer.status();
    let diff = |range: &str| computer.ok(&["diff", range, "--json"]).json_lines();
    let paths =
        |lines: &[Value]| lines.iter().map(|c| c["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let forward = diff(&format!("{early}.."));
    assert_eq!(paths(&forward), ["a", "gone", "new", "raw"]);
    assert!(forward[0]["diff"].as_str().unwrap().contains("-one\n+two"), "{}", forward[0]);
    assert!(forward[3].get("diff").is_none(), "a binary file has no lines");
    let back = diff(&format!("{}..{early}", computer.head()));
    assert!(back[0]["diff"].as_str().unwrap().contains("-two\n+one"), "{}", back[0]);
    assert_eq!(back[1]["after"]["file"]["size"], 2);
    let names = computer.ok(&["diff", &format!("{early}.."), "--names"]).out;
    assert!(names.contains("~ a") && names.contains("- gone") && !names.contains("two"), "{names}");
    computer.ok(&["diff", "2..2"]).says("no file differs");
    computer.run(&["diff", "1..99"]).exits(4);
    assert_eq!(diff(".."), diff("0.."));
}
