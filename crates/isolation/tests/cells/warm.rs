//! A warm backend prepares the next cell while the last one runs, without any visible difference.

use std::path::Path;
use std::time::{Duration, Instant};

use isolation::{Image, Jail, Status};

use crate::fixture::Fixture;

/// Longer than any cleanup takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn groups() -> usize {
    let name = format!("choir-cell-{}-*", std::process::id());
    let found = std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().count()
}

fn launchers() -> Vec<String> {
    let own = format!("/proc/{0}/task/{0}/children", std::process::id());
    let threads = std::fs::read_dir(Path::new(&own).parent().and_then(Path::parent).unwrap()).unwrap();
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Threads that refill spares.
fn keepers() -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = names.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.starts_with("spare cell")).count()
}

fn wait_until(done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < TIMEOUT, "it did not come to pass");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn cells_from_a_spare_share_nothing() {
    let fixture = Fixture::jail();
    fixture.backend.keep_warm();
    for round in 0..4 {
        let finished = fixture.sh(
            "ls /tmp $HOME; echo mark > /tmp/mark; echo mark > $HOME/mark; hostname; cat kept 2>/dev/null",
        );
        assert!(
            matches!(finished.exit.status, Status::Exited(_)),
            "{:?} in round {round}",
            finished.exit.status
        );
        assert!(!finished.out.contains("mark"), "{}", finished.out);
        // The next spare is ready before it is needed.
        wait_until(|| launchers().len() == 1);
    }
    assert_eq!(keepers(), 1);
}

#[test]
fn a_killed_or_incompatible_spare_is_not_used() {
    let mut fixture = Fixture::jail();
    fixture.backend.keep_warm();
    fixture.sh("true").ok();
    wait_until(|| launchers().len() == 1);
    let spare = launchers().remove(0);
    assert!(std::process::Command::new("kill").args(["-9", &spare]).status().unwrap().success());
    fixture.sh("true").ok();
    wait_until(|| launchers().len() == 1);
    fixture.policy.image = Image::Host { tools: vec!["/var/lib".into()] };
    fixture.sh("test -d /var/lib").ok();
    wait_until(|| launchers().len() == 1);
    fixture.policy.image = Image::Host { tools: Vec::new() };
    fixture.sh("test ! -e /var/lib").ok();
}

#[test]
fn a_spare_is_used_only_for_a_compatible_cell_and_ends_with_its_backend() {
    let mut fixture = Fixture::jail();
    fixture.backend.keep_warm();
    fixture.sh("true").ok();
    wait_until(|| launchers().len() == 1);
    fixture.policy.limits.processes = 8;
    let finished = fixture.sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2 & done; echo tried");
    assert!(finished.err.contains("ork"), "{}", finished.err);
    wait_until(|| launchers().len() == 1);
    fixture.backend = std::sync::Arc::new(Jail::new(env!("CARGO_BIN_EXE_choir-cell")));
    wait_until(|| launchers().is_empty() && groups() == 0);
}
