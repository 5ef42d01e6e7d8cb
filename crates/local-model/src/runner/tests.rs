//! The runner with shell scripts as children.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

const READY: &str = r#"echo '{"loading":{"done":1,"total":2}}'; echo '{"ready":{"port":4711}}'"#;

/// A runner whose child saves its settings to a file and then runs this script.
fn runner(folder: &TempDir, script: &str, idle_timeout: Duration) -> LocalModelRunner {
    let program = folder.path().join("child.sh");
    let settings = folder.path().join("settings.json");
    let script = format!("#!/bin/sh\nread -r line\necho \"$line\" >> {}\n{script}\n", settings.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let weights = folder.path().join("weights.gguf");
    std::fs::write(&weights, "w").unwrap();
    let options = RunnerOptions {
        idle_timeout,
        start_timeout: Duration::from_secs(5),
        ..RunnerOptions::new(weights, 6000)
    };
    LocalModelRunner::with_program(program, options)
}

async fn stopped(runner: &LocalModelRunner) -> StopCause {
    let mut status = runner.status();
    let stopped = status.wait_for(|status| matches!(status, RunnerStatus::Stopped(_)));
    let status = tokio::time::timeout(Duration::from_secs(5), stopped).await.unwrap().unwrap().clone();
    match status {
        RunnerStatus::Stopped(ending) => ending,
        RunnerStatus::Starting { .. } | RunnerStatus::Ready { .. } => unreachable!(),
    }
}

fn starts(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("settings.json")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const LONG: Duration = Duration::from_secs(100);

#[tokio::test]
async fn one_child_serves_all_leases_and_gets_its_settings_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, &format!("{READY}\ncat > /dev/null"), LONG);
    let (a, b) = tokio::join!(runner.acquire(), runner.acquire());
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.base_url(), "http://127.0.0.1:4711/v1");
    assert_eq!(a.bearer(), b.bearer());
    let starts = starts(folder.path());
    assert_eq!(starts.len(), 1);
    assert_eq!(starts[0]["bearer"], a.bearer());
    assert_eq!(starts[0]["context"], 6000, "the context size of the options");
    assert!(!format!("{a:?}").contains(a.bearer()));
    runner.stop().await;
    assert!(a.is_broken());
    assert_eq!(stopped(&runner).await, StopCause::Requested);
}

#[tokio::test]
async fn a_crash_is_detected_and_the_next_lease_starts_a_new_child() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, &format!("{READY}\necho 'last words' >&2; sleep 0.1; kill -9 $$"), LONG);
    let lease = runner.acquire().await.unwrap();
    let StopCause::Crashed(why) = stopped(&runner).await else { panic!() };
    assert!(why.contains("killed") && why.contains("last words"), "{why}");
    assert!(lease.is_broken());
    let again = runner.acquire().await.unwrap();
    assert_ne!(again.bearer(), lease.bearer());
    assert_eq!(starts(folder.path()).len(), 2);
}

#[tokio::test]
async fn a_child_that_keeps_crashing_is_not_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, r#"echo '{"failed":{"message":"no such tensor"}}'; exit 1"#, LONG);
    for _ in 0..MAX_CRASHES {
        let error = runner.acquire().await.unwrap_err();
        assert_eq!(error.to_string(), "the local model did not start: no such tensor");
    }
    assert!(matches!(runner.acquire().await, Err(StartError::KeepsCrashing(_))));
    assert_eq!(starts(folder.path()).len(), MAX_CRASHES);
}

#[tokio::test]
async fn cancelling_the_start_stops_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, "exec cat > /dev/null", LONG);
    let waited = tokio::time::timeout(Duration::from_millis(300), runner.acquire()).await;
    assert!(waited.is_err());
    assert_eq!(stopped(&runner).await, StopCause::Requested);
}

#[tokio::test]
async fn a_child_that_is_never_ready_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, "exec cat > /dev/null", LONG);
    let options = RunnerOptions { start_timeout: Duration::from_millis(200), ..runner.options().clone() };
    let runner = LocalModelRunner::with_program(folder.path().join("child.sh"), options);
    assert!(matches!(runner.acquire().await, Err(StartError::TooSlow(_))));
}

#[tokio::test]
async fn running_out_of_memory_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'memory allocation of 4096 bytes failed' >&2; kill -6 $$";
    let error = runner(&folder, script, LONG).acquire().await.unwrap_err();
    assert!(error.to_string().contains("exceeded its memory limit"), "{error}");
}

#[tokio::test]
async fn an_idle_child_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, &format!("{READY}\ncat > /dev/null"), Duration::from_millis(100));
    let lease = runner.acquire().await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(matches!(*runner.status().borrow(), RunnerStatus::Ready { .. }), "a lease keeps it");
    drop(lease);
    assert_eq!(stopped(&runner).await, StopCause::Idle);
}

#[tokio::test]
async fn a_working_child_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let work = r#"echo '{"working":true}'; sleep 0.5; echo '{"working":false}'"#;
    let runner = runner(&folder, &format!("{READY}\n{work}\ncat > /dev/null"), Duration::from_millis(100));
    drop(runner.acquire().await.unwrap());
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert!(matches!(*runner.status().borrow(), RunnerStatus::Ready { .. }));
    assert_eq!(stopped(&runner).await, StopCause::Idle);
}

#[tokio::test]
async fn the_child_stops_when_the_runner_and_all_leases_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let runner = runner(&folder, &format!("{READY}\ncat > /dev/null\ntouch {}", gone.display()), LONG);
    let lease = runner.acquire().await.unwrap();
    let mut status = runner.status();
    drop(runner);
    drop(lease);
    let stopped = status.wait_for(|status| matches!(status, RunnerStatus::Stopped(StopCause::Requested)));
    tokio::time::timeout(Duration::from_secs(5), stopped).await.unwrap().unwrap();
    assert!(gone.exists(), "it exits when its input is closed");
}

#[tokio::test]
async fn without_weights_no_child_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, READY, LONG);
    std::fs::remove_file(folder.path().join("weights.gguf")).unwrap();
    assert!(matches!(runner.acquire().await, Err(StartError::NoWeights(_))));
    assert_eq!(starts(folder.path()).len(), 0);
}
