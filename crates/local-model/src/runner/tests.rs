//! The runner with children that are a few lines of shell.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

const READY: &str = r#"echo '{"loading":{"done":1,"total":2}}'; echo '{"ready":{"port":4711}}'"#;

/// A child that does this once it has its settings, which it leaves in a file.
fn runner(folder: &TempDir, script: &str, idle: Duration) -> Runner {
    let program = folder.path().join("child.sh");
    let settings = folder.path().join("settings.json");
    let script = format!("#!/bin/sh\nread -r line\necho \"$line\" >> {}\n{script}\n", settings.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let weights = folder.path().join("weights.gguf");
    std::fs::write(&weights, "w").unwrap();
    let options = Options { idle, patience: Duration::from_secs(5), ..Options::new(weights, 6000) };
    Runner::by(program, options)
}

async fn stopped(runner: &Runner) -> Ending {
    let mut status = runner.status();
    let stopped = status.wait_for(|status| matches!(status, Status::Stopped(_)));
    let status = tokio::time::timeout(Duration::from_secs(5), stopped).await.unwrap().unwrap().clone();
    match status {
        Status::Stopped(ending) => ending,
        Status::Starting { .. } | Status::Ready { .. } => unreachable!(),
    }
}

fn starts(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("settings.json")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const LONG: Duration = Duration::from_secs(100);

#[tokio::test]
async fn one_child_serves_everybody_and_gets_its_settings_by_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, &format!("{READY}\ncat > /dev/null"), LONG);
    let (a, b) = tokio::join!(runner.acquire(), runner.acquire());
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.base_url(), "http://127.0.0.1:4711/v1");
    assert_eq!(a.bearer(), b.bearer());
    let starts = starts(folder.path());
    assert_eq!(starts.len(), 1);
    assert_eq!(starts[0]["bearer"], a.bearer());
    assert_eq!(starts[0]["context"], 6000, "it reads as much as was said of it");
    assert!(!format!("{a:?}").contains(a.bearer()));
    runner.stop().await;
    assert!(a.is_broken());
    assert_eq!(stopped(&runner).await, Ending::Asked);
}

#[tokio::test]
async fn a_crash_is_seen_and_the_next_who_asks_gets_a_new_child() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, &format!("{READY}\necho 'last words' >&2; sleep 0.1; kill -9 $$"), LONG);
    let lease = runner.acquire().await.unwrap();
    let Ending::Crashed(why) = stopped(&runner).await else { panic!() };
    assert!(why.contains("killed") && why.contains("last words"), "{why}");
    assert!(lease.is_broken());
    let again = runner.acquire().await.unwrap();
    assert_ne!(again.bearer(), lease.bearer());
    assert_eq!(starts(folder.path()).len(), 2);
}

#[tokio::test]
async fn a_child_that_keeps_dying_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, r#"echo '{"failed":{"message":"no such tensor"}}'; exit 1"#, LONG);
    for _ in 0..CRASHES {
        let error = runner.acquire().await.unwrap_err();
        assert_eq!(error.to_string(), "the local model did not start: no such tensor");
    }
    assert!(matches!(runner.acquire().await, Err(StartError::KeepsDying(_))));
    assert_eq!(starts(folder.path()).len(), CRASHES);
}

#[tokio::test]
async fn who_gives_up_waiting_leaves_no_child_behind() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, "exec cat > /dev/null", LONG);
    let waited = tokio::time::timeout(Duration::from_millis(300), runner.acquire()).await;
    assert!(waited.is_err());
    assert_eq!(stopped(&runner).await, Ending::Asked);
}

#[tokio::test]
async fn a_child_that_is_never_ready_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, "exec cat > /dev/null", LONG);
    let options = Options { patience: Duration::from_millis(200), ..runner.options().clone() };
    let runner = Runner::by(folder.path().join("child.sh"), options);
    assert!(matches!(runner.acquire().await, Err(StartError::TooSlow(_))));
}

#[tokio::test]
async fn a_child_without_memory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'memory allocation of 4096 bytes failed' >&2; kill -6 $$";
    let error = runner(&folder, script, LONG).acquire().await.unwrap_err();
    assert!(error.to_string().contains("more memory than it may have"), "{error}");
}

#[tokio::test]
async fn a_child_that_nobody_needs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, &format!("{READY}\ncat > /dev/null"), Duration::from_millis(100));
    let lease = runner.acquire().await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(matches!(*runner.status().borrow(), Status::Ready { .. }), "a lease keeps it");
    drop(lease);
    assert_eq!(stopped(&runner).await, Ending::Idle);
}

#[tokio::test]
async fn a_child_that_works_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let work = r#"echo '{"working":true}'; sleep 0.5; echo '{"working":false}'"#;
    let runner = runner(&folder, &format!("{READY}\n{work}\ncat > /dev/null"), Duration::from_millis(100));
    drop(runner.acquire().await.unwrap());
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert!(matches!(*runner.status().borrow(), Status::Ready { .. }));
    assert_eq!(stopped(&runner).await, Ending::Idle);
}

#[tokio::test]
async fn a_child_ends_with_everybody_who_could_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let runner = runner(&folder, &format!("{READY}\ncat > /dev/null\ntouch {}", gone.display()), LONG);
    let lease = runner.acquire().await.unwrap();
    let mut status = runner.status();
    drop(runner);
    drop(lease);
    let stopped = status.wait_for(|status| matches!(status, Status::Stopped(Ending::Asked)));
    tokio::time::timeout(Duration::from_secs(5), stopped).await.unwrap().unwrap();
    assert!(gone.exists(), "it ends by itself when its input does");
}

#[tokio::test]
async fn without_weights_nothing_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let runner = runner(&folder, READY, LONG);
    std::fs::remove_file(folder.path().join("weights.gguf")).unwrap();
    assert!(matches!(runner.acquire().await, Err(StartError::NoWeights(_))));
    assert_eq!(starts(folder.path()).len(), 0);
}
