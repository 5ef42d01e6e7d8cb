//! Full and read-only disks. Each test runs itself again in its own mount namespace, so that its small disks always
//! disappear with it.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use event_log::conformance::sample::{append, append_one, fill, naming, read_checked};
use event_log::{AppendError, ContentError, EventLog, OpenError, SqliteLog, read_content};
use shared_types::{ContentRef, Seq};
use tempfile::TempDir;

use crate::backends::user;

const INSIDE: &str = "EVENT_LOG_TEST_HAS_OWN_MOUNTS";

/// Runs `body` where it may mount. Where mounting is not allowed, it prints that and the test is skipped.
fn with_own_mounts(test: &str, body: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let options: [&[&str]; 2] = [&["--mount"], &["--mount", "--user", "--map-root-user"]];
    let allowed = |options: &&&[&str]| {
        let probe = "mount -t tmpfs none /mnt";
        let tried = Command::new("unshare").args(**options).args(["sh", "-c", probe]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(options) = options.iter().find(allowed) else {
        println!("skipped: this machine does not allow mounts, with or without a user namespace");
        return;
    };
    let this = std::env::current_exe().unwrap();
    let again = Command::new("unshare")
        .args(*options)
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success(), "{told}{}", String::from_utf8_lossy(&again.stderr));
    assert!(told.contains("1 passed"), "the test did not run: {told}");
}

fn mount(options: &str, at: &Path) {
    let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(at).status().unwrap();
    assert!(status.success(), "mount -o {options}");
}

fn noise(seed: usize) -> Vec<u8> {
    let text = format!("{seed} ");
    text.bytes().cycle().take(60_000).collect()
}

/// Appends contents until the disk refuses. Returns how many were taken.
fn append_until_full(log: &SqliteLog) -> usize {
    for n in 0..1000 {
        let bytes = noise(n);
        let content = ContentRef::of(&bytes);
        let before = log.head();
        match append_one(log, naming(before.seq, content, Some((content.hash, bytes)))) {
            Ok(_) => {}
            Err(AppendError::Storage(_)) => {
                assert_eq!(log.head(), before, "a refused append moves nothing");
                assert!(!log.has_content(&content.hash).unwrap());
                return n;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the disk never filled up");
}

#[test]
fn a_full_disk_refuses_appends_and_nothing_else() {
    with_own_mounts("disk::a_full_disk_refuses_appends_and_nothing_else", || {
        let disk = TempDir::new().unwrap();
        mount("size=4m", disk.path());
        let folder = disk.path().join(".choir");
        let log = SqliteLog::create(&folder, user()).unwrap();
        let filler = disk.path().join("filler");
        fs::write(&filler, vec![0; 2 << 20]).unwrap();

        let taken = append_until_full(&log);
        assert!(taken > 5, "some fit: {taken}");
        assert_eq!(read_checked(&log).len(), taken, "the log is readable");
        assert!(matches!(log.stage(&mut vec![1; 1 << 20].as_slice()), Err(ContentError::Storage(_))));
        assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 0, "half a blob is not kept");
        let group = vec![append(log.head().seq, 400), append(log.head().seq, 1)];
        let refused = log.append(&group);
        assert!(refused.iter().all(|r| matches!(r, Err(AppendError::Storage(_)))), "{refused:?}");

        fs::remove_file(&filler).unwrap();
        append_one(&log, append(log.head().seq, 400)).unwrap();
        let events = read_checked(&log);
        assert_eq!(events.len(), taken + 400);
        drop(log);
        let log = SqliteLog::open(&folder).unwrap();
        assert_eq!(read_checked(&log), events, "what was acknowledged is there, what was refused is not");
        for n in 0..taken {
            assert_eq!(read_content(&log, &ContentRef::of(&noise(n)).hash).unwrap(), noise(n));
        }
    });
}

#[test]
fn a_log_on_a_full_disk_can_be_opened() {
    with_own_mounts("disk::a_log_on_a_full_disk_can_be_opened", || {
        let disk = TempDir::new().unwrap();
        mount("size=3m", disk.path());
        let folder = disk.path().join(".choir");
        let log = SqliteLog::create(&folder, user()).unwrap();
        let taken = append_until_full(&log);
        let events = read_checked(&log);
        drop(log);
        let log = SqliteLog::open_read_only(&folder).unwrap();
        assert_eq!(read_checked(&log).len(), taken);
        assert_eq!(read_checked(&log), events);
    });
}

/// The messages of an error and all its causes.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error: &&dyn Error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn a_disk_that_cannot_be_written_is_read() {
    with_own_mounts("disk::a_disk_that_cannot_be_written_is_read", || {
        let disk = TempDir::new().unwrap();
        mount("size=16m", disk.path());
        let [closed, crashed, beside] =
            ["closed?a=b %41#", "crashed", "beside"].map(|name| disk.path().join(name));
        let log = SqliteLog::create(&closed, user()).unwrap();
        fill(&log, 100);
        let large = vec![3; 100_000];
        let blob = log.stage(&mut large.as_slice()).unwrap().content();
        append_one(&log, naming(Seq(100), blob, None)).unwrap();
        let events = read_checked(&log);
        // The state after a crash: the newest events only in the write-ahead log, with and without its index.
        for (copy, files) in [(&crashed, &["", "-wal"][..]), (&beside, &["", "-wal", "-shm"][..])] {
            fs::create_dir(copy).unwrap();
            for suffix in files {
                let name = format!("{}{suffix}", SqliteLog::FILE);
                fs::copy(closed.join(&name), copy.join(&name)).unwrap();
            }
        }
        drop(log);
        mount("remount,ro", disk.path());

        for folder in [&closed, &crashed, &beside] {
            let log = SqliteLog::open_read_only(folder).unwrap();
            assert_eq!(read_checked(&log), events, "{}", folder.display());
            let refused = append_one(&log, append(Seq(101), 1));
            assert!(matches!(refused, Err(AppendError::Storage(_))), "{refused:?}");
            let refused = SqliteLog::open(folder).unwrap_err();
            assert!(matches!(refused, OpenError::Storage(_)), "{refused:?}");
            assert!(chain(&refused).contains("Read-only file system"), "{}", chain(&refused));
        }
        let log = SqliteLog::open_read_only(&closed).unwrap();
        assert_eq!(read_content(&log, &blob.hash).unwrap(), large);
    });
}
