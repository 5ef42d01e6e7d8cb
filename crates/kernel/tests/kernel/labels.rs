//! Taint labels of files: they stay as long as the file may hold any of the tainted text.

use kernel::Action;
use shared_types::Taint;

use crate::shell::Shell;
use crate::steps::*;

fn labels(shell: &Shell, at: &str) -> Vec<String> {
    let labels = shell.view.tainted_files.get(&path(at)).into_iter().flatten();
    labels.map(|label| label.as_str().to_owned()).collect()
}

fn stranger(at: &str, lines: &str) -> Step {
    write(at, lines).tainted(&Taint::WEB)
}

#[test]
fn a_file_loses_its_labels_when_the_person_saves_another_text() {
    let (mut shell, _) = Shell::after([stranger("a", "one|two"), write("a", "mine")]);
    assert_eq!(labels(&shell, "a"), [""; 0]);
    shell.done(stranger("a", "theirs"));
    assert_eq!(labels(&shell, "a"), ["web"]);
}

#[test]
fn an_edit_found_on_disk_leaves_the_labels() {
    let (mut shell, _) = Shell::after([stranger("a", "one|two"), write("b", "clean")]);
    let edits: [Edit<'_>; 2] = [
        ("a", Some(file("one|two")), Some(file("ONE|two"))),
        ("b", Some(file("clean")), Some(file("CLEAN"))),
    ];
    shell.done(with(capture(&edits), &["ONE|two", "CLEAN"]));
    assert_eq!((labels(&shell, "a"), labels(&shell, "b")), (vec!["web".to_owned()], vec![]));
}

#[test]
fn what_is_merged_with_labelled_words_is_labelled() {
    let first = write("a", "1|2|3|4");
    let (mut shell, _) = Shell::after([first, stranger("a", "1|2|3|IMPORTANT")]);
    // An agent without taint started from the text before.
    let edit: [Edit<'_>; 1] = [("a", Some(file("1|2|3|4")), Some(file("one|2|3|4")))];
    for step in crate::agents::working() {
        shell.done(step);
    }
    let step = with(crate::agents::make(1, &edit, None), &["one|2|3|4"]);
    shell.run(Step { source: shared_types::Source::Agent, ..step }).unwrap();
    assert_eq!(shell.tree(), "a: one|2|3|IMPORTANT");
    assert_eq!(labels(&shell, "a"), ["web"]);
}

#[test]
fn a_clean_agent_that_writes_a_whole_file_clears_it() {
    let (mut shell, _) = Shell::after([stranger("a", "theirs")]);
    for step in crate::agents::working() {
        shell.done(step);
    }
    let edit: [Edit<'_>; 1] = [("a", Some(file("theirs")), Some(file("mine")))];
    let step = with(crate::agents::make(1, &edit, None), &["mine"]);
    shell.run(Step { source: shared_types::Source::Agent, ..step }).unwrap();
    assert_eq!(labels(&shell, "a"), [""; 0]);
}

#[test]
fn labelled_words_that_come_back_are_labelled() {
    let (mut shell, _) = Shell::after([stranger("a", "1|2|3|IMPORTANT")]);
    // As a copy,
    shell.done(write("b", "1|2|3|IMPORTANT"));
    assert_eq!(labels(&shell, "b"), ["web"]);
    // by an undo,
    let saved = shell.done(write("a", "1|2|3|4"));
    assert_eq!(labels(&shell, "a"), [""; 0]);
    shell.undo(saved).unwrap();
    assert_eq!(labels(&shell, "a"), ["web"]);
    shell.redo(saved).unwrap();
    assert_eq!(labels(&shell, "a"), [""; 0]);
    // and by an undo that is merged with what came later.
    shell.done(write("a", "one|2|3|4"));
    shell.undo(saved).unwrap();
    assert_eq!(shell.tree(), "a: one|2|3|IMPORTANT; b: 1|2|3|IMPORTANT");
    assert_eq!(labels(&shell, "a"), ["web"]);
}

#[test]
fn a_long_list_of_edits_keeps_the_labels_of_each_file() {
    let (mut shell, _) = Shell::after([stranger("f0", "one"), write("f1", "one")]);
    let names: Vec<String> = (0..600).map(|n| format!("f{n}")).collect();
    let edit = |name: &String| kernel::command::OutsideEdit {
        path: path(name),
        base: (name == "f0" || name == "f1").then(|| file("one")),
        now: Some(file("two")),
    };
    let step = Action::CaptureEdits { edits: names.iter().map(edit).collect() };
    let events = shell.run(with(step.into(), &["two"])).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(labels(&shell, "f0"), ["web"]);
}
