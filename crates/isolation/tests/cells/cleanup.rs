//! However a cell ends, nothing remains: no process, no mount, no control group.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use isolation::{Command, Size};

use crate::fixture::{Fixture, with_every_backend};

with_every_backend!(a_host_that_is_killed_leaves_nothing, a_launcher_that_is_killed_leaves_nothing);

/// Tells a child test process with which backend it should keep a cell running.
const HOLD: &str = "CHOIR_TEST_HOLD";
const SLEEP: &str = "8765432.1";
/// Longer than any cleanup takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn a_host_that_is_killed_leaves_nothing(fixture: Fixture) {
    let mut host = Host::start(&fixture);
    host.process.kill().unwrap();
    host.process.wait().unwrap();
    gone(&fixture, &host);
}

fn a_launcher_that_is_killed_leaves_nothing(fixture: Fixture) {
    let mut host = Host::start(&fixture);
    let launcher = children(host.process.id());
    assert_eq!(launcher.len(), 1, "{launcher:?}");
    let killed = Program::new("kill").args(["-9", &launcher[0].to_string()]).status().unwrap();
    assert!(killed.success());
    // The host stops its cell when its input ends.
    drop(host.process.stdin.take());
    host.process.wait().unwrap();
    gone(&fixture, &host);
}

#[test]
fn a_runtime_that_is_killed_leaves_nothing() {
    let Some(fixture) = Fixture::container() else { return };
    let mut host = Host::start(&fixture);
    let runtime = children(children(host.process.id())[0]);
    assert_eq!(runtime.len(), 1, "{runtime:?}");
    let killed = Program::new("kill").args(["-9", &runtime[0].to_string()]).status().unwrap();
    assert!(killed.success());
    gone(&fixture, &host);
    host.process.kill().unwrap();
    host.process.wait().unwrap();
}

/// A separate process with a running cell.
struct Host {
    process: Child,
    groups: String,
}

impl Host {
    fn start(fixture: &Fixture) -> Self {
        let mut process = Program::new(std::env::current_exe().unwrap())
            .args(["--exact", "cleanup::hold", "--ignored", "--nocapture"])
            .env(HOLD, fixture.backend.name())
            .env("TMPDIR", fixture.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.ends_with("held")), "the cell did not start");
        let groups = format!("choir-cell-{}-", process.id());
        let host = Self { process, groups };
        assert!(!sleepers(fixture.folder.path()).is_empty());
        host
    }
}

#[test]
#[ignore = "other tests start it"]
fn hold() {
    let fixture = match std::env::var(HOLD).as_deref() {
        Ok("jail") => Fixture::jail(),
        Ok("container") => Fixture::container().unwrap(),
        other => panic!("{other:?}"),
    };
    let cell = fixture.start();
    let _pty = cell.pty(&Command::new(["/bin/sleep", SLEEP]), Size { columns: 80, rows: 24 }).unwrap();
    println!("held");
    let _ = std::io::stdin().lines().next();
    cell.stop();
}

/// Waits until nothing remains, and fails with what does.
fn gone(fixture: &Fixture, host: &Host) {
    let started = Instant::now();
    loop {
        let mut finished = sleepers(fixture.folder.path());
        finished.extend(
            groups(Path::new("/sys/fs/cgroup"), &host.groups).iter().map(|path| path.display().to_string()),
        );
        if finished.is_empty() {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{finished:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes that see a mount of this folder.
pub(crate) fn sleepers(folder: &Path) -> Vec<String> {
    let folder = folder.file_name().unwrap().to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let seeing = processes.filter(|process| {
        std::fs::read_to_string(process.join("mountinfo")).is_ok_and(|mounts| mounts.contains(folder))
    });
    seeing.map(|process| std::fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
}

fn groups(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        }
        found.extend(groups(&entry.path(), prefix));
    }
    found
}

fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).unwrap().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>())
        .collect()
}
