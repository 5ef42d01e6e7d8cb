//! Files of an archive are imported into a computer that has its own history.

use archive::{plan_import, stage_contents};
use event_log::conformance::sample;
use event_log::writer::{ChangeRequest, SubmitError};
use event_log::{EventLog, read_content};
use kernel::{Action, Rejection};
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, Seq};

use crate::computer::{Computer, large, node, path, user, verify, with_history};

#[test]
fn files_are_imported_below_a_folder_as_one_operation_that_can_be_undone() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, manifest) = with_history(&folder.path().join("ada")).export();
    let verified = verify(&archive).unwrap();
    let bob = Computer::new(&folder.path().join("bob"), "bob");
    bob.write("mine", b"first\n");
    let before = bob.root();

    let plan = plan_import(&verified, Some(&path("from/ada"))).unwrap();
    assert_eq!(plan.omitted, [path("secret.txt")], "its bytes were purged");
    assert_eq!((&plan.import_event.user, plan.import_event.seq), (&user("ada"), manifest.seq));
    assert_eq!((plan.import_event.hash, plan.import_event.files), (manifest.hash, plan.files.len() as u64));
    assert_eq!(plan.files.len(), 704);

    let reached = std::cell::Cell::new((0, 0));
    let staged = stage_contents(&verified, &*bob.log, &|done, total| reached.set((done, total))).unwrap();
    assert_eq!(reached.get(), (staged, staged));
    assert_eq!(stage_contents(&verified, &*bob.log, &|_, _| {}).unwrap(), 0, "nothing is copied twice");

    let op = sample::op();
    let action = Action::ImportFiles { origin: plan.import_event, files: plan.files };
    bob.submit(op, ChangeRequest::Do(action)).unwrap();
    let view = event_log::replay::view_from_nothing(&*bob.log, bob.head()).unwrap();
    assert_eq!(view.files.get(&path("from/ada/large.bin")), Some(&node(&large())));
    assert_eq!(view.files.get(&path("from/ada/empty")), Some(&node(b"")));
    assert!(matches!(view.files.get(&path("from/ada/link")), Some(FileNode::Symlink { .. })));
    assert_eq!(view.files.get(&path("mine")), Some(&node(b"first\n")));
    assert_eq!(read_content(&*bob.log, &ContentHash::of(&large())).unwrap(), large());

    bob.submit(sample::op(), ChangeRequest::Undo { target: op, resolutions: Default::default() }).unwrap();
    let mut after = event_log::replay::view_from_nothing(&*bob.log, bob.head()).unwrap();
    let mut earlier = event_log::replay::view_from_nothing(&*bob.log, Seq(2)).unwrap();
    assert_eq!(earlier.root(), before);
    assert_eq!(after.roots()[0], earlier.roots()[0], "the files are as they were");
}

#[test]
fn existing_paths_are_refused_and_the_computer_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, _) = with_history(&folder.path().join("ada")).export();
    let verified = verify(&archive).unwrap();
    let bob = Computer::new(&folder.path().join("bob"), "bob");
    bob.write("large.bin", b"mine");
    let head = bob.head();
    stage_contents(&verified, &*bob.log, &|_, _| {}).unwrap();
    let plan = plan_import(&verified, None).unwrap();
    let action = Action::ImportFiles { origin: plan.import_event, files: plan.files };
    let refused = bob.submit(sample::op(), ChangeRequest::Do(action));
    assert!(
        matches!(refused, Err(SubmitError::Rejected(Rejection::Taken { paths })) if paths == [path("large.bin")])
    );
    assert_eq!(bob.head(), head);
    bob.close();
    let bob = Computer::open(&folder.path().join("bob"));
    assert!(bob.log.collect().unwrap().0 > 600, "unused staged contents can be collected");
}

#[test]
fn the_error_names_a_path_that_would_become_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let ada = Computer::new(&folder.path().join("ada"), "ada");
    let long = vec!["x".repeat(250); 12].join("/");
    ada.write(&long, b"deep");
    let verified = verify(&ada.export().0).unwrap();
    let folder = path(&"y".repeat(200));
    let refused = plan_import(&verified, Some(&folder)).unwrap_err();
    assert!(refused.to_string().contains(&long), "{refused}");
}
