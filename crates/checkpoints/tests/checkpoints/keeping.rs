//! Backups, pushes, damage, and the leftovers of a killed git process.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use checkpoints::{CheckpointError, CommitId, PushError};

use crate::fixture::{Fixture, bare, git, open};

#[test]
fn a_backup_is_never_overwritten() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let first = fixture.full(vec![("a", node.clone())]).id;
    let second = fixture.since(&first, vec![("b", Some(node))]).id;
    fixture.repo.backup("before-restore-1", &first).unwrap();
    fixture.repo.backup("before-restore-1", &first).unwrap();
    let error = fixture.repo.backup("before-restore-1", &second).unwrap_err();
    assert!(matches!(&error, CheckpointError::BackupExists { commit, .. } if *commit == first), "{error}");
    let unknown = CommitId::parse(&"ab".repeat(20)).unwrap();
    assert!(matches!(fixture.repo.backup("x", &unknown), Err(CheckpointError::NoSuchCommit { .. })));
    for bad in ["", "../heads/main", "-d", "a b", "x.lock"] {
        assert!(matches!(fixture.repo.backup(bad, &first), Err(CheckpointError::BackupName { .. })), "{bad}");
    }
    fixture.repo.backup("z", &second).unwrap();
    let backups = fixture.repo.backups().unwrap();
    let listed = backups.iter().map(|backup| (backup.name.as_str(), &backup.commit)).collect::<Vec<_>>();
    assert_eq!(listed, [("before-restore-1", &first), ("z", &second)]);
}

#[test]
fn a_push_copies_branch_and_backups_and_forces_nothing() {
    let mut fixture = Fixture::new();
    let remote = bare(fixture.dir.path().join("remote a.git"));
    let url = remote.to_str().unwrap().to_owned();
    fixture.repo.push(&url).unwrap();
    let node = fixture.file("x", 0o644);
    let first = fixture.full(vec![("a", node.clone())]).id;
    fixture.repo.backup("one", &first).unwrap();
    fixture.repo.push(&url).unwrap();
    let second = fixture.since(&first, vec![("b", Some(node.clone()))]).id;
    fixture.repo.push(&format!("file://{}", url.replace(' ', "%20"))).unwrap();
    let at = |name| String::from_utf8(git(&remote, &["rev-parse", name])).unwrap().trim().to_owned();
    assert_eq!((at("main"), at("refs/backups/one")), (second.to_string(), first.to_string()));

    fs::remove_dir_all(fixture.repo.path()).unwrap();
    fixture.repo = open(fixture.dir.path()).unwrap();
    let _ = fixture.full(vec![("other", node)]);
    let error = fixture.repo.push(&url).unwrap_err();
    assert!(matches!(&error, PushError::Refused { stderr, .. } if stderr.contains("rejected")), "{error}");
    assert_eq!(at("main"), second.to_string());
}

#[test]
fn a_failed_push_says_why() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let _ = fixture.full(vec![("a", node)]);
    let error = fixture.repo.push("/nonexistent/remote.git").unwrap_err();
    assert!(error.to_string().contains("/nonexistent/remote.git"), "{error}");
    assert!(matches!(error, PushError::Refused { .. }));
    let inside = bare(fixture.dir.path().join("workspace/evil.git"));
    symlink(&inside, fixture.dir.path().join("detour")).unwrap();
    let detour = fixture.dir.path().join("detour").to_str().unwrap().to_owned();
    let inside = inside.to_str().unwrap().to_owned();
    for bad in [&*inside, &*detour, &format!("file://{inside}"), "relative/path", "--upload-pack=x", "a\nb"] {
        assert!(matches!(fixture.repo.push(bad), Err(PushError::Remote { .. })), "{bad}");
    }
    let error = fixture.repo.push("ext::sh -c touch% /tmp/x").unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");

    // A server that accepts the connection and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://ada:s3cret@{}/x.git", silent.local_addr().unwrap());
    let start = Instant::now();
    let error = fixture.repo.push_within(&url, Duration::from_millis(1500)).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(matches!(error, PushError::TimedOut { .. }), "{error}");
    drop(silent);
    let refused = fixture.repo.push(&url).unwrap_err();
    for error in [error, refused] {
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

#[test]
fn damage_is_noticed_and_named() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let _ = fixture.full(vec![("a", node)]);
    let repo = fixture.repo.path().to_owned();
    let good = fs::read(repo.join("refs/heads/main")).unwrap();
    for bad in [&b""[..], b"garbage\n", "ab".repeat(20).as_bytes()] {
        fs::write(repo.join("refs/heads/main"), bad).unwrap();
        let error = open(fixture.dir.path()).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{error:?}");
    }
    fs::write(repo.join("refs/heads/main"), good).unwrap();
    open(fixture.dir.path()).unwrap();
    for entry in fs::read_dir(repo.join("objects/pack")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert!(matches!(fixture.repo.verify(), Err(CheckpointError::Damaged { .. })));
    assert!(matches!(open(fixture.dir.path()), Err(CheckpointError::Damaged { .. })));
    fs::remove_file(repo.join("HEAD")).unwrap();
    assert!(matches!(open(fixture.dir.path()), Err(CheckpointError::Damaged { .. })));
    fs::remove_dir_all(&repo).unwrap();
    fs::write(&repo, "a file").unwrap();
    assert!(matches!(open(fixture.dir.path()), Err(CheckpointError::Damaged { .. })));
}

#[test]
fn leftovers_of_a_killed_git_do_not_stop_the_next_commit() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let first = fixture.full(vec![("a", node.clone())]);
    let repo = fixture.repo.path().to_owned();
    for name in ["refs/heads/main.lock", "packed-refs.lock", "objects/pack/tmp_pack_x", "fast_import_crash_1"]
    {
        fs::write(repo.join(name), "").unwrap();
    }
    fs::create_dir(fixture.dir.path().join(".choir/checkpoints.git.new")).unwrap();
    let second = open(fixture.dir.path()).unwrap();
    assert!(repo.join("refs/heads/main.lock").exists(), "another process has it open");
    drop(second);
    let other = Fixture::new();
    drop(std::mem::replace(&mut fixture.repo, other.repo));
    fixture.repo = open(fixture.dir.path()).unwrap();
    assert!(!repo.join("objects/pack/tmp_pack_x").exists());
    assert!(!repo.join("fast_import_crash_1").exists());
    let second = fixture.since(&first.id, vec![("b", Some(node))]);
    assert_eq!(fixture.paths(&second.id), ["a", "b"]);
}
