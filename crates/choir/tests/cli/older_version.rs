//! A computer of an earlier version opens, verifies, undoes and goes on.
//!
//! `fixtures/computers/before-rooms.tar.gz` was made by the version of commit d55139b, with its own command line: files, a
//! link, outside edits, a move, a command in a cell with ignored files, its undo and redo, a dry run that waits, a purge, a
//! checkpoint, a run of agents that is over, and one that waits for an answer. A whiteout and the scratch folder of the dry
//! run's overlay are left out, because only root can make them.

use std::fs::File;

use flate2::read::GzDecoder;
use tar::Archive;

use crate::test_computer::TestComputer;

const EVENTS: usize = 61;
/// The operation of the command, the dry run, the run that is over, and the one that waits.
const COMMAND_REDONE: &str = "8110f4fc";
const DRY_RUN: &str = "8ad905f4";
const RUN: &str = "48de6600";
const WAITING: &str = "af1a0073";

fn older() -> TestComputer {
    let computer = TestComputer::bare();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/computers/before-rooms.tar.gz");
    let mut archive = Archive::new(GzDecoder::new(File::open(path).unwrap()));
    archive.set_preserve_permissions(true);
    archive.unpack(&computer.work).unwrap();
    computer
}

#[test]
fn a_computer_of_an_earlier_version_verifies_as_it_is() {
    let computer = older();
    let before = computer.files();
    computer.assert_intact();
    assert_eq!(computer.events().len(), EVENTS, "opening records nothing");
    assert_eq!(computer.files(), before);
    let purged = computer.run(&["cat", "secret.txt", "--at", "30"]);
    assert_ne!(purged.code, 0, "what was purged stays away: {purged:?}");
}

#[test]
fn what_an_earlier_version_recorded_is_undone_and_goes_on() {
    let computer = older();
    computer.ok(&["runs", "undo", RUN]);
    assert!(!computer.has("tea.md"), "all that the run did is undone");
    computer.ok(&["undo", COMMAND_REDONE]);
    assert_eq!(computer.read("src/main.rs"), "fn main() {}\n");
    assert!(!computer.has("out/made.txt"));
    computer.ok(&["run", "--accept", DRY_RUN]);
    assert_eq!(computer.read("dry.txt"), "dry\n");
    let asked = computer.ok(&["approve"]).out;
    assert!(asked.contains("Which colour?"), "{asked}");
    computer.ok(&["runs", "stop", WAITING]);
    computer.ok(&["restore", "12"]);
    assert_eq!(computer.read("lines.txt"), "one\nTWO\nthree\nfour\nfive\n");
    assert!(!computer.has("dry.txt"));
    computer.assert_intact();
    let archive = computer.path("../exported.zip").display().to_string();
    computer.ok(&["export", &archive]);
    let other = TestComputer::bare();
    other.ok(&["init", "."]);
    other.ok(&["import", &archive]);
    other.assert_intact();
    assert_eq!(other.events().len(), computer.events().len(), "an empty computer adopts the log");
}
