//! The past: log with its filters, following, one operation, and the difference between two moments.

use std::fs;

use serde_json::Value;

use crate::home::Home;
use crate::process::Beside;

fn seqs(home: &Home, filter: &[&str]) -> Vec<u64> {
    let args = [&["log", "--json"], filter].concat();
    home.ok(&args).json_lines().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[test]
fn the_log_is_filtered_by_path_operation_type_and_number() {
    let home = Home::new();
    home.write("src/a", "1");
    home.write("src/b", "2");
    let op = home.write("other", "3");
    home.ok(&["mv", "src/a", "moved"]);
    home.ok(&["rm", "src/b"]);
    home.ok(&["undo"]);
    assert_eq!(seqs(&home, &[]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(seqs(&home, &["-n", "2"]), [7, 8]);
    assert_eq!(seqs(&home, &["--path", "src"]), [2, 3, 5, 6, 8]);
    assert_eq!(seqs(&home, &["--path", "src/a"]), [2, 5]);
    assert_eq!(seqs(&home, &["--path", "sr"]), [0; 0]);
    assert_eq!(seqs(&home, &["--op", &op]), [4]);
    assert_eq!(seqs(&home, &["--op", &op[28..]]), [4]);
    assert_eq!(seqs(&home, &["--op", "@8"]), [7, 8]);
    for spelling in ["file.write", "FILE_WRITE", "file_write", "file/write"] {
        assert_eq!(seqs(&home, &["--type", spelling]), [2, 3, 4, 8], "{spelling}");
    }
    assert_eq!(seqs(&home, &["--type", "file"]), [2, 3, 4, 5, 6, 8]);
    assert_eq!(seqs(&home, &["--type", "undo"]), [7]);
    assert_eq!(seqs(&home, &["--type", "file", "--path", "src", "-n", "1"]), [8]);
    home.ok(&["log", "--type", "undo"]).says("undo ");
    home.run(&["log", "--op", "@99"]).exits(4);
}

#[test]
fn since_is_a_span_or_a_date() {
    let home = Home::new();
    home.write("a", "1");
    assert_eq!(seqs(&home, &["--since", "1h"]), [1, 2]);
    assert_eq!(seqs(&home, &["--since", "3d"]), [1, 2]);
    assert_eq!(seqs(&home, &["--since", "2020-01-01"]), [1, 2]);
    assert_eq!(seqs(&home, &["--since", "2999-01-01T08:00"]), [0; 0]);
    let second = home.events()[1]["ts"].as_i64().unwrap();
    while jiff::Timestamp::now().as_millisecond() <= second + 1 {
        std::thread::yield_now();
    }
    home.write("b", "2");
    let third = jiff::Timestamp::from_millisecond(home.events()[2]["ts"].as_i64().unwrap()).unwrap();
    assert_eq!(seqs(&home, &["--since", &third.to_string()]), [3]);
}

#[test]
fn following_shows_what_another_process_writes_in_order() {
    let home = Home::new();
    home.write("before", "0");
    let follower = Beside::start(&home, &["log", "--follow", "--json"]);
    let by_type = Beside::start(&home, &["log", "--follow", "--json", "--type", "file.delete"]);
    let seq = |event: &Value| event["seq"].as_u64().unwrap();
    assert_eq!([seq(&follower.next()), seq(&follower.next())], [1, 2]);
    for index in 0..5 {
        home.write(&format!("f{index}"), "x");
    }
    home.ok(&["rm", "f3"]);
    home.edit("outside", "x");
    home.status();
    let seen: Vec<u64> = (0..7).map(|_| seq(&follower.next())).collect();
    assert_eq!(seen, (3..=9).collect::<Vec<_>>());
    assert_eq!(seq(&by_type.next()), 8);
    // A process that holds the computer is followed in the same way.
    let _watch = Beside::watch(&home);
    home.write("held", "x");
    assert_eq!(seq(&follower.next()), 10);
    assert_eq!(follower.so_far(), Vec::<Value>::new());
}

#[test]
fn one_operation_is_shown_by_id_short_id_or_seq() {
    let home = Home::over(&[("a", "one\n"), ("b", "x\n")]);
    let op = home.write("a", "two\n");
    for name in [op.as_str(), &op[28..], &op[..13], "@4"] {
        let shown = home.json(&["show", name]);
        assert_eq!(shown["op"], op.as_str(), "{name}");
        assert_eq!(shown["changes"][0]["path"], "a");
        assert_eq!(shown["events"][0]["seq"], 4);
    }
    let words = home.ok(&["show", &op[28..]]).says("edit a").says("-one").says("+two").says("can be undone");
    assert!(words.out.contains(&op), "{}", words.out);
    home.ok(&["show", "@2"]).says("create a and 1 more").says("+ b");
    home.ok(&["show", "@1"]).says("stays done");
    home.run(&["show", "ffffffff"]).exits(4);
    home.run(&["show", "@99"]).exits(4);
    home.run(&["show", "zz"]).exits(2);
    home.run(&["show", "01"]).exits(2);
}

#[test]
fn two_moments_are_compared_in_either_direction() {
    let home = Home::over(&[("a", "one\n"), ("gone", "x\n")]);
    let early = home.head();
    home.write("a", "two\n");
    home.ok(&["rm", "gone"]);
    home.write("new", "n\n");
    fs::write(home.path("raw"), [0, 255, 0, 1]).unwrap();
    home.status();
    let diff = |range: &str| home.ok(&["diff", range, "--json"]).json_lines();
    let paths =
        |lines: &[Value]| lines.iter().map(|c| c["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let forward = diff(&format!("{early}.."));
    assert_eq!(paths(&forward), ["a", "gone", "new", "raw"]);
    assert!(forward[0]["diff"].as_str().unwrap().contains("-one\n+two"), "{}", forward[0]);
    assert!(forward[3].get("diff").is_none(), "a binary file has no lines");
    let back = diff(&format!("{}..{early}", home.head()));
    assert!(back[0]["diff"].as_str().unwrap().contains("-two\n+one"), "{}", back[0]);
    assert_eq!(back[1]["after"]["file"]["size"], 2);
    let names = home.ok(&["diff", &format!("{early}.."), "--names"]).out;
    assert!(names.contains("~ a") && names.contains("- gone") && !names.contains("two"), "{names}");
    home.ok(&["diff", "2..2"]).says("no file differs");
    home.run(&["diff", "1..99"]).exits(4);
    assert_eq!(diff(".."), diff("0.."));
}
