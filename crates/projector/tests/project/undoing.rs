//! Which operation a bare undo and a bare redo take, as a table of histories.

use event_log::writer::ChangeRequest;
use kernel::{Action, Base, OutsideEdit};
use shared_types::payload::file::FileNode;
use shared_types::payload::message::ConversationStart;
use shared_types::payload::note::{Note, NoteWrite};
use shared_types::payload::tool::ToolStatus;
use shared_types::payload::window::{Rect, Window};
use shared_types::{ContentRef, NoteId, OpId, Seq, Source, Timestamp, WindowId};

use crate::calling;
use crate::computer::{Computer, at};

/// A computer and its operations so far, each with a letter.
struct Story {
    computer: Computer,
    ops: Vec<(char, OpId)>,
}

impl Story {
    fn op(&self, letter: char) -> OpId {
        self.ops.iter().find(|(known, _)| *known == letter).unwrap().1
    }

    /// One word per step: `w:A` writes a file as operation A, `u:B=A` undoes A as operation B.
    fn step(&mut self, word: &str) {
        let (kind, rest) = word.split_once(':').unwrap();
        let letter = rest.chars().next().unwrap();
        let computer = &self.computer;
        let text = format!("{letter}\n");
        let write = |path: &str| {
            let node = FileNode::file(ContentRef::of(text.as_bytes()), 0o644);
            ChangeRequest::Do(Action::WriteFile { path: at(path), node, base: Base::Any })
        };
        let submit = |change| computer.submit(change, &[text.as_bytes()]).unwrap().0;
        let op = match kind {
            "w" => submit(write(&format!("file-{letter}"))),
            "agent" => {
                computer
                    .submit_as(Source::Agent, write(&format!("agents-{letter}")), &[text.as_bytes()])
                    .unwrap()
                    .0
            }
            "edit" => {
                computer.edit(&format!("edited-{letter}"), &text);
                computer.capture().op.unwrap()
            }
            "set" => submit(ChangeRequest::Do(Action::SetSetting {
                key: "theme".into(),
                value: letter.to_string().into(),
            })),
            "note" => {
                let note = NoteId::mint(Timestamp::from_millis(1), [1; 10]);
                let state = Note { title: "note".into(), body: ContentRef::of(text.as_bytes()) };
                let prev = computer.view().notes.get(&note).cloned();
                computer.record(NoteWrite { note, state, prev }, &[text.as_bytes()])
            }
            "window" => {
                let window = WindowId::mint(Timestamp::from_millis(1), [1; 10]);
                submit(ChangeRequest::Do(Action::SetWindow { window, state: window_of(letter) }))
            }
            "say" => {
                let id = shared_types::ConversationId::mint(Timestamp::from_millis(1), [letter as u8; 10]);
                computer.record(ConversationStart { conversation: id, title: "talk".into() }, &[])
            }
            "run" => {
                let op = calling::start(computer, "touch", false);
                let node = FileNode::file(ContentRef::of(text.as_bytes()), 0o644);
                let edits =
                    vec![OutsideEdit { path: at(&format!("ran-{letter}")), base: None, now: Some(node) }];
                calling::end(computer, op, ToolStatus::Exited { code: 0 }, edits, &[text.as_bytes()]);
                op
            }
            "look" => {
                let op = calling::start(computer, "ls", false);
                calling::end(computer, op, ToolStatus::Exited { code: 0 }, Vec::new(), &[]);
                op
            }
            "wait" => calling::start(computer, "sleep 9", false),
            "restore" => {
                let seq = Seq(computer.head().0 - 1);
                submit(ChangeRequest::Restore { seq })
            }
            "u" => computer.undo(self.op(rest.chars().last().unwrap())),
            other => panic!("{other}"),
        };
        self.ops.push((letter, op));
    }
}

fn window_of(letter: char) -> Window {
    let rect = Rect { x: 0, y: 0, width: 100 + u32::from(letter), height: 100 };
    serde_json::from_value(serde_json::json!({
        "app": "files", "title": letter.to_string(), "rect": rect, "z": 1, "mode": "normal",
    }))
    .unwrap()
}

#[track_caller]
fn check(history: &str, undo: Option<char>, redo: Option<char>) {
    let mut story = Story { computer: Computer::new(), ops: Vec::new() };
    for word in history.split_whitespace() {
        story.step(word);
    }
    story.computer.settle();
    let letter = |op: Option<OpId>| {
        op.map(|op| story.ops.iter().find(|(_, known)| *known == op).map_or('?', |(letter, _)| *letter))
    };
    let views = story.computer.views();
    let undoable = letter(views.undoable().unwrap().map(|row| row.op));
    let redoable = letter(views.redoable().unwrap().map(|row| row.op));
    assert_eq!((undoable, redoable), (undo, redo), "{history}");
    story.computer.assert_faithful();
}

#[test]
fn a_bare_undo_takes_the_newest_work_that_is_not_undone() {
    check("", None, None);
    check("w:A", Some('A'), None);
    check("w:A w:B", Some('B'), None);
    check("w:A w:B u:C=B", Some('A'), Some('C'));
    check("w:A w:B u:C=B u:D=A", None, Some('D'));
    check("w:A w:B u:C=A", Some('B'), Some('C'));
    check("w:A set:B note:C", Some('C'), None);
    check("w:A edit:B", Some('B'), None);
    check("w:A w:B restore:C", Some('C'), None);
    check("w:A w:B restore:C u:D=C", Some('B'), Some('D'));
}

#[test]
fn a_bare_undo_takes_a_command_that_changed_files() {
    check("w:A run:B", Some('B'), None);
    check("w:A run:B u:C=B", Some('A'), Some('C'));
    check("w:A look:B", Some('A'), None);
    check("w:A wait:B", Some('A'), None);
}

#[test]
fn a_bare_undo_leaves_agents_windows_and_talk_alone() {
    check("w:A agent:B", Some('A'), None);
    check("agent:A", None, None);
    check("w:A window:B", Some('A'), None);
    check("w:A say:B", Some('A'), None);
    check("window:A", None, None);
}

#[test]
fn a_bare_redo_takes_the_newest_undo_in_effect() {
    check("w:A u:B=A u:C=B", Some('A'), None);
    check("w:A u:B=A u:C=B u:D=A", None, Some('D'));
    check("w:A u:B=A u:C=B u:D=C", None, Some('D'));
    check("w:A w:B u:C=B u:D=A u:E=D", Some('A'), Some('C'));
    check("w:A u:B=A w:C", Some('C'), Some('B'));
    check("w:A window:B u:C=B", Some('A'), None);
    check("w:A u:B=A window:C u:D=C", None, Some('B'));
}
