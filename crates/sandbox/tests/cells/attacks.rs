//! The attacks that leave something for the host to read, through the whole computer: after any of them the
//! log is sound, the disk matches the log, and undo reverts everything.

use std::path::Path;
use std::sync::Mutex;

use shared_types::payload::tool::ToolStatus;
use shared_types::wire::{CellCommand, CommandLimits};

use crate::attack::{Attack, Workspace};
use crate::test_computer::TestComputer;

/// Attacks on the reading of what they wrote, by the beginning of their names.
const KINDS: [&str; 7] = ["poison", "write", "read-log", "setuid", "overlay", "disk-giant", "device"];
const LANES: usize = 2;

#[test]
fn after_any_attack_the_log_and_the_workspace_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/attacks");
    let all = Attack::all(&folder);
    let chosen = |attack: &&Attack| {
        let plain = !attack.terminal && attack.workspace == Workspace::Layered;
        plain && KINDS.iter().any(|kind| attack.name.starts_with(kind))
    };
    let chosen: Vec<&Attack> = all.iter().filter(chosen).collect();
    assert!(chosen.len() >= 20, "{}", chosen.len());
    let queue = Mutex::new(chosen.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let Some(attack) = queue.lock().unwrap().next() else { return };
                    withstand(attack);
                }
            });
        }
    });
}

fn withstand(attack: &Attack) {
    let computer = TestComputer::new();
    computer.write("notes.txt", "notes");
    for (path, text) in &attack.files {
        computer.write(path, text);
    }
    let before = computer.tree();
    let outside = tempfile::tempdir().unwrap();
    let ran = computer
        .run(command(attack, &computer, outside.path()))
        .unwrap_or_else(|e| panic!("{}: {e}", attack.name));
    let said = computer.output(&ran);
    assert!(!said.contains("BREACH"), "{}: {said}", attack.name);
    if !matches!(ran.status, Some(ToolStatus::Exited { .. })) {
        assert_eq!(computer.tree(), before, "{} was ended and changed something", attack.name);
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{}", attack.name);
    computer.assert_settled();
    if computer.tree() != before {
        computer.undo(ran.op);
        assert_eq!(computer.tree(), before, "{}", attack.name);
        computer.assert_settled();
    }
}

fn command(attack: &Attack, computer: &TestComputer, outside: &Path) -> CellCommand {
    let limits = attack.limits();
    let number =
        |name: &str| limits.get(name).and_then(toml::Value::as_integer).and_then(|n| u64::try_from(n).ok());
    let seconds = limits.get("time").and_then(toml::Value::as_float).map(|time| time.ceil() as u64);
    let limits = CommandLimits {
        memory: number("memory"),
        processes: number("processes").and_then(|n| u32::try_from(n).ok()),
        seconds,
        disk: number("disk"),
        output: number("output"),
    };
    // What the scripts aim at.
    let targets = [("OUTSIDE", outside), ("HOST_WORKSPACE", computer.folder.path()), ("OTHER", outside)];
    let targets = targets.map(|(name, path)| format!("{name}={}", path.display()));
    let argv =
        ["/usr/bin/env".to_owned()].into_iter().chain(targets).chain(attack.argv().map(ToOwned::to_owned));
    CellCommand { argv: argv.collect(), limits, ..CellCommand::default() }
}
