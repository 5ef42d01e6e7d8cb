//! Search, and the history of paths, after edits, moves, deletions and purges.

use std::fs;

use shared_types::payload::message::{ConversationStart, MessagePost, Role};
use shared_types::{ContentRef, ConversationId, FilePath, MessageId, Seq, Timestamp};

use crate::computer::{Computer, at};

#[track_caller]
fn finds(computer: &Computer, words: &str, expected: &[&str]) {
    computer.settle();
    let mut found: Vec<_> =
        computer.views().search(words, 100).unwrap().into_iter().map(|hit| hit.path).collect();
    found.sort();
    assert_eq!(found, expected, "{words:?}");
}

#[test]
fn files_are_found_by_text_and_name_as_they_are_now() {
    let computer = Computer::new();
    computer.write("notes/garden.md", "tomatoes and beans\n");
    computer.write("notes/kitchen.md", "tomatoes and Öl\n");
    computer.write("picture.png", [0, 1, 2, 255]);
    finds(&computer, "tomatoes", &["notes/garden.md", "notes/kitchen.md"]);
    finds(&computer, "tomatoes beans", &["notes/garden.md"]);
    finds(&computer, "öl", &["notes/kitchen.md"]);
    finds(&computer, "garden", &["notes/garden.md"]);
    finds(&computer, "picture", &["picture.png"]);
    computer.write("notes/garden.md", "only peas now\n");
    finds(&computer, "beans", &[]);
    finds(&computer, "peas", &["notes/garden.md"]);
    computer.rename("notes/garden.md", "notes/field.md");
    finds(&computer, "peas", &["notes/field.md"]);
    finds(&computer, "garden", &[]);
    computer.edit("notes/field.md", "edited from outside\n");
    finds(&computer, "outside", &["notes/field.md"]);
    computer.delete("notes");
    finds(&computer, "outside", &[]);
    finds(&computer, "tomatoes", &[]);
}

#[test]
fn any_search_text_is_accepted() {
    let computer = Computer::new();
    computer.write("x", "a \"quoted\" AND NOT (bracketed) word* col:on\n");
    for words in
        ["\"quoted\"", "AND NOT", "(bracketed)", "word*", "col:on", "x", "a\0b quoted", "-", "", "* * \""]
    {
        computer.settle();
        computer.views().search(words, 10).unwrap();
    }
    finds(&computer, "\"quoted\"", &["x"]);
    finds(&computer, "AND bracketed", &["x"]);
    finds(&computer, "missing", &[]);
}

#[test]
fn a_huge_or_binary_file_is_found_by_its_name_only() {
    let computer = Computer::new();
    computer.write("huge.txt", "needle ".repeat(200_000));
    computer.write("binary", b"needle\0");
    finds(&computer, "needle", &[]);
    finds(&computer, "huge", &["huge.txt"]);
}

/// Whether the files of the read models contain the bytes.
fn is_in_the_files(computer: &Computer, word: &str) -> bool {
    ["", "-wal"].iter().any(|suffix| {
        let path = computer.state().join(format!("{}{suffix}", projector::Views::FILE));
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    })
}

#[test]
fn a_purge_removes_the_text_from_the_read_models() {
    let computer = Computer::new();
    let (secret, other) = ("the key is xyzzyplugh\n", "they said quuxfrobnicate\n");
    computer.write("notes", secret);
    computer.write("deleted", secret);
    let conversation = ConversationId::mint(Timestamp::from_millis(1), [1; 10]);
    computer.record(ConversationStart { conversation, title: "a talk".into() }, &[]);
    let message = MessageId::mint(Timestamp::from_millis(1), [2; 10]);
    let body = ContentRef::of(other.as_bytes());
    let post = MessagePost { conversation, message, role: Role::Person, body, reply_to: None };
    computer.record(post, &[other.as_bytes()]);
    finds(&computer, "xyzzyplugh", &["deleted", "notes"]);
    assert!(is_in_the_files(&computer, "xyzzyplugh"));

    computer.write("notes", "nothing here\n");
    computer.delete("deleted");
    computer.settle();
    computer.purge(secret);
    computer.purge(other);
    finds(&computer, "xyzzyplugh", &[]);
    finds(&computer, "notes", &["notes"]);
    assert!(!is_in_the_files(&computer, "xyzzyplugh"), "the words of old versions are still in the index");
    assert!(!is_in_the_files(&computer, "quuxfrobnicate"), "messages of older logs are not indexed");
    computer.assert_faithful();
}

#[test]
fn a_file_that_lost_its_bytes_is_found_by_its_name() {
    let computer = Computer::new();
    computer.write("secret.txt", "xyzzyplugh\n");
    computer.settle();
    computer.purge("xyzzyplugh\n");
    finds(&computer, "xyzzyplugh", &[]);
    finds(&computer, "secret", &["secret.txt"]);
}

#[test]
fn the_history_of_a_path_is_what_touched_it_or_something_below_it() {
    let computer = Computer::new();
    computer.write("d/x", "1\n"); // 1
    computer.write("d/y", "2\n"); // 2
    computer.write("d-other", "3\n"); // 3
    computer.write("d/x", "4\n"); // 4
    computer.rename("d/x", "e"); // 5
    computer.write("d0", "6\n"); // 6
    computer.delete("d"); // 7
    computer.settle();
    let touches = |path: &str| {
        let seqs: Vec<Seq> = computer.views().touches(&at(path)).unwrap();
        seqs.into_iter().map(|seq| seq.0).collect::<Vec<_>>()
    };
    assert_eq!(touches("d/x"), [1, 4, 5]);
    assert_eq!(touches("d"), [1, 2, 4, 5, 7]);
    assert_eq!(touches("e"), [5]);
    assert_eq!(touches("d-other"), [3]);
    assert_eq!(touches("d0"), [6]);
    assert_eq!(touches("never"), Vec::<u64>::new());
}

#[test]
fn a_large_operation_touches_all_of_its_paths() {
    let computer = Computer::new();
    for number in 0..600 {
        computer.edit(&format!("many/{number}"), format!("{number}\n"));
    }
    computer.settle();
    assert_eq!(computer.head(), Seq(1), "one file.batch");
    assert_eq!(computer.views().touches(&FilePath::parse("many/599").unwrap()).unwrap(), [Seq(1)]);
    assert_eq!(computer.views().touches(&at("many")).unwrap(), [Seq(1)]);
    assert_eq!(computer.views().recent(1).unwrap()[0].files, 600);
}
