//! `choir ask`, `choir runs` and `choir approve` without an answer of a model: what is recorded, listed and refused.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::machine::Machine;
use crate::process::{BackgroundProcess, eventually};
use crate::test_computer::TestComputer;

/// Starts a run through a process that holds the computer.
fn started(computer: &TestComputer, args: &[&str]) -> Value {
    computer.json(&[&["ask"], args].concat())["run"].clone()
}

fn id(run: &Value) -> String {
    run["run"].as_str().unwrap().to_owned()
}

/// The one run of a list.
fn only_run(computer: &TestComputer) -> Value {
    let mut runs = computer.ok(&["runs", "--json"]).json_lines();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// The steps that the person took. The process that holds the computer carries the run out meanwhile.
fn by_person<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let by_agent = |label: &str| {
        label.starts_with("conductor: ") || label.contains("did not answer") || label == "stopped"
    };
    labels.filter(|label| !by_agent(label)).collect()
}

#[test]
fn an_objective_is_recorded_by_the_holder_and_listed() {
    let computer = TestComputer::over(&[("notes.md", "hum\n")]);
    let _watch = BackgroundProcess::watch(&computer);
    let run =
        started(&computer, &["Write about bees", "--attach", "notes.md", "--budget", "0.50", "--model", "m"]);
    assert_eq!(run["title"], "Write about bees");
    assert_eq!(id(&only_run(&computer)), id(&run));
    let shown = computer.json(&["runs", &id(&run)]);
    assert_eq!((&shown["model"], &shown["budget"]["micros"]), (&"m".into(), &500_000.into()));
    let start = computer.ok(&["log", "--json", "--type", "run.start"]).json_lines().remove(0);
    assert_eq!((&start["run_id"], &start["op"]), (&run["run"], &run["run"]));
    assert_eq!(start["payload"]["attached"], serde_json::json!(["notes.md"]));

    let digits = &id(&run)[28..];
    let said = computer.ok(&["runs", digits]).out;
    assert!(said.contains("Write about bees") && said.contains(digits), "{said}");
    let step = computer.ok(&["runs", digits, "--step", &start["seq"].to_string()]).out;
    assert!(step.contains("in:\n  Write about bees"), "{step}");
}

#[test]
fn a_run_is_steered_paused_resumed_and_stopped_by_its_id() {
    let (machine, computer) = (Machine::with_silent_model(), TestComputer::new());
    let _watch = BackgroundProcess::watch_on(&machine, &computer);
    let run = id(&started(&computer, &["work"]));
    let digits = &run[28..];
    computer.ok(&["runs", "steer", digits, "shorter,", "please"]);
    let told = computer.ok(&["runs", "pause", digits]).out;
    assert!(told.contains("paused"), "{told}");
    assert_eq!(only_run(&computer)["state"], "paused");
    let told = computer.ok(&["runs", "resume", digits, "--budget", "steps=7"]).out;
    assert!(told.contains("resumed"), "{told}");
    assert_eq!(computer.json(&["runs", digits])["budget"]["steps"], 7);
    assert_eq!(computer.json(&["runs", "stop", digits])["run"]["state"], "cancelled");
    computer.run(&["runs", "stop", digits]).exits(5).says("is over");
    let steps = computer.json(&["runs", digits])["steps"].as_array().unwrap().clone();
    let labels = steps.iter().map(|step| step["label"].as_str().unwrap());
    assert_eq!(by_person(labels), ["work", "you: shorter, please", "pause", "resume", "stop the run"]);
    computer.run(&["runs", "undo", digits]).exits(5).says("nothing");
    computer.ok(&["verify"]);
}

#[test]
fn misuse_is_named_and_changes_nothing() {
    let computer = TestComputer::over(&[("a.txt", "a\n")]);
    let before = computer.snapshot();
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
        (&["approve", "--once"], 4, "no open question"),
        (&["approve", "abcd1234", "--run", "--always"], 2, "cannot be used"),
        (&["approve", "--revoke", "abcd1234"], 4, "no grant"),
    ] {
        let ran = computer.run(args).exits(code);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
    }
    assert_eq!(computer.ok(&["approve"]).out, "no pending questions\n");
    assert!(computer.ok(&["approve", "--grants"]).out.contains("nothing without asking"));
    assert_eq!(computer.ok(&["runs"]).out, "no runs; choir ask starts one\n");
    assert_eq!(computer.snapshot(), before);
}

#[test]
fn without_a_holder_ask_hosts_the_run_and_ctrl_c_leaves_it_paused() {
    let computer = TestComputer::new();
    let mut asking = computer.command(&["ask", "work", "--json"]);
    let mut asking = asking.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the run is recorded", || {
        computer.run(&["log", "--json", "--type", "run.start"]).out.contains("run.start")
    });
    // Other commands reach the same computer meanwhile.
    computer.write("a.txt", "beside\n");
    let pid = rustix::process::Pid::from_child(&asking);
    let _ = rustix::process::kill_process(pid, Signal::INT);
    let mut status = None;
    eventually("it ends", || {
        status = asking.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(11), "paused");
    assert_eq!(only_run(&computer)["state"], "paused");
    assert!(!computer.state("choir.sock").exists(), "the computer is let go");
    computer.ok(&["runs", "stop", &id(&only_run(&computer))]);
    computer.ok(&["verify"]);
}

#[test]
fn watching_a_run_ends_with_it_and_says_how() {
    let (machine, computer) = (Machine::with_silent_model(), TestComputer::new());
    let _watch = BackgroundProcess::watch_on(&machine, &computer);
    let run = id(&started(&computer, &["work"]));
    let mut watching = computer.command(&["runs", &run, "--watch", "--json"]);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    computer.ok(&["runs", "steer", &run, "hear, hear"]);
    computer.ok(&["runs", "stop", &run]);
    let ended = watching.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(9));
    let said = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let labels = lines.iter().filter_map(|line| line["step"]["label"].as_str());
    assert_eq!(by_person(labels), ["work", "you: hear, hear", "stop the run"]);
    assert_eq!(lines.last().unwrap()["run"]["state"], "cancelled");
}
