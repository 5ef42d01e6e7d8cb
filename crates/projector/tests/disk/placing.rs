//! Placing, replacing, removing and pruning.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;

use projector::workspace::{DiskError, Expected, ObservedKind, hash_file};
use shared_types::ContentRef;
use shared_types::payload::file::FileNode;

use crate::fixture::{Home, at};

#[test]
fn a_file_is_placed_with_the_folders_above_it() {
    let home = Home::new();
    let seen = home.place("a/b/c.txt", "hello", 0o644).unwrap();
    assert_eq!(seen.kind, ObservedKind::File { size: 5, mode: 0o644 });
    assert_eq!(home.read("a/b/c.txt"), "hello");
    assert_eq!(home.workspace.observe(&at("a/b/c.txt")).unwrap(), Some(seen.clone()));
    assert!(seen.may_be(&FileNode::file(ContentRef::of(b"hello"), 0o644)));
    assert!(!seen.may_be(&FileNode::file(ContentRef::of(b"hello"), 0o755)));
    home.workspace.sync().unwrap();
    home.assert_clean();
}

#[test]
fn permission_bits_do_not_depend_on_the_umask() {
    let home = Home::new();
    for mode in [0o600, 0o666, 0o755, 0o777, 0o400] {
        home.place("x", "x", mode).unwrap();
        let found = fs::metadata(home.on_disk("x")).unwrap().permissions().mode();
        assert_eq!(found & 0o7777, u32::from(mode));
    }
}

#[test]
fn a_process_with_the_old_file_open_keeps_the_old_bytes() {
    let home = Home::new();
    home.place("x", "old", 0o644).unwrap();
    let mut held = File::open(home.on_disk("x")).unwrap();
    home.place("x", "new and longer", 0o644).unwrap();
    let mut text = String::new();
    held.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), home.read("x").as_str()), ("old", "new and longer"));
}

#[test]
fn every_kind_of_node_takes_the_place_of_every_other() {
    let home = Home::new();
    let kinds: [(&str, &dyn Fn() -> ObservedKind); 3] = [
        ("file", &|| home.place("x", "text", 0o644).unwrap().kind),
        ("link", &|| home.place_link("x", "elsewhere").unwrap().kind),
        ("folder", &|| home.place_folder("x").unwrap().kind),
    ];
    for (from, first) in &kinds {
        for (to, second) in &kinds {
            first();
            let kind = second();
            let seen = home.workspace.observe(&at("x")).unwrap().unwrap();
            assert_eq!(seen.kind, kind, "{from} to {to}");
        }
    }
    home.assert_clean();
}

#[test]
fn a_folder_with_something_in_it_is_in_the_way() {
    let home = Home::new();
    home.write("x/mine", "keep");
    let file = home.place("x", "text", 0o644).unwrap_err();
    let link = home.place_link("x", "y").unwrap_err();
    let gone = home.workspace.remove(&at("x"), Expected::Anything).unwrap_err();
    for error in [file, link, gone] {
        assert!(matches!(error, DiskError::FolderInTheWay { .. }), "{error}");
    }
    assert_eq!(home.read("x/mine"), "keep");
    home.assert_clean();
}

#[test]
fn a_file_above_a_path_is_not_a_folder() {
    let home = Home::new();
    home.write("a", "file");
    for error in
        [home.place("a/b/c", "x", 0o644).unwrap_err(), home.workspace.observe(&at("a/b")).unwrap_err()]
    {
        assert!(matches!(&error, DiskError::NotAFolder { at, .. } if at.as_str() == "a"), "{error}");
    }
    home.assert_clean();
}

#[test]
fn content_that_fails_or_has_another_size_leaves_the_old_file() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the blob is gone"))
        }
    }
    let home = Home::new();
    home.place("x", "old", 0o644).unwrap();
    let node = FileNode::file(ContentRef::of(b"four"), 0o644);
    let place = |content: Option<&mut dyn Read>| {
        home.workspace.place(&at("x"), &node, content, Expected::Anything).unwrap_err()
    };
    assert!(matches!(place(None), DiskError::NoContent { .. }));
    assert!(matches!(place(Some(&mut Broken)), DiskError::Content { .. }));
    assert!(matches!(place(Some(&mut &b"abc"[..])), DiskError::WrongSize { expected: 4, found: 3, .. }));
    assert!(matches!(place(Some(&mut io::repeat(0))), DiskError::WrongSize { .. }));
    assert_eq!(home.read("x"), "old");
    home.assert_clean();
}

#[test]
fn removing_is_fine_with_absence_and_prunes_upwards() {
    let home = Home::new();
    home.place("a/b/c/d", "x", 0o644).unwrap();
    home.place("a/other", "x", 0o644).unwrap();
    let path = at("a/b/c/d");
    home.workspace.remove(&path, Expected::Anything).unwrap();
    home.workspace.remove(&path, Expected::Anything).unwrap();
    home.workspace.prune(&path, &|_| false).unwrap();
    assert!(home.on_disk("a").is_dir() && !home.on_disk("a/b").exists());

    home.folder("k/l/m");
    home.workspace.remove(&at("k/l/m"), Expected::Anything).unwrap();
    home.workspace.prune(&at("k/l/m"), &|folder| folder == &at("k")).unwrap();
    assert!(home.on_disk("k").is_dir() && !home.on_disk("k/l").exists());
    home.workspace.remove(&at("never/was/here"), Expected::Anything).unwrap();
    home.workspace.prune(&at("never/was/here"), &|_| false).unwrap();
}

#[test]
fn leftovers_of_a_crash_are_cleaned_and_nothing_else() {
    let home = Home::new();
    home.write(".choir/tmp/place-1-2", "half a file");
    home.write(".choir/tmp/another-programs", "keep");
    assert_eq!(home.workspace.clean_scratch().unwrap(), 1);
    assert_eq!(home.read(".choir/tmp/another-programs"), "keep");
}

#[test]
fn the_hash_of_a_file_is_the_hash_of_its_bytes() {
    let home = Home::new();
    let large = "0123456789".repeat(100_000);
    for text in ["", "x", large.as_str()] {
        let placed = home.place("f", text, 0o644).unwrap();
        let (content, stat) = hash_file(&home.workspace, &at("f")).unwrap();
        assert_eq!((content, stat), (ContentRef::of(text.as_bytes()), placed.stat));
    }
    let missing = hash_file(&home.workspace, &at("g")).unwrap_err();
    assert!(matches!(missing, DiskError::Missing { .. }), "{missing}");
}

#[test]
fn a_file_that_never_rests_is_busy() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let home = Home::new();
    home.write("busy", &"x".repeat(8 << 20));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(home.on_disk("busy")).unwrap();
            while !stop.load(Ordering::Relaxed) {
                io::Write::write_all(&mut file, b"y").unwrap();
            }
        });
        // On a machine with much to do the writer may pause for as long as one reading takes.
        let is_busy = |_| matches!(hash_file(&home.workspace, &at("busy")), Err(DiskError::Busy { .. }));
        let noticed = (0..50).any(is_busy);
        stop.store(true, Ordering::Relaxed);
        assert!(noticed);
    });
    assert!(hash_file(&home.workspace, &at("busy")).is_ok());
}
