//! A swap that is cut off after any number of steps, and the computer that is there afterwards.

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
fn a_swap_cut_off_after_any_step_is_completed() {
    let mut cut = 0;
    loop {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        old(dir);
        new(dir, NEW);
        commit(dir).unwrap();
        let all = steps(dir).unwrap();
        all.iter().take(cut).for_each(|step| step.take().unwrap());
        let state = fs::read_to_string(dir.join("state.sqlite")).ok();
        let blob = dir.join("blobs/aa/one").exists();
        assert!(state.as_deref() != Some("old") || blob, "the old log never has the new contents, cut {cut}");
        assert!(
            state.as_deref() != Some("new") || !blob,
            "the new log never has the old contents, cut {cut}"
        );

        let ended = finish_interrupted(dir).unwrap();
        let expected = if cut + 2 > all.len() { Interrupted::None } else { Interrupted::Completed };
        assert_eq!(ended, expected, "cut {cut} of {}", all.len());
        assert_eq!(listing(dir), swapped(), "cut {cut}");
        assert_eq!(finish_interrupted(dir).unwrap(), Interrupted::None);
        if cut == all.len() {
            assert!(cut > 10);
            break;
        }
        cut += 1;
    }
}

#[test]
fn a_computer_without_a_log_or_blobs_is_swapped_too() {
    let place = tempfile::tempdir().unwrap();
    new(place.path(), READY);
    assert_eq!(finish_interrupted(place.path()).unwrap(), Interrupted::Completed);
    assert_eq!(listing(place.path()), only(&[("state.sqlite", "new"), ("blobs/bb/two", "new")]));
}

#[test]
fn a_log_that_was_not_complete_is_thrown_away() {
    let place = tempfile::tempdir().unwrap();
    old(place.path());
    let before = listing(place.path());
    new(place.path(), NEW);
    assert_eq!(finish_interrupted(place.path()).unwrap(), Interrupted::RolledBack);
    assert_eq!(listing(place.path()), before);
}

#[test]
fn nothing_is_touched_while_somebody_holds_the_log() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(finish_interrupted(&place.path().join("nowhere")).unwrap(), Interrupted::None);
    new(place.path(), READY);
    let _lock = LogLock::take(place.path()).unwrap();
    let before = listing(place.path());
    assert!(matches!(finish_interrupted(place.path()), Err(ImportError::Open(_))));
    assert_eq!(listing(place.path()), before);
}
