//! What the rules ignore is not captured, what the log holds is never ignored.

use std::fs;

use crate::computer::{Computer, at};

fn tracked(computer: &Computer) -> Vec<String> {
    computer.nodes().into_keys().map(|path| path.to_string()).collect()
}

#[test]
fn what_is_ignored_when_it_is_made_is_not_captured() {
    let computer = Computer::new();
    computer.edit(".gitignore", "target/\n*.log\n");
    computer.edit("target/debug/out", "built\n");
    computer.edit("x.log", "noise\n");
    computer.edit("x.rs", "source\n");
    computer.settle();
    assert_eq!(tracked(&computer), [".gitignore", "x.rs"]);
    assert!(!computer.holds(b"built\n") && !computer.holds(b"noise\n"), "not even its bytes");
    assert_eq!(computer.capture_paths(&["target/debug/out", "x.log", "target"]).edits, 0);
    assert_eq!(computer.read("x.log").as_deref(), Some("noise\n"), "and it stays on disk");
}

#[test]
fn paths_in_the_log_are_captured_even_if_ignored() {
    let computer = Computer::new();
    computer.edit("x.log", "one\n");
    computer.edit("target/kept", "one\n");
    computer.settle();
    computer.edit(".gitignore", "target/\n*.log\n");
    computer.edit("target/other", "not kept\n");
    computer.settle();
    assert_eq!(tracked(&computer), [".gitignore", "target/kept", "x.log"]);
    computer.edit("x.log", "two\n");
    computer.edit("target/kept", "two\n");
    assert_eq!(computer.capture_paths(&["x.log"]).edits, 1);
    assert_eq!(computer.capture().edits, 1);
    assert_eq!(computer.logged("x.log").as_deref(), Some("two\n"));
    assert_eq!(computer.logged("target/kept").as_deref(), Some("two\n"));
    fs::remove_dir_all(computer.on_disk("target")).unwrap();
    assert_eq!(computer.capture_paths(&["target"]).edits, 1, "its deletion too");
    assert_eq!(tracked(&computer), [".gitignore", "x.log"]);
}

#[test]
fn choirignore_has_the_last_word() {
    let computer = Computer::new();
    computer.edit(".gitignore", "*.log\n");
    computer.edit(".choirignore", "!kept.log\nprivate/\n");
    for path in ["x.log", "kept.log", "private/diary", "public/diary"] {
        computer.edit(path, format!("{path}\n"));
    }
    computer.settle();
    assert_eq!(tracked(&computer), [".choirignore", ".gitignore", "kept.log", "public/diary"]);
}

#[test]
fn what_is_no_longer_ignored_is_captured() {
    let computer = Computer::new();
    computer.edit(".gitignore", "*.log\n");
    computer.edit("d/x.log", "text\n");
    computer.settle();
    computer.edit(".gitignore", "\n");
    assert_eq!(computer.capture_paths(&[".gitignore"]).edits, 2, "a rule file counts as its folder");
    assert_eq!(computer.logged("d/x.log").as_deref(), Some("text\n"));
}

#[test]
fn an_agent_may_write_where_the_rules_ignore() {
    let computer = Computer::new();
    computer.edit(".gitignore", "dist/\n");
    computer.settle();
    computer.write("dist/page.html", "written through the log\n");
    computer.catch_up();
    assert_eq!(computer.read("dist/page.html").as_deref(), Some("written through the log\n"));
    computer.edit("dist/page.html", "edited by hand\n");
    assert_eq!(computer.capture_paths(&["dist/page.html"]).edits, 1);
    computer.delete("dist");
    computer.catch_up();
    assert!(!computer.on_disk("dist").exists());
    assert!(!computer.nodes().contains_key(&at("dist/page.html")));
    computer.assert_faithful();
}

#[test]
fn a_deletion_in_the_log_spares_the_ignored_neighbours() {
    let computer = Computer::new();
    computer.edit(".gitignore", "*.cache\n");
    computer.edit("d/x", "x\n");
    computer.edit("d/x.cache", "cached\n");
    computer.settle();
    computer.delete("d/x");
    computer.catch_up();
    assert_eq!(computer.read("d/x.cache").as_deref(), Some("cached\n"));
    assert_eq!(computer.capture().op, None);
}

#[test]
fn the_computers_own_folder_is_never_captured() {
    let computer = Computer::new();
    computer.edit("x", "x\n");
    computer.edit(".choir/state", "not a file of the person's\n");
    let captured = computer.capture();
    assert_eq!((captured.edits, captured.skipped.len()), (1, 0));
    computer.edit("d/.Choir/state", "a spelling of it\n");
    let captured = computer.capture();
    assert_eq!((captured.edits, captured.skipped.len()), (0, 1), "{captured:?}");
}
