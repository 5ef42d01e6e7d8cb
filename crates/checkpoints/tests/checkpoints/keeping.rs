//! Backups, pushes, damage, and what a git that was killed left behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use checkpoints::{CheckpointError, CommitId, PushError};

use crate::bench::{Bench, bare, git, open};

#[test]
fn a_backup_is_never_overwritten() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let first = bench.full(vec![("a", node.clone())]).commit;
    let second = bench.since(&first, vec![("b", Some(node))]).commit;
    bench.repo.backup("before-restore-1", &first).unwrap();
    bench.repo.backup("before-restore-1", &first).unwrap();
    let error = bench.repo.backup("before-restore-1", &second).unwrap_err();
    assert!(matches!(&error, CheckpointError::BackupExists { commit, .. } if *commit == first), "{error}");
    let unknown = CommitId::parse(&"ab".repeat(20)).unwrap();
    assert!(matches!(bench.repo.backup("x", &unknown), Err(CheckpointError::NoSuchCommit { .. })));
    for bad in ["", "../heads/main", "-d", "a b", "x.lock"] {
        assert!(matches!(bench.repo.backup(bad, &first), Err(CheckpointError::BackupName { .. })), "{bad}");
    }
    bench.repo.backup("z", &second).unwrap();
    let backups = bench.repo.backups().unwrap();
    let listed = backups.iter().map(|backup| (backup.name.as_str(), &backup.commit)).collect::<Vec<_>>();
    assert_eq!(listed, [("before-restore-1", &first), ("z", &second)]);
}

#[test]
fn a_push_copies_branch_and_backups_and_forces_nothing() {
    let mut bench = Bench::new();
    let remote = bare(bench.dir.path().join("remote a.git"));
    let url = remote.to_str().unwrap().to_owned();
    bench.repo.push(&url).unwrap();
    let node = bench.file("x", 0o644);
    let first = bench.full(vec![("a", node.clone())]).commit;
    bench.repo.backup("one", &first).unwrap();
    bench.repo.push(&url).unwrap();
    let second = bench.since(&first, vec![("b", Some(node.clone()))]).commit;
    bench.repo.push(&format!("file://{}", url.replace(' ', "%20"))).unwrap();
    let at = |name| String::from_utf8(git(&remote, &["rev-parse", name])).unwrap().trim().to_owned();
    assert_eq!((at("main"), at("refs/backups/one")), (second.to_string(), first.to_string()));

    fs::remove_dir_all(bench.repo.path()).unwrap();
    bench.repo = open(bench.dir.path()).unwrap();
    let _ = bench.full(vec![("other", node)]);
    let error = bench.repo.push(&url).unwrap_err();
    assert!(matches!(&error, PushError::Refused { stderr, .. } if stderr.contains("rejected")), "{error}");
    assert_eq!(at("main"), second.to_string());
}

#[test]
fn a_push_that_cannot_be_says_why() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let _ = bench.full(vec![("a", node)]);
    let error = bench.repo.push("/nonexistent/remote.git").unwrap_err();
    assert!(error.to_string().contains("/nonexistent/remote.git"), "{error}");
    assert!(matches!(error, PushError::Refused { .. }));
    let inside = bare(bench.dir.path().join("workspace/evil.git"));
    symlink(&inside, bench.dir.path().join("detour")).unwrap();
    let detour = bench.dir.path().join("detour").to_str().unwrap().to_owned();
    let inside = inside.to_str().unwrap().to_owned();
    for bad in [&*inside, &*detour, &format!("file://{inside}"), "relative/path", "--upload-pack=x", "a\nb"] {
        assert!(matches!(bench.repo.push(bad), Err(PushError::Remote { .. })), "{bad}");
    }
    let error = bench.repo.push("ext::sh -c touch% /tmp/x").unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");

    // A server that takes the call and never speaks.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://ada:s3cret@{}/x.git", silent.local_addr().unwrap());
    let start = Instant::now();
    let error = bench.repo.push_within(&url, Duration::from_millis(1500)).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(matches!(error, PushError::TimedOut { .. }), "{error}");
    drop(silent);
    let refused = bench.repo.push(&url).unwrap_err();
    for error in [error, refused] {
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

#[test]
fn damage_is_noticed_and_named() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let _ = bench.full(vec![("a", node)]);
    let repo = bench.repo.path().to_owned();
    let good = fs::read(repo.join("refs/heads/main")).unwrap();
    for bad in [&b""[..], b"garbage\n", "ab".repeat(20).as_bytes()] {
        fs::write(repo.join("refs/heads/main"), bad).unwrap();
        let error = open(bench.dir.path()).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{error:?}");
    }
    fs::write(repo.join("refs/heads/main"), good).unwrap();
    open(bench.dir.path()).unwrap();
    for entry in fs::read_dir(repo.join("objects/pack")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert!(matches!(bench.repo.verify(), Err(CheckpointError::Damaged { .. })));
    assert!(matches!(open(bench.dir.path()), Err(CheckpointError::Damaged { .. })));
    fs::remove_file(repo.join("HEAD")).unwrap();
    assert!(matches!(open(bench.dir.path()), Err(CheckpointError::Damaged { .. })));
    fs::remove_dir_all(&repo).unwrap();
    fs::write(&repo, "a file").unwrap();
    assert!(matches!(open(bench.dir.path()), Err(CheckpointError::Damaged { .. })));
}

#[test]
fn what_a_killed_git_left_behind_does_not_stop_the_next_commit() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let first = bench.full(vec![("a", node.clone())]);
    let repo = bench.repo.path().to_owned();
    for name in ["refs/heads/main.lock", "packed-refs.lock", "objects/pack/tmp_pack_x", "fast_import_crash_1"]
    {
        fs::write(repo.join(name), "").unwrap();
    }
    fs::create_dir(bench.dir.path().join(".choir/checkpoints.git.new")).unwrap();
    let second = open(bench.dir.path()).unwrap();
    assert!(repo.join("refs/heads/main.lock").exists(), "somebody else has it open");
    drop(second);
    let other = Bench::new();
    drop(std::mem::replace(&mut bench.repo, other.repo));
    bench.repo = open(bench.dir.path()).unwrap();
    assert!(!repo.join("objects/pack/tmp_pack_x").exists());
    assert!(!repo.join("fast_import_crash_1").exists());
    let second = bench.since(&first.commit, vec![("b", Some(node))]);
    assert_eq!(bench.paths(&second.commit), ["a", "b"]);
}
