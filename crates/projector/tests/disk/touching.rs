//! For the paths that it covers, a scan of touched paths must find exactly what a full scan finds.

use std::fs;

use projector::scan::{scan, scan_paths};
use shared_types::FilePath;

use crate::fixture::{Home, at, listing};

#[track_caller]
fn check(home: &Home, touched: &[&str], known: &[&str], expected: &[&str]) {
    let paths = |texts: &[&str]| texts.iter().map(|text| at(text)).collect::<Vec<FilePath>>();
    let (touched, known) = (paths(touched), paths(known));
    let part = scan_paths(&home.workspace, &touched, &known).unwrap();
    assert_eq!(listing(&part), expected);
    let whole = scan(&home.workspace, &known).unwrap();
    let covered = whole.entries.iter().filter(|(path, _)| part.covers(path)).cloned().collect::<Vec<_>>();
    assert_eq!(part.entries, covered, "the whole scan sees something else");
    for path in &touched {
        assert!(part.covers(path), "{path} was touched");
    }
}

#[test]
fn only_touched_paths_are_scanned() {
    let home = Home::new();
    home.write("a/x", "x").write("a/y", "x").write("b/z", "x").write("b/c/d", "x").write("e", "x");
    check(&home, &["a/x"], &[], &["a/x"]);
    check(&home, &["b", "b/c/d", "e"], &[], &["b/c/d", "b/z", "e"]);
    check(&home, &["gone", "a/gone/deeper"], &[], &[]);
}

#[test]
fn folders_above_are_noticed_when_they_become_empty() {
    let home = Home::new();
    home.write("a/b/c", "x").write("d/e", "x");
    fs::remove_file(home.on_disk("a/b/c")).unwrap();
    check(&home, &["a/b/c"], &["a/b/c"], &["a/b/"]);
    fs::remove_dir_all(home.on_disk("a")).unwrap();
    check(&home, &["a/b/c", "a/b", "a"], &["a/b/c"], &[]);
    // A folder that was recorded as empty is covered, so that its absence from the entries shows.
    let part = scan_paths(&home.workspace, &[at("d/e")], []).unwrap();
    assert!(part.covers(&at("d")) && !part.covers(&at("d/other")));
}

#[test]
fn a_folder_that_became_a_link_or_a_file_is_seen_as_that() {
    let home = Home::new();
    home.write("b/x", "x").link("b", "a").write("f", "x");
    check(&home, &["a/x", "f/y/z"], &["a/x", "f/y/z"], &["a -> b", "f"]);
}

#[test]
fn the_same_rules_hold_as_in_a_whole_scan() {
    let home = Home::new();
    home.write(".gitignore", "*.o\ntarget/\n").write("d/.gitignore", "!keep.o\n");
    home.write("d/keep.o", "x").write("d/x.o", "x").write("target/a/b", "x").write("target/a/c", "x");
    check(&home, &["d/keep.o", "d/x.o", "target/a/b", "target"], &[], &["d/keep.o"]);
    check(&home, &["target/a"], &["target/a/b", "d/x.o"], &["target/a/b"]);
    check(&home, &["d/x.o"], &["d/x.o"], &["d/x.o"]);
    home.write("only/x.o", "x");
    check(&home, &["only/x.o"], &["only"], &["only/"]);
}

#[test]
fn a_touched_rule_file_counts_as_its_folder() {
    let home = Home::new();
    home.write("d/.gitignore", "").write("d/now_seen", "x").write("e", "x").write("d/s/t", "x");
    check(&home, &["d/.gitignore"], &[], &["d/.gitignore", "d/now_seen", "d/s/t"]);
    check(&home, &[".choirignore"], &[], &["d/.gitignore", "d/now_seen", "d/s/t", "e"]);
}
