//! Outside edits: captured before the projector writes, merged with the log's changes, and kept where the two
//! conflict. No edit is ever lost.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use proptest::collection::vec;
use proptest::prelude::*;
use shared_types::payload::file::FileNode;

use crate::computer::{Computer, at};
use crate::history::config;

fn lines(changed: &[(usize, &str)]) -> String {
    let mut lines: Vec<String> = (1..10).map(|line| format!("line {line}\n")).collect();
    for (line, text) in changed {
        lines[*line] = format!("{text}\n");
    }
    lines.concat()
}

fn with_file() -> Computer {
    let computer = Computer::new();
    computer.write("x.md", lines(&[]));
    computer.settle();
    computer
}

#[test]
fn an_edit_that_was_not_captured_yet_is_merged_with_the_logs() {
    let computer = with_file();
    computer.write("x.md", lines(&[(1, "from the log")]));
    computer.edit("x.md", lines(&[(7, "from the disk")]));
    let done = computer.catch_up();
    assert_eq!(done.captured, 1);
    assert_eq!(computer.read("x.md"), Some(lines(&[(1, "from the log"), (7, "from the disk")])));
    computer.assert_faithful();
    let capture = computer.views().recent(1).unwrap().remove(0);
    assert_eq!((capture.source.as_str(), capture.actor.as_str()), ("user", "capture"));
}

#[test]
fn a_clash_keeps_both() {
    let computer = with_file();
    computer.write("x.md", lines(&[(4, "from the log")]));
    computer.edit("x.md", lines(&[(4, "from the disk")]));
    computer.catch_up();
    assert_eq!(
        computer.read("x.md"),
        Some(lines(&[(4, "from the disk")])),
        "the person's text stays where it is"
    );
    let beside: Vec<_> = computer.disk().into_keys().filter(|path| path.as_str() != "x.md").collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    assert!(beside[0].as_str().starts_with("x.conflict-") && beside[0].as_str().ends_with(".md"));
    assert_eq!(computer.read(beside[0].as_str()), Some(lines(&[(4, "from the log")])));
    computer.assert_faithful();
}

#[test]
fn what_was_deleted_outside_and_changed_in_the_log_stays() {
    let computer = with_file();
    computer.write("x.md", lines(&[(4, "from the log")]));
    fs::remove_file(computer.on_disk("x.md")).unwrap();
    computer.catch_up();
    assert_eq!(computer.read("x.md"), Some(lines(&[(4, "from the log")])));
    computer.assert_faithful();
}

#[test]
fn what_was_changed_outside_and_deleted_in_the_log_stays() {
    let computer = with_file();
    computer.delete("x.md");
    computer.edit("x.md", lines(&[(4, "from the disk")]));
    computer.catch_up();
    assert_eq!(computer.read("x.md"), Some(lines(&[(4, "from the disk")])));
    computer.assert_faithful();
}

#[test]
fn a_new_file_in_the_place_of_a_new_file_is_kept() {
    let computer = with_file();
    computer.write("new", "from the log\n");
    computer.edit("new", "from the disk\n");
    computer.catch_up();
    assert_eq!(computer.read("new").as_deref(), Some("from the disk\n"));
    assert!(
        computer
            .nodes()
            .keys()
            .any(|path| computer.logged(path.as_str()).as_deref() == Some("from the log\n"))
    );
    computer.assert_faithful();
}

#[test]
fn a_file_that_became_a_folder_and_a_folder_that_became_a_file_are_captured() {
    let computer = with_file();
    computer.write("folder/x", "x\n");
    computer.write("folder/y", "y\n");
    computer.settle();
    fs::remove_file(computer.on_disk("x.md")).unwrap();
    computer.edit("x.md/inside", "below a file's name\n");
    fs::remove_dir_all(computer.on_disk("folder")).unwrap();
    computer.edit("folder", "no folder any more\n");
    assert_eq!(computer.capture_paths(&["x.md/inside", "folder"]).edits, 5);
    computer.settle();
    computer.assert_faithful();
    assert_eq!(computer.logged("folder").as_deref(), Some("no folder any more\n"));
    assert_eq!(computer.logged("x.md/inside").as_deref(), Some("below a file's name\n"));
}

#[test]
fn shapes_that_clash_keep_both() {
    let computer = with_file();
    computer.write("folder/x", "x\n");
    computer.settle();
    // The log changes files below a folder that is a file on disk by now, and the other way round.
    computer.write("folder/x", "newer\n");
    fs::remove_dir_all(computer.on_disk("folder")).unwrap();
    computer.edit("folder", "a file\n");
    computer.write("x.md", "newer too\n");
    fs::remove_file(computer.on_disk("x.md")).unwrap();
    computer.edit("x.md/y", "below\n");
    computer.catch_up();
    computer.settle();
    computer.assert_faithful();
    assert_eq!(computer.read("folder").as_deref(), Some("a file\n"));
    assert_eq!(computer.read("x.md/y").as_deref(), Some("below\n"));
    for text in ["newer\n", "newer too\n"] {
        let here =
            computer.disk().into_keys().any(|path| computer.read(path.as_str()).as_deref() == Some(text));
        assert!(here, "{text:?} is not on disk");
    }
}

#[test]
fn a_mode_is_an_edit_and_a_touch_is_none() {
    let computer = with_file();
    let head = computer.head();
    let file = fs::File::options().append(true).open(computer.on_disk("x.md")).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
    assert_eq!(computer.capture().edits, 0);
    assert_eq!(computer.head(), head);
    fs::set_permissions(computer.on_disk("x.md"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(computer.capture().edits, 1);
    assert!(matches!(computer.nodes()[&at("x.md")], FileNode::File { mode: 0o755, .. }));
    computer.settle();
    computer.assert_faithful();
}

#[test]
fn a_merge_for_which_the_bytes_are_gone_keeps_both() {
    let computer = with_file();
    computer.edit("x.md", lines(&[(7, "from the disk")]));
    computer.write("x.md", lines(&[(1, "from the log")]));
    computer.purge(lines(&[]));
    computer.settle();
    computer.assert_faithful();
    assert_eq!(computer.read("x.md"), Some(lines(&[(7, "from the disk")])));
    let logs = lines(&[(1, "from the log")]);
    assert!(computer.disk().into_keys().any(|path| computer.read(path.as_str()).as_ref() == Some(&logs)));
}

/// One thing that the person, an agent or the projector does.
#[derive(Debug, Clone)]
enum Move {
    Edit { path: usize, lines: usize, renamed: bool },
    Remove { path: usize },
    Write { path: usize, line: usize },
    Delete { path: usize },
    Undo,
    Capture,
    CapturePath { path: usize },
    CatchUp,
    Race { step: usize, path: usize },
    Stop { step: usize },
}

const PATHS: [&str; 5] = ["x", "y", "x/below", "d/e", "d/f"];

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let path = 0..PATHS.len();
    let one = prop_oneof![
        6 => (path.clone(), 0..4_usize, any::<bool>())
            .prop_map(|(path, lines, renamed)| Move::Edit { path, lines, renamed }),
        2 => path.clone().prop_map(|path| Move::Remove { path }),
        5 => (path.clone(), 0..4_usize).prop_map(|(path, line)| Move::Write { path, line }),
        1 => path.clone().prop_map(|path| Move::Delete { path }),
        1 => Just(Move::Undo),
        1 => Just(Move::Capture),
        2 => path.clone().prop_map(|path| Move::CapturePath { path }),
        2 => Just(Move::CatchUp),
        2 => (1..4_usize, path).prop_map(|(step, path)| Move::Race { step, path }),
        2 => (0..4_usize).prop_map(|step| Move::Stop { step }),
    ];
    vec(one, 1..40)
}

/// What the person has written and not thrown away.
#[derive(Default)]
struct Person {
    written: RefCell<BTreeSet<Vec<u8>>>,
    count: RefCell<usize>,
}

impl Person {
    /// A whole text that was never there before.
    fn text(&self, line: usize) -> String {
        let mut count = self.count.borrow_mut();
        *count += 1;
        lines(&[(line * 2, &format!("number {count}"))])
    }

    fn edit(&self, computer: &Computer, path: &str, line: usize, renamed: bool) {
        let text = self.text(line);
        self.throw_away(computer, path);
        for above in at(path).ancestors() {
            self.throw_away(computer, above.as_str());
        }
        let target = computer.on_disk(path);
        let _ = fs::remove_dir_all(&target);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        if renamed {
            let draft = computer.on_disk(".swp");
            fs::write(&draft, &text).unwrap();
            fs::rename(draft, target).unwrap();
        } else {
            fs::write(target, &text).unwrap();
        }
        self.written.borrow_mut().insert(text.into_bytes());
    }

    /// The person's own hand: what they overwrite or remove before anybody saw it is theirs to lose.
    fn throw_away(&self, computer: &Computer, path: &str) {
        for (found, _) in computer.disk() {
            if found.is_within(&at(path)) {
                let bytes = fs::read(computer.on_disk(found.as_str())).unwrap_or_default();
                self.written.borrow_mut().remove(&bytes);
            }
        }
        if computer.on_disk(path).is_file() {
            fs::remove_file(computer.on_disk(path)).unwrap();
        }
    }

    fn remove(&self, computer: &Computer, path: &str) {
        self.throw_away(computer, path);
        let _ = fs::remove_dir_all(computer.on_disk(path));
    }

    fn check(&self, computer: &Computer) {
        let on_disk: BTreeSet<Vec<u8>> = computer
            .disk()
            .into_keys()
            .filter_map(|path| fs::read(computer.on_disk(path.as_str())).ok())
            .collect();
        for bytes in self.written.borrow().iter() {
            let kept = on_disk.contains(bytes) || computer.holds(bytes);
            assert!(kept, "lost: {}", String::from_utf8_lossy(bytes));
        }
    }
}

fn play(computer: &mut Computer, person: &Person, next: &Move) {
    match next {
        Move::Edit { path, lines, renamed } => person.edit(computer, PATHS[*path], *lines, *renamed),
        Move::Remove { path } => person.remove(computer, PATHS[*path]),
        Move::Write { path, line } => {
            let text = person.text(*line);
            let node = FileNode::file(shared_types::ContentRef::of(text.as_bytes()), 0o644);
            let action = kernel::Action::WriteFile { path: at(PATHS[*path]), node, base: kernel::Base::Any };
            let _ = computer.submit(event_log::writer::ChangeRequest::Do(action), &[text.as_bytes()]);
        }
        Move::Delete { path } => {
            let action = kernel::Action::DeletePaths { paths: vec![at(PATHS[*path])] };
            let _ = computer.submit(event_log::writer::ChangeRequest::Do(action), &[]);
        }
        Move::Undo => {
            if let Some(row) = computer.views().undoable().unwrap() {
                let resolutions = kernel::Resolutions::default();
                let _ = computer
                    .submit(event_log::writer::ChangeRequest::Undo { target: row.op, resolutions }, &[]);
            }
        }
        Move::Capture => drop(computer.capture()),
        Move::CapturePath { path } => drop(computer.capture_paths(&[PATHS[*path]])),
        Move::CatchUp => drop(computer.catch_up()),
        Move::Race { step, path } => {
            computer.while_writing(*step, &|| person.edit(computer, PATHS[*path], 1, false));
        }
        Move::Stop { step } => {
            computer.catch_up_until(*step);
            computer.restart();
        }
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn no_edit_is_ever_lost(game in moves()) {
        let mut computer = Computer::new();
        let person = Person::default();
        for next in &game {
            play(&mut computer, &person, next);
            person.check(&computer);
        }
        computer.settle();
        computer.settle();
        person.check(&computer);
        computer.assert_faithful();
    }
}
