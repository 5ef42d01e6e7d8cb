//! An empty computer becomes the one that was exported.

use std::fs;
use std::path::Path;

use archive::{ImportError, InterruptedImport, adopt, finish_interrupted};
use event_log::conformance::sample;
use event_log::writer::ChangeRequest;
use event_log::{ContentError, EventLog, SqliteLog};
use kernel::{Action, Base, Choice, Resolutions};
use shared_types::payload::UnknownPayload;
use shared_types::{ContentHash, Event, EventName, Payload, Seq};

use crate::computer::{Computer, large, listing, node, path, user, verify, with_history};
use crate::repack::Entries;

fn adopt_silently(archive: &[u8], state_dir: &Path) -> Result<(), ImportError> {
    adopt(&verify(archive).unwrap(), state_dir, user("bob"), &|_, _| {})
}

#[test]
fn the_adopted_computer_is_the_exported_one() {
    let folder = tempfile::tempdir().unwrap();
    let ada = with_history(&folder.path().join("ada"));
    let (archive, manifest) = ada.export();

    let dir = folder.path().join("bob/.choir");
    fs::create_dir_all(&dir).unwrap();
    Computer::new(&dir, "bob").close();
    fs::write(dir.join("views.sqlite"), "of the old computer").unwrap();
    fs::write(dir.join("views.sqlite-wal"), "of the old computer").unwrap();
    adopt_silently(&archive, &dir).unwrap();

    let names: Vec<String> = listing(&dir).into_keys().filter(|name| !name.starts_with("blobs/")).collect();
    assert_eq!(names, ["lock", "state.sqlite", "tmp/"]);
    let bob = Computer::open(&dir);
    assert_eq!(bob.log.user(), &user("bob"));
    assert_eq!((bob.log_head(), bob.root()), (ada.log_head(), manifest.root));
    assert_eq!(sample::read_checked(&*bob.log), sample::read_checked(&*ada.log));
    assert_eq!(bob.contents(), ada.contents());
    assert!(bob.contents().contains_key(&ContentHash::of(&large())));
    let secret = ContentHash::of(b"a pasted secret");
    assert!(matches!(bob.log.content(&secret).err(), Some(ContentError::Purged(hash)) if hash == secret));
    let places = bob.log.snapshots().unwrap();
    let places: Vec<_> = places.iter().map(|snapshot| (snapshot.seq, snapshot.root)).collect();
    assert_eq!(places, [(manifest.seq, manifest.root)]);

    // Going on from there is the same on both: an operation from before the export is undone.
    let target = sample::read(&*ada.log, Seq(2))[0].op;
    let (undo, write) = (sample::op(), sample::op());
    for computer in [&ada, &bob] {
        computer.submit(undo, ChangeRequest::Undo { target, resolutions: accept_conflicts() }).unwrap();
        computer.store_bytes(b"new");
        let action = Action::WriteFile { path: path("new"), node: node(b"new"), base: Base::Any };
        computer.submit(write, ChangeRequest::Do(action)).unwrap();
    }
    assert_eq!(bob.root(), ada.root());
    assert_eq!(bob.export().1.contents, ada.export().1.contents);
}

fn accept_conflicts() -> Resolutions {
    Resolutions { others: Some(Choice::Take), ..Default::default() }
}

#[test]
fn unknown_events_and_fields_survive_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let ada = Computer::new(&folder.path().join("ada"), "ada");
    ada.store_bytes(b"named by the unknown");
    let hash = ContentHash::of(b"named by the unknown");
    let unknown = Event {
        payload: Payload::Unknown(UnknownPayload {
            name: EventName::parse("hologram.show").unwrap(),
            version: 7,
            json: format!(r#"{{"b":1.0e2, "a":"\u00e9","content":"{hash}","a":null}}"#).into(),
        }),
        ..sample::event(Seq(2), sample::op(), sample::write("x", shared_types::ContentRef::of(b"")))
    };
    let mut append = sample::append(Seq(1), 1);
    append.events = vec![unknown];
    sample::append_one(&*ada.log, append).unwrap();
    ada.close();
    let ada = Computer::open(&folder.path().join("ada"));
    let (archive, _) = ada.export();

    // A field that a known type does not have yet, in a log that newer software wrote.
    let mut entries = Entries::of(&archive);
    entries.edit_events(|events| {
        events[0].payload = events[0].payload.replace('{', r#"{"later":[1, 2],"#).into();
    });
    let archive = entries.pack();

    let dir = folder.path().join("bob");
    adopt_silently(&archive, &dir).unwrap();
    let bob = Computer::open(&dir);
    assert_eq!(sample::read_checked(&*bob.log), entries.events());
    assert!(bob.contents().contains_key(&hash), "contents that only the unknown names come along");
    assert_eq!(Entries::of(&bob.export().0).get(crate::repack::EVENTS), entries.get(crate::repack::EVENTS));
}

#[test]
fn a_computer_that_is_not_empty_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, _) = with_history(&folder.path().join("ada")).export();
    let dir = folder.path().join("bob");
    let bob = Computer::new(&dir, "bob");
    bob.write("mine", b"mine");
    bob.close();
    let before = listing(&dir);
    assert!(matches!(adopt_silently(&archive, &dir), Err(ImportError::NotEmpty(Seq(2)))));
    assert_eq!(listing(&dir), before);
}

#[test]
fn a_log_that_another_process_holds_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, _) = Computer::new(&folder.path().join("ada"), "ada").export();
    let dir = folder.path().join("bob");
    let bob = Computer::new(&dir, "bob");
    assert!(matches!(
        adopt_silently(&archive, &dir),
        Err(ImportError::Open(event_log::OpenError::Locked { .. }))
    ));
    bob.close();
    adopt_silently(&archive, &dir).unwrap();
}

#[test]
fn an_archive_that_changes_after_it_was_verified_is_refused_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, _) = with_history(&folder.path().join("ada")).export();
    let dir = folder.path().join("bob");
    Computer::new(&dir, "bob").close();
    let file = folder.path().join("ada.zip");
    let size = archive.len();
    for at in (40..size).step_by(size / 40) {
        fs::write(&file, &archive).unwrap();
        let source = fs::File::open(&file).unwrap();
        let verified = archive::Archive::verify(source, Default::default(), &|_, _| {}).unwrap();
        let mut changed = archive.clone();
        changed[at..(at + 20).min(size)].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::os::unix::fs::FileExt::write_all_at(
            &fs::OpenOptions::new().write(true).open(&file).unwrap(),
            &changed,
            0,
        )
        .unwrap();
        let before = listing(&dir);
        if adopt(&verified, &dir, user("bob"), &|_, _| {}).is_err() {
            assert_eq!(listing(&dir), before, "byte {at}");
        } else {
            // What changed was not read again: the directory, or the unused half of a header.
            let bob = Computer::open(&dir);
            assert_eq!(bob.root(), verified.manifest().root);
            bob.close();
            fs::remove_dir_all(&dir).unwrap();
            Computer::new(&dir, "bob").close();
        }
    }
}

/// The folders of a swap by hand, with real logs, cut off between any two renames.
#[test]
fn a_swap_that_was_cut_off_is_ended_with_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let ada = with_history(&folder.path().join("ada"));
    let (archive, manifest) = ada.export();
    for cut in 0..=5 {
        let dir = folder.path().join(format!("bob-{cut}"));
        let bob = Computer::new(&dir, "bob");
        bob.store_bytes(&large()[..100_000]);
        bob.close();
        let ready = dir.join("import-ready");
        adopt_silently(&archive, &ready).unwrap();
        fs::create_dir(dir.join("import-old")).unwrap();
        let renames = [
            ("state.sqlite", "import-old/state.sqlite"),
            ("blobs", "import-old/blobs"),
            ("import-ready/blobs", "blobs"),
            ("import-ready/state.sqlite", "state.sqlite"),
        ];
        for (from, to) in renames.iter().take(cut) {
            fs::rename(dir.join(from), dir.join(to)).unwrap();
        }
        if cut == 5 {
            fs::remove_dir_all(dir.join("import-old")).unwrap();
        }
        assert_eq!(finish_interrupted(&dir).unwrap(), InterruptedImport::Completed);
        let bob = Computer::open(&dir);
        assert_eq!((bob.root(), bob.contents()), (manifest.root, ada.contents()), "cut {cut}");
        assert!(!dir.join("import-old").exists() && !dir.join("import-ready").exists());
        assert_eq!(finish_interrupted(&dir).unwrap(), InterruptedImport::None);
    }
}

#[test]
fn a_log_that_was_half_built_is_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("bob");
    let bob = Computer::new(&dir, "bob");
    let root = bob.root();
    bob.close();
    let before = listing(&dir);
    drop(SqliteLog::create(&dir.join("import-new"), user("bob")).unwrap());
    assert_eq!(finish_interrupted(&dir).unwrap(), InterruptedImport::RolledBack);
    assert_eq!(listing(&dir), before);
    assert_eq!(Computer::open(&dir).root(), root);
}
