//! `choir ask`, `choir runs` and `choir approve` as far as they need no model: what is recorded, listed and refused.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::home::Home;
use crate::process::{Beside, eventually};

/// Starts a run through a process that holds the computer.
fn started(home: &Home, args: &[&str]) -> Value {
    home.json(&[&["ask"], args].concat())["run"].clone()
}

fn id(run: &Value) -> String {
    run["run"].as_str().unwrap().to_owned()
}

/// The one run of a list.
fn only_run(home: &Home) -> Value {
    let mut runs = home.ok(&["runs", "--json"]).json_lines();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

#[test]
fn an_objective_is_recorded_by_the_holder_and_listed() {
    let home = Home::over(&[("notes.md", "hum\n")]);
    let _watch = Beside::watch(&home);
    let run =
        started(&home, &["Write about bees", "--attach", "notes.md", "--budget", "0.50", "--model", "m"]);
    assert_eq!(run["title"], "Write about bees");
    assert_eq!(id(&only_run(&home)), id(&run));
    let shown = home.json(&["runs", &id(&run)]);
    assert_eq!((&shown["model"], &shown["budget"]["micros"]), (&"m".into(), &500_000.into()));
    let start = home.ok(&["log", "--json", "--type", "run.start"]).json_lines().remove(0);
    assert_eq!((&start["run_id"], &start["op"]), (&run["run"], &run["run"]));
    assert_eq!(start["payload"]["attached"], serde_json::json!(["notes.md"]));

    let digits = &id(&run)[28..];
    let said = home.ok(&["runs", digits]).out;
    assert!(said.contains("Write about bees") && said.contains(digits), "{said}");
    let step = home.ok(&["runs", digits, "--step", &start["seq"].to_string()]).out;
    assert!(step.contains("in:\n  Write about bees"), "{step}");
}

#[test]
fn a_run_is_steered_paused_resumed_and_stopped_by_its_id() {
    let home = Home::new();
    let _watch = Beside::watch(&home);
    let run = id(&started(&home, &["work"]));
    let digits = &run[28..];
    home.ok(&["runs", "steer", digits, "shorter,", "please"]);
    let told = home.ok(&["runs", "pause", digits]).out;
    assert!(told.contains("paused"), "{told}");
    assert_eq!(only_run(&home)["state"], "paused");
    let told = home.ok(&["runs", "resume", digits, "--budget", "steps=7"]).out;
    assert!(told.contains("resumed"), "{told}");
    assert_eq!(home.json(&["runs", digits])["budget"]["steps"], 7);
    assert_eq!(home.json(&["runs", "stop", digits])["run"]["state"], "cancelled");
    home.run(&["runs", "stop", digits]).exits(5).says("is over");
    let steps = home.json(&["runs", digits])["steps"].as_array().unwrap().clone();
    let labels: Vec<_> = steps.iter().map(|step| step["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["work", "you: shorter, please", "pause", "resume", "stop the run"]);
    home.run(&["runs", "undo", digits]).exits(5).says("nothing");
    home.ok(&["verify"]);
}

#[test]
fn misuse_is_named_and_changes_nothing() {
    let home = Home::over(&[("a.txt", "a\n")]);
    let before = home.standing();
    for (args, code, words) in [
        (&["ask"][..], 2, "OBJECTIVE"),
        (&["ask", "work", "--budget", "much"], 2, "0.50"),
        (&["ask", "work", "--attach", "nothing.txt"], 4, "nothing.txt"),
        (&["ask", "work", "--attach", "/etc/passwd"], 2, "/etc/passwd"),
        (&["ask", "  "], 5, "empty"),
        (&["runs", "abcd"], 4, "no run"),
        (&["runs", "ab"], 2, "four or more"),
        (&["runs", "stop", "abcd1234"], 4, "no run"),
        (&["runs", "--step", "4"], 2, "RUN"),
        (&["approve", "abcd1234"], 4, "not open"),
        (&["approve", "--once"], 4, "nothing waits"),
        (&["approve", "abcd1234", "--run", "--always"], 2, "cannot be used"),
        (&["approve", "--revoke", "abcd1234"], 4, "no permission"),
    ] {
        let ran = home.run(args).exits(code);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
    }
    assert_eq!(home.ok(&["approve"]).out, "nothing waits for you\n");
    assert!(home.ok(&["approve", "--grants"]).out.contains("nothing without asking"));
    assert_eq!(home.ok(&["runs"]).out, "no runs; choir ask starts one\n");
    assert_eq!(home.standing(), before);
}

#[test]
fn where_nobody_holds_the_computer_ask_does_and_ctrl_c_leaves_the_run_paused() {
    let home = Home::new();
    let mut asking = home.command(&["ask", "work", "--json"]);
    let mut asking = asking.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the run is recorded", || {
        home.run(&["log", "--json", "--type", "run.start"]).out.contains("run.start")
    });
    // Other commands reach the same computer meanwhile.
    home.write("a.txt", "beside\n");
    let pid = rustix::process::Pid::from_child(&asking);
    let _ = rustix::process::kill_process(pid, Signal::INT);
    let mut status = None;
    eventually("it ends", || {
        status = asking.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(11), "paused");
    assert_eq!(only_run(&home)["state"], "paused");
    assert!(!home.state("choir.sock").exists(), "the computer is let go");
    home.ok(&["runs", "stop", &id(&only_run(&home))]);
    home.ok(&["verify"]);
}

#[test]
fn watching_a_run_ends_with_it_and_says_how() {
    let home = Home::new();
    let _watch = Beside::watch(&home);
    let run = id(&started(&home, &["work"]));
    let mut watching = home.command(&["runs", &run, "--watch", "--json"]);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    home.ok(&["runs", "steer", &run, "hear, hear"]);
    home.ok(&["runs", "stop", &run]);
    let ended = watching.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(9));
    let said = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let labels: Vec<_> = lines.iter().filter_map(|line| line["step"]["label"].as_str()).collect();
    assert_eq!(labels, ["work", "you: hear, hear", "stop the run"]);
    assert_eq!(lines.last().unwrap()["run"]["state"], "cancelled");
}
