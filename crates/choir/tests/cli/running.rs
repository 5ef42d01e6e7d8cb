//! `choir run`: its output, its exit codes, and the state after a process was killed at any moment.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::BackgroundProcess;
use crate::test_computer::TestComputer;

#[test]
fn a_command_prints_and_ends_as_if_run_without_us() {
    let computer = TestComputer::over(&[("a.txt", "a\n")]);
    let ran = computer.run(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (7, "out\n", "err\n"));
    let ran = computer.run(&["run", "--", "sh", "-c", "echo more >> a.txt; rm -f nothing"]).exits(0);
    assert!(ran.err.contains("1 change") && ran.err.contains("choir undo"), "{}", ran.err);
    computer.ok(&["undo"]);
    assert_eq!(computer.ok(&["cat", "a.txt"]).out, "a\n");
    let ran = computer.feed(&["run", "-i", "--", "tr", "a-z", "A-Z"], b"shout\n").exits(0);
    assert_eq!(ran.out, "SHOUT\n");
    computer.ok(&["verify"]);
}

#[test]
fn a_dry_run_is_shown_and_settled_by_its_id() {
    let computer = TestComputer::over(&[("a.txt", "a\n")]);
    let ran =
        computer.run(&["run", "--dry", "--json", "--", "sh", "-c", "echo b > b.txt; rm a.txt"]).exits(0);
    let held = ran.json_lines().pop().unwrap()["ran"].clone();
    assert_eq!((held["done"]["total"].as_u64(), held["status"].is_null()), (Some(2), true), "{held}");
    assert!(computer.path("a.txt").exists() && !computer.path("b.txt").exists());
    let op = held["op"].as_str().unwrap();
    assert_eq!(held["code"].as_i64(), Some(0), "{held}");
    computer.ok(&["run", "--accept", op]);
    assert!(!computer.path("a.txt").exists() && computer.path("b.txt").exists());
    computer.run(&["run", "--accept", op]).exits(4);
    computer.ok(&["verify"]);
}

#[test]
fn a_dry_run_that_fails_says_so_while_it_waits() {
    let computer = TestComputer::over(&[("a.txt", "a\n")]);
    let ran = computer.run(&["run", "--dry", "--", "sh", "-c", "rm a.txt; exit 3"]).exits(0);
    assert!(ran.err.contains("1 change, not applied (exit code 3)"), "{}", ran.err);
    let listed = computer.ok(&["log"]).out;
    assert!(listed.contains("dry run exited with 3: 1 change waits"), "{listed}");
    let shown = computer.ok(&["show", &format!("@{}", listed.lines().count())]).out;
    assert!(shown.contains("ended      dry run exited with 3"), "{shown}");
}

#[test]
fn misuse_is_named_and_changes_nothing() {
    let computer = TestComputer::over(&[("a.txt", "a\n")]);
    let before = computer.snapshot();
    for (args, code, words) in [
        (&["run"][..], 2, "CMD"),
        (&["run", "--mem", "lots", "--", "true"], 2, "size"),
        (&["run", "--net", "http://x/", "--", "true"], 2, "host"),
        (&["run", "--accept", "abcd"], 4, "no operation"),
        (&["run", "--time", "0", "--", "true"], 2, "limit"),
    ] {
        let ran = computer.run(args).exits(code);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
    }
    assert_eq!(computer.snapshot(), before);
}

#[test]
fn what_cells_can_do_here_is_told_by_the_doctor() {
    let computer = TestComputer::new();
    let said = computer.run(&["doctor"]);
    assert!(said.out.contains("control groups") && said.out.contains("a cell"), "{}", said.out);
}

#[test]
fn a_command_through_the_holder_streams_and_is_ended_with_its_caller() {
    let computer = TestComputer::over(&[("a.txt", "a\n")]);
    let _watch = BackgroundProcess::watch(&computer);
    let ran = computer.run(&["run", "--", "sh", "-c", "echo held; echo x > x.txt"]).exits(0);
    assert_eq!(ran.out, "held\n");
    assert!(computer.path("x.txt").exists());

    let marker = format!("86{}", std::process::id());
    let mut caller = computer.command(&["run", "--", "sh", "-c", &format!("rm -f *; sleep {marker}")]);
    let mut caller = caller.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| is_asleep(&marker));
    caller.kill().unwrap();
    caller.wait().unwrap();
    wait_until(|| !is_running(&marker));
    wait_until(|| last_result(&computer) == "cancelled");
    assert!(computer.path("a.txt").exists());
}

/// The reason why the last command was stopped, or how it ended.
fn last_result(computer: &TestComputer) -> String {
    let events = computer.ok(&["log", "--all", "--json", "--type", "tool.result"]).json_lines();
    let status = events.last().map(|event| event["payload"]["status"].clone()).unwrap_or_default();
    let word = status["why"].as_str().or(status["is"].as_str()).unwrap_or_default();
    word.to_owned()
}

/// Whether a process is left whose command line ends with this: the command, its shell, or its caller.
fn is_running(marker: &str) -> bool {
    matches_a_process(&format!("sleep {marker}$"))
}

/// Whether the command itself runs, not only a process that was asked to run it.
fn is_asleep(marker: &str) -> bool {
    matches_a_process(&format!("^sleep {marker}$"))
}

fn matches_a_process(pattern: &str) -> bool {
    let found = Command::new("pgrep").args(["-f", pattern]).output().unwrap();
    !found.stdout.is_empty()
}

fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..1500 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it did not come to pass in half a minute");
}

/// Control groups that a process of ours created and no process removed.
fn groups_of(process: u32) -> Vec<String> {
    let name = format!("choir-cell-{process}-*");
    let found = Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().map(ToOwned::to_owned).collect()
}

/// The process to kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// The process that holds the computer.
    Holder,
    /// The process that it started to set up the sandbox.
    Launcher,
}

#[test]
fn after_a_kill_at_any_moment_the_workspace_is_as_before_or_as_after() {
    let computer = TestComputer::over(&[("keep.txt", "k\n"), ("src/a.rs", "a\n"), ("src/b.rs", "b\n")]);
    let mut dice = 0x2026_1115_u64;
    for round in 0..24 {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let victim = if round % 3 == 2 { Victim::Launcher } else { Victim::Holder };
        let pause = Duration::from_micros((dice >> 33) % 90_000);
        let marker = format!("99{}{round}", std::process::id());
        let script = format!(
            "rm -rf src; mkdir new{round}; for i in 1 2 3 4 5 6 7 8; do echo $i > new{round}/f$i; done; \
             echo {round} >> keep.txt; sleep 0.0{}; : sleep {marker}",
            dice >> 61
        );
        let before = computer.files();
        let mut child = computer.command(&["run", "--", "sh", "-c", &script]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let holder = child.id();
        std::thread::sleep(pause);
        match victim {
            Victim::Holder => child.kill().unwrap(),
            Victim::Launcher => {
                let _ = Command::new("pkill").args(["-KILL", "-P", &holder.to_string()]).status();
            }
        }
        child.wait().unwrap();

        // The next process to open the computer finds it intact.
        let status = computer.json(&["status"]);
        assert_eq!(status["captured"], 0, "{victim:?} in round {round}: {status}");
        let after = computer.files();
        let is_done = after.contains_key(&format!("new{round}/f8"));
        if is_done {
            assert!(!after.contains_key("src/a.rs"), "half of round {round}");
            computer.ok(&["undo"]);
        }
        assert_eq!(computer.files(), before, "{victim:?} in round {round}");
        let open = computer.ok(&["log", "--all", "--json"]).json_lines();
        let count = |name: &str| open.iter().filter(|event| event["type"] == name).count();
        assert_eq!(count("tool.call"), count("tool.result"), "a call is open after round {round}");
        wait_until(|| !is_running(&marker));
        wait_until(|| match victim {
            Victim::Holder => groups_of(holder).is_empty(),
            // With its launcher dead, no process removes a group before the next command.
            Victim::Launcher => true,
        });
        let layers = std::fs::read_dir(computer.state("cells")).map_or(0, |layers| layers.count());
        assert_eq!(layers, 0, "round {round}");
    }
    computer.ok(&["run", "--", "true"]);
    computer.ok(&["verify"]);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(computer.work.to_str().unwrap()), "{mounts}");
}
