//! Recovery after crashes, the writer's lock, and purges.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use event_log::conformance::Harness;
use event_log::conformance::sample::{append, append_one, fill, naming, read, read_checked};
use event_log::{AppendError, ContentError, EventLog, OpenError, SqliteLog, Subscription};
use shared_types::{ContentRef, Seq};
use tempfile::TempDir;

use crate::backends::{OnDisk, user};

fn wal(folder: &Path) -> std::path::PathBuf {
    folder.join("state.sqlite-wal")
}

#[test]
fn a_truncated_write_ahead_log_opens_to_a_consistent_beginning() {
    let disk = OnDisk::new();
    let log = disk.log();
    for count in 1..=12 {
        append_one(&*log, append(log.head().seq, count)).unwrap();
    }
    let events = read_checked(&*log);
    let written = fs::read(wal(&disk.path())).unwrap();
    let mut most = 0;
    let lengths = (0..written.len()).step_by(1777).chain([written.len()]);
    for length in lengths {
        let copy = TempDir::new().unwrap();
        fs::copy(disk.path().join(SqliteLog::FILE), copy.path().join(SqliteLog::FILE)).unwrap();
        fs::write(wal(copy.path()), &written[..length]).unwrap();
        let log = SqliteLog::open(copy.path()).unwrap();
        let found = read_checked(&log);
        assert_eq!(found, events[..found.len()], "cut to {length} bytes");
        assert!(found.len() >= most, "more of it never holds fewer events");
        let whole_appends = (0..=12).map(|n: usize| n * (n + 1) / 2).any(|total| total == found.len());
        assert!(whole_appends, "an append is there as a whole or not at all: {}", found.len());
        most = found.len();
        append_one(&log, append(log.head().seq, 1)).unwrap();
        assert_eq!(read_checked(&log).len(), most + 1, "it can be written again");
    }
    assert_eq!(most, events.len(), "what was acknowledged was in the file, before anything was closed");
}

#[test]
fn a_second_writer_is_refused_with_the_owners_process_id() {
    let mut disk = OnDisk::new();
    let refused = SqliteLog::open(&disk.path()).unwrap_err();
    let me = Some(std::process::id());
    assert!(matches!(refused, OpenError::Locked { pid } if pid == me), "{refused:?}");
    assert!(matches!(SqliteLog::create(&disk.path(), user()), Err(OpenError::Locked { .. })));
    disk.close();
    drop(SqliteLog::open(&disk.path()).unwrap());
}

#[test]
fn a_log_is_made_once_and_only_opened_where_it_is() {
    let mut disk = OnDisk::new();
    disk.close();
    assert!(matches!(SqliteLog::create(&disk.path(), user()), Err(OpenError::Exists(_))));
    let nowhere = TempDir::new().unwrap();
    assert!(matches!(SqliteLog::open(nowhere.path()), Err(OpenError::Missing(_))));
    assert!(matches!(SqliteLog::open_read_only(nowhere.path()), Err(OpenError::Missing(_))));
    assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0, "looking leaves nothing behind");

    // A crash while the log was being created.
    fs::write(nowhere.path().join(SqliteLog::FILE), b"").unwrap();
    assert!(matches!(SqliteLog::open(nowhere.path()), Err(OpenError::Missing(_))));
    assert_eq!(SqliteLog::create(nowhere.path(), user()).unwrap().user(), &user());
}

#[test]
fn the_folder_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let disk = OnDisk::new();
    let mode = fs::metadata(disk.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_reader_beside_the_writer_follows_it_and_writes_nothing() {
    let disk = OnDisk::new();
    let log = disk.log();
    fill(&*log, 10);
    let reader: Arc<dyn EventLog> = Arc::new(SqliteLog::open_read_only(&disk.path()).unwrap());
    assert_eq!(read_checked(&*reader), read_checked(&*log));
    let mut subscription = Subscription::new(Arc::clone(&reader), Seq(10));
    assert!(subscription.next(Duration::from_millis(10)).unwrap().is_empty());
    fill(&*log, 15);
    assert_eq!(subscription.next(Duration::from_secs(10)).unwrap(), read(&*log, Seq(11)));

    let refused = append_one(&*reader, append(Seq(15), 1));
    assert!(matches!(refused, Err(AppendError::Storage(_))), "{refused:?}");
    assert!(matches!(reader.stage(&mut vec![1; 100_000].as_slice()), Err(ContentError::Storage(_))));
    assert!(reader.purge(&[]).is_err() && reader.collect().is_err());
    assert_eq!(read_checked(&*log).len(), 15);
}

#[test]
fn what_a_crash_left_half_written_is_removed_and_unnamed_blobs_are_collected() {
    let mut disk = OnDisk::new();
    let bytes = vec![5; 100_000];
    let staged = disk.log().stage(&mut bytes.as_slice()).unwrap().content();
    fs::write(disk.path().join("tmp/blob-0"), b"half a blob").unwrap();
    disk.reopen();
    assert_eq!(fs::read_dir(disk.path().join("tmp")).unwrap().count(), 0);
    let log = disk.log();
    assert!(log.has_content(&staged.hash).unwrap(), "opening alone removes no blob");
    assert_eq!(log.collect().unwrap(), (1, 100_000), "the process that staged it is gone");
    assert!(!log.has_content(&staged.hash).unwrap());
}

#[test]
fn a_blob_whose_source_fails_leaves_nothing() {
    struct Failing(usize);
    impl std::io::Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = buffer.len().min(self.0);
            self.0 -= count;
            if count == 0 { Err(std::io::Error::other("the source went away")) } else { Ok(count) }
        }
    }
    let disk = OnDisk::new();
    for size in [10, 500_000] {
        assert!(matches!(disk.log().stage(&mut Failing(size)), Err(ContentError::Storage(_))));
    }
    assert_eq!(fs::read_dir(disk.path().join("tmp")).unwrap().count(), 0);
    disk.log().each_content(&mut |hash, _| panic!("{hash} should not be here")).unwrap();
}

/// Whether any file below a folder contains the bytes.
fn on_disk(folder: &Path, needle: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return on_disk(&path, needle);
        }
        fs::read(path).unwrap().windows(needle.len()).any(|window| window == needle)
    })
}

#[test]
fn purged_bytes_are_gone_from_every_file() {
    let disk = OnDisk::new();
    let log = disk.log();
    let secret = b"correct horse battery staple".repeat(20);
    let large = [vec![0; 70_000], b"a secret for one reader".to_vec()].concat();
    let small = ContentRef::of(&secret);
    append_one(&*log, naming(Seq(0), small, Some((small.hash, secret)))).unwrap();
    let blob = log.stage(&mut large.as_slice()).unwrap().content();
    append_one(&*log, naming(Seq(1), blob, None)).unwrap();
    assert!(on_disk(&disk.path(), b"correct horse") && on_disk(&disk.path(), b"a secret for"));
    assert_eq!(log.purge(&[small.hash, blob.hash]).unwrap(), 2);
    assert!(!on_disk(&disk.path(), b"correct horse") && !on_disk(&disk.path(), b"a secret for"));
    assert_eq!(read_checked(&*log).len(), 2);
}
