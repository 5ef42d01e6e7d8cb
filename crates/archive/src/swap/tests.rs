//! A swap that is interrupted after any number of steps, and the resulting computer.

use std::collections::BTreeMap;

use super::*;

fn put(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn old(dir: &Path) {
    put(
        dir,
        &[
            ("state.sqlite", "old"),
            ("state.sqlite-wal", "old"),
            ("state.sqlite.v1.backup", "old"),
            ("views.sqlite", "old"),
            ("views.sqlite-wal", "old"),
            ("blobs/aa/one", "old"),
            ("trash/kept", "kept"),
        ],
    );
}

fn new(dir: &Path, name: &str) {
    let new = dir.join(name);
    put(&new, &[("state.sqlite", "new"), ("blobs/bb/two", "new"), ("lock", ""), ("tmp/x", "")]);
}

fn listing(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => open.push(path),
                false if name == LogLock::FILE => {}
                false => drop(found.insert(name, fs::read_to_string(&path).unwrap())),
            }
        }
    }
    found
}

fn only(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn swapped() -> BTreeMap<String, String> {
    only(&[("state.sqlite", "new"), ("blobs/bb/two", "new"), ("trash/kept", "kept")])
}

#[test]
fn a_swap_interrupted_after_any_step_is_completed() {
    let mut interrupted_after = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        old(dir);
        new(dir, NEW);
        commit(dir).unwrap();
        let all = steps(dir).unwrap();
        all.iter().take(interrupted_after).for_each(|step| step.execute().unwrap());
        let state = fs::read_to_string(dir.join("state.sqlite")).ok();
        let blob = dir.join("blobs/aa/one").exists();
        assert!(
            state.as_deref() != Some("old") || blob,
            "the old log never has the new contents, interrupted_after {interrupted_after}"
        );
        assert!(
            state.as_deref() != Some("new") || !blob,
            "the new log never has the old contents, interrupted_after {interrupted_after}"
        );

        let ended = finish_interrupted(dir).unwrap();
        let expected = if interrupted_after + 2 > all.len() {
            InterruptedImport::None
        } else {
            InterruptedImport::Completed
        };
        assert_eq!(ended, expected, "interrupted_after {interrupted_after} of {}", all.len());
        assert_eq!(listing(dir), swapped(), "interrupted_after {interrupted_after}");
        assert_eq!(finish_interrupted(dir).unwrap(), InterruptedImport::None);
        if interrupted_after == all.len() {
            assert!(interrupted_after > 10);
            break;
        }
        interrupted_after += 1;
    }
}

#[test]
fn a_computer_without_a_log_or_blobs_is_swapped_too() {
    let folder = tempfile::tempdir().unwrap();
    new(folder.path(), READY);
    assert_eq!(finish_interrupted(folder.path()).unwrap(), InterruptedImport::Completed);
    assert_eq!(listing(folder.path()), only(&[("state.sqlite", "new"), ("blobs/bb/two", "new")]));
}

#[test]
fn an_incomplete_log_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    old(folder.path());
    let before = listing(folder.path());
    new(folder.path(), NEW);
    assert_eq!(finish_interrupted(folder.path()).unwrap(), InterruptedImport::RolledBack);
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn nothing_is_touched_while_another_process_holds_the_log() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(finish_interrupted(&folder.path().join("nowhere")).unwrap(), InterruptedImport::None);
    new(folder.path(), READY);
    let _lock = LogLock::take(folder.path()).unwrap();
    let before = listing(folder.path());
    assert!(matches!(finish_interrupted(folder.path()), Err(ImportError::Open(_))));
    assert_eq!(listing(folder.path()), before);
}
