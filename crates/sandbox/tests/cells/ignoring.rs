//! Ignored files: no events, but in their place, and back again after an undo.

use crate::house::House;

fn house() -> House {
    let house = House::new();
    house.write(".gitignore", "target/\n.env\n*.log\n");
    house.write("src/main.rs", "fn main() {}\n");
    house
}

#[test]
fn ignored_files_are_put_in_place_without_events() {
    let house = house();
    let ran =
        house.sh("mkdir -p target/debug; echo o > target/debug/out; echo l > run.log; echo x >> src/main.rs");
    assert_eq!(ran.done.total, 1, "{:?}", ran.done.changes);
    assert_eq!((house.read("target/debug/out").as_str(), house.read("run.log").as_str()), ("o\n", "l\n"));
    // The next command finds them, so that a build goes on where it was.
    let ran = house.sh("cat target/debug/out; echo p > target/debug/out; echo q > target/debug/new");
    assert_eq!(house.output(&ran), "o\n");
    assert_eq!(
        (house.read("target/debug/out").as_str(), house.read("target/debug/new").as_str()),
        ("p\n", "q\n")
    );
    house.assert_settled();
}

#[test]
fn undo_brings_back_ignored_files_that_a_command_deleted_or_replaced() {
    let house = house();
    std::fs::write(house.path(".env"), "SECRET=1\n").unwrap();
    std::fs::create_dir_all(house.path("target/debug")).unwrap();
    std::fs::write(house.path("target/debug/out"), "old\n").unwrap();
    let ran = house.sh("rm -rf .env src; echo new > target/debug/out");
    assert!(!house.has(".env") && !house.has("src"));
    assert_eq!(house.read("target/debug/out"), "new\n");
    house.undo(ran.op);
    assert_eq!(
        (house.read(".env").as_str(), house.read("target/debug/out").as_str()),
        ("SECRET=1\n", "old\n")
    );
    assert!(house.has("src/main.rs"));
    house.assert_settled();
    house.redo(ran.op);
    assert!(!house.has("src"));
    house.assert_settled();
}

#[test]
fn a_folder_that_goes_away_takes_its_ignored_files_to_the_trash() {
    let house = house();
    house.write("app/lib.rs", "l\n");
    std::fs::create_dir_all(house.path("app/target")).unwrap();
    std::fs::write(house.path("app/target/out"), "o\n").unwrap();
    let ran = house.sh("rm -rf app");
    assert!(!house.has("app"));
    house.assert_settled();
    house.undo(ran.op);
    assert_eq!((house.read("app/lib.rs").as_str(), house.read("app/target/out").as_str()), ("l\n", "o\n"));
}

#[test]
fn the_rules_are_those_from_before_the_command() {
    let house = house();
    let ran = house.sh("echo '*.txt' >> .gitignore; echo t > kept.txt; echo s > .env");
    let paths: Vec<_> = ran.done.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, [".gitignore", "kept.txt"]);
    house.assert_settled();
}

#[test]
fn a_path_in_the_log_is_never_ignored() {
    let house = house();
    house.write("target/tracked", "t\n");
    let ran = house.sh("echo more >> target/tracked; echo o > target/other");
    let paths: Vec<_> = ran.done.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["target/tracked"]);
    assert_eq!(house.read("target/other"), "o\n");
    house.undo(ran.op);
    assert_eq!(house.read("target/tracked"), "t\n");
}
