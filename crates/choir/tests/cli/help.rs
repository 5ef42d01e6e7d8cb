//! Help, colours, and error messages for wrong arguments.

use std::process::Command;

use crate::test_computer::{CommandOutput, TestComputer, choir};

fn help(args: &[&str]) -> String {
    CommandOutput::of(choir().args(args)).exits(0).out
}

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let list = help.split_once("Commands:\n").map(|(_, rest)| rest).unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_command_has_help_with_an_example() {
    let top = help(&["--help"]);
    let commands = listed(&top);
    for expected in ["init", "status", "write", "rm", "mv", "log", "show", "undo", "redo", "restore", "diff"]
    {
        assert!(commands.iter().any(|name| name == expected), "{expected} is not listed in {commands:?}");
    }
    for expected in
        ["replay", "verify", "checkpoint", "export", "import", "purge", "doctor", "bench", "watch"]
    {
        assert!(commands.iter().any(|name| name == expected), "{expected} is not listed in {commands:?}");
    }
    assert!(top.contains("Example") && top.contains("Exit codes"), "{top}");
    for command in commands.iter().filter(|name| *name != "help") {
        let text = help(&[command, "--help"]);
        assert!(text.contains("Example"), "{command}: {text}");
        assert!(text.contains(&format!("choir {command}")), "{command}: the example does not use it");
        for below in listed(&text).iter().filter(|name| *name != "help") {
            assert!(help(&[command, below, "--help"]).contains("Example"), "{command} {below}");
        }
    }
}

#[test]
fn a_usage_error_has_its_own_exit_code() {
    let computer = TestComputer::new();
    for args in [
        &["nonsense"][..],
        &[],
        &["log", "--no-such-flag"],
        &["restore", "x"],
        &["purge"],
        &["purge", "--reason", "x"],
    ] {
        computer.run(args).exits(2);
    }
    computer.run(&["write", "a", "--mode", "888"]).exits(2).says("octal");
    computer.run(&["write", "a", "--base", "abc"]).exits(2).says("SHA-256");
    computer.run(&["write", "a", "--base", &"0".repeat(64), "--new"]).exits(2);
    computer.run(&["diff", "1-2"]).exits(2).says("FROM..TO");
    computer.run(&["log", "--since", "yesterday-ish"]).exits(2).says("yesterday-ish");
    computer.run(&["log", "--type", "File Write"]).exits(2).says("file.write");
    computer.run(&["show", "xyz"]).exits(2).says("@SEQ");
    computer.run(&["undo", "abc"]).exits(2).says("four or more digits");
}

#[test]
fn a_folder_that_is_no_computer_is_reported_as_such() {
    let computer = TestComputer::bare();
    for args in [&["status"][..], &["log"], &["undo"], &["verify"], &["watch"], &["export", "x.zip"]] {
        computer.run(args).exits(4).says("choir init");
    }
    computer.run(&["-C", "/no/such/folder", "status"]).exits(4).says("/no/such/folder");
    assert!(computer.files().is_empty(), "{:?}", computer.files());
}

#[test]
fn output_that_is_no_terminal_has_no_colours() {
    let computer = TestComputer::over(&[("a.txt", "one\n")]);
    computer.write("a.txt", "two\n");
    for args in
        [&["status"][..], &["log"], &["show", "@2"], &["diff", "1.."], &["undo", "--preview"], &["verify"]]
    {
        let ran = computer.command(args).env("CLICOLOR_FORCE", "1").output().unwrap();
        assert!(!ran.stdout.contains(&0x1b), "{args:?}");
        assert!(!ran.stderr.contains(&0x1b), "{args:?}");
    }
    let failed = computer.run(&["cat", "nothing"]).exits(4);
    assert!(!failed.err.contains('\x1b'), "{failed:?}");
}

#[test]
fn a_terminal_has_colours_unless_no_color_is_set() {
    let computer = TestComputer::over(&[("a.txt", "one\n")]);
    let on_terminal = |no_color: Option<&str>| {
        let mut script = Command::new("script");
        let typed = format!("'{}' log", env!("CARGO_BIN_EXE_choir"));
        script.args(["-qec", &typed, "/dev/null"]).current_dir(&computer.work).env("TERM", "xterm");
        match no_color {
            Some(value) => script.env("NO_COLOR", value),
            None => script.env_remove("NO_COLOR"),
        };
        script.stdin(std::process::Stdio::null()).output()
    };
    let plain = match on_terminal(Some("1")) {
        Ok(output) => output,
        Err(e) => return println!("skipped: there is no 'script' to make a terminal with: {e}"),
    };
    assert!(String::from_utf8_lossy(&plain.stdout).contains("create a.txt"), "{plain:?}");
    assert!(!plain.stdout.contains(&0x1b), "{plain:?}");
    for colourful in [on_terminal(None).unwrap(), on_terminal(Some("")).unwrap()] {
        assert!(colourful.stdout.contains(&0x1b), "{colourful:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure_but_a_full_disk_is() {
    let computer = TestComputer::over(&[("big.txt", &"line\n".repeat(200_000))]);
    let piped = |typed: &str| {
        let mut shell = Command::new("bash");
        let script = format!("set -o pipefail; {typed}").replace("choir", env!("CARGO_BIN_EXE_choir"));
        CommandOutput::of(shell.args(["-c", &script]).current_dir(&computer.work))
    };
    assert_eq!(piped("choir cat big.txt | head -n 1").exits(0).err, "");
    assert_eq!(piped("choir show @2 | head -n 1").exits(0).err, "");
    piped("choir log > /dev/full").exits(1).says("No space left");
    piped("choir cat big.txt > /dev/full").exits(1).says("No space left");
}
