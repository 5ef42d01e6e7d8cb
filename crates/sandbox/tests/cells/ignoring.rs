//! Ignored files: no events, but in their place, and back again after an undo.

use crate::test_computer::TestComputer;

fn computer() -> TestComputer {
    let computer = TestComputer::new();
    computer.write(".gitignore", "target/\n.env\n*.log\n");
    computer.write("src/main.rs", "fn main() {}\n");
    computer
}

#[test]
fn ignored_files_are_put_in_place_without_events() {
    let computer = computer();
    let ran = computer
        .sh("mkdir -p target/debug; echo o > target/debug/out; echo l > run.log; echo x >> src/main.rs");
    assert_eq!(ran.done.total, 1, "{:?}", ran.done.changes);
    assert_eq!(
        (computer.read("target/debug/out").as_str(), computer.read("run.log").as_str()),
        ("o\n", "l\n")
    );
    // The next command finds them, so that a build goes on where it was.
    let ran = computer.sh("cat target/debug/out; echo p > target/debug/out; echo q > target/debug/new");
    assert_eq!(computer.output(&ran), "o\n");
    assert_eq!(
        (computer.read("target/debug/out").as_str(), computer.read("target/debug/new").as_str()),
        ("p\n", "q\n")
    );
    computer.assert_settled();
}

#[test]
fn undo_brings_back_ignored_files_that_a_command_deleted_or_replaced() {
    let computer = computer();
    std::fs::write(computer.path(".env"), "SECRET=1\n").unwrap();
    std::fs::create_dir_all(computer.path("target/debug")).unwrap();
    std::fs::write(computer.path("target/debug/out"), "old\n").unwrap();
    let ran = computer.sh("rm -rf .env src; echo new > target/debug/out");
    assert!(!computer.has(".env") && !computer.has("src"));
    assert_eq!(computer.read("target/debug/out"), "new\n");
    computer.undo(ran.op);
    assert_eq!(
        (computer.read(".env").as_str(), computer.read("target/debug/out").as_str()),
        ("SECRET=1\n", "old\n")
    );
    assert!(computer.has("src/main.rs"));
    computer.assert_settled();
    computer.redo(ran.op);
    assert!(!computer.has("src"));
    computer.assert_settled();
}

#[test]
fn a_folder_that_goes_away_takes_its_ignored_files_to_the_trash() {
    let computer = computer();
    computer.write("app/lib.rs", "l\n");
    std::fs::create_dir_all(computer.path("app/target")).unwrap();
    std::fs::write(computer.path("app/target/out"), "o\n").unwrap();
    let ran = computer.sh("rm -rf app");
    assert!(!computer.has("app"));
    computer.assert_settled();
    computer.undo(ran.op);
    assert_eq!(
        (computer.read("app/lib.rs").as_str(), computer.read("app/target/out").as_str()),
        ("l\n", "o\n")
    );
}

#[test]
fn the_rules_are_those_from_before_the_command() {
    let computer = computer();
    let ran = computer.sh("echo '*.txt' >> .gitignore; echo t > kept.txt; echo s > .env");
    let paths: Vec<_> = ran.done.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, [".gitignore", "kept.txt"]);
    computer.assert_settled();
}

#[test]
fn a_path_in_the_log_is_never_ignored() {
    let computer = computer();
    computer.write("target/tracked", "t\n");
    let ran = computer.sh("echo more >> target/tracked; echo o > target/other");
    let paths: Vec<_> = ran.done.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["target/tracked"]);
    assert_eq!(computer.read("target/other"), "o\n");
    computer.undo(ran.op);
    assert_eq!(computer.read("target/tracked"), "t\n");
}
