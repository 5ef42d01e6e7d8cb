//! What the watcher reports about changes that other programs make.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use projector::scan::scan_paths;
use projector::watch::{Touched, Watch};
use shared_types::FilePath;

use crate::fixture::{Home, at, listing};

const TIMEOUT: Duration = Duration::from_secs(5);
const QUIET: Duration = Duration::from_millis(60);

fn start(home: &Home) -> Watch {
    Watch::start(&home.root(), &home.on_disk(".choir")).unwrap()
}

#[track_caller]
fn paths(watch: &Watch) -> BTreeSet<FilePath> {
    match watch.next(TIMEOUT, QUIET) {
        Touched::Paths(paths) => paths,
        other @ (Touched::Nothing | Touched::Everything) => panic!("{other:?}"),
    }
}

fn set(paths: &[&str]) -> BTreeSet<FilePath> {
    paths.iter().map(|path| at(path)).collect()
}

#[test]
fn creating_editing_and_deleting_are_noticed() {
    let home = Home::new();
    home.write("d/old", "x");
    let watch = start(&home);
    home.write("new", "x").write("d/new", "x");
    assert_eq!(paths(&watch), set(&["new", "d/new"]));
    home.write("d/old", "y");
    assert_eq!(paths(&watch), set(&["d/old"]));
    fs::remove_file(home.on_disk("d/old")).unwrap();
    assert_eq!(paths(&watch), set(&["d/old"]));
    fs::rename(home.on_disk("new"), home.on_disk("d/moved")).unwrap();
    assert_eq!(paths(&watch), set(&["new", "d/moved"]));
    assert_eq!(watch.next(Duration::from_millis(50), QUIET), Touched::Nothing);
}

#[test]
fn a_save_by_rename_is_one_change() {
    let home = Home::new();
    home.write("d/text", "one");
    let watch = start(&home);
    // As vim does it: the old file becomes the backup, the new one is written, the backup goes.
    fs::rename(home.on_disk("d/text"), home.on_disk("d/text~")).unwrap();
    home.write("d/text", "two");
    fs::remove_file(home.on_disk("d/text~")).unwrap();
    let touched = paths(&watch);
    assert_eq!(touched, set(&["d/text", "d/text~"]));
    assert_eq!(listing(&scan_paths(&home.workspace, &touched, []).unwrap()), ["d/text"]);
    assert_eq!(watch.next(Duration::from_millis(50), QUIET), Touched::Nothing);
}

#[test]
fn files_made_right_after_their_folder_are_found() {
    let home = Home::new();
    let watch = start(&home);
    for round in 0..20 {
        let top = format!("top{round}");
        let expected = ["a/b/c/x", "a/y", "z"].map(|name| format!("{top}/{name}"));
        for path in &expected {
            home.write(path, "x");
        }
        let touched = paths(&watch);
        let found = listing(&scan_paths(&home.workspace, &touched, []).unwrap());
        assert_eq!(found, expected, "{touched:?}");
        // And the new folders are watched from now on, however deep.
        home.write(&expected[0], "y");
        assert_eq!(paths(&watch), set(&[&expected[0]]));
    }
}

#[test]
fn a_folder_that_moved_is_watched_under_its_new_name() {
    let home = Home::new();
    home.write("a/b/x", "x");
    let watch = start(&home);
    fs::rename(home.on_disk("a"), home.on_disk("z")).unwrap();
    assert_eq!(paths(&watch), set(&["a", "z"]));
    home.write("z/b/x", "y");
    assert_eq!(paths(&watch), set(&["z/b/x"]));
}

#[test]
fn the_computers_own_folder_is_not_reported() {
    let home = Home::new();
    let watch = start(&home);
    home.write(".choir/state.sqlite", "x").write(".choir/blobs/ab/cd", "x");
    home.place("from_projector", "x", 0o644).unwrap();
    assert_eq!(paths(&watch), set(&["from_projector"]));
    home.write(".choir/state.sqlite", "y");
    assert_eq!(watch.next(Duration::from_millis(150), QUIET), Touched::Nothing);
}

#[test]
fn reading_and_scanning_are_not_changes() {
    let home = Home::new();
    home.write("d/x", "x");
    let watch = start(&home);
    home.read("d/x");
    home.scan();
    assert_eq!(watch.next(Duration::from_millis(150), QUIET), Touched::Nothing);
}

#[test]
fn a_program_that_never_stops_writing_is_reported_too() {
    let home = Home::new();
    let watch = start(&home);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while start.elapsed() < Duration::from_secs(3) {
                home.write("busy", "x");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(paths(&watch), set(&["busy"]));
        assert!(start.elapsed() < Duration::from_millis(2_800), "{:?}", start.elapsed());
    });
}

#[test]
fn a_flood_is_everything() {
    let home = Home::new();
    home.write("d/x", "");
    let watch = start(&home);
    for number in 0..25_000 {
        home.second_name("d/x", &format!("d/{number}"));
    }
    let mut last = Touched::Nothing;
    while last != Touched::Everything {
        last = watch.next(TIMEOUT, QUIET);
        assert_ne!(last, Touched::Nothing, "the flood went unnoticed");
    }
}

#[test]
fn a_missing_folder_cannot_be_watched() {
    let home = Home::new();
    let error = Watch::start(&home.on_disk("nowhere"), &home.on_disk(".choir")).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn several_workspaces_are_watched_at_once_and_each_is_told_of_its_own_changes() {
    let homes = [Home::new(), Home::new()];
    for home in &homes {
        home.write("d/text", "one");
    }
    let watches = homes.each_ref().map(start);
    homes[0].write("d/text", "two");
    assert_eq!(paths(&watches[0]), set(&["d/text"]));
    assert_eq!(watches[1].next(Duration::from_millis(50), QUIET), Touched::Nothing);
    let [first, second] = watches;
    drop(first);
    homes[0].write("d/text", "three");
    homes[1].write("d/new", "two");
    assert_eq!(paths(&second), set(&["d/new"]));
    let again = start(&homes[0]);
    homes[0].write("d/text", "four");
    assert_eq!(paths(&again), set(&["d/text"]), "a workspace can be watched again");
}

#[test]
fn a_workspace_inside_another_is_watched_beside_it() {
    let home = Home::new();
    home.write("inner/text", "one");
    let outer = start(&home);
    let inner = Watch::start(&home.on_disk("inner"), &home.on_disk(".choir")).unwrap();
    home.write("inner/text", "two");
    assert_eq!(paths(&outer), set(&["inner/text"]));
    assert_eq!(paths(&inner), set(&["text"]));
    drop(inner);
    home.write("inner/text", "three");
    assert_eq!(paths(&outer), set(&["inner/text"]), "the outer one is still watched");
}
