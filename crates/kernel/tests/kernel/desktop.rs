//! Windows, settings, notes, conversations and the owner: what each command makes, and its limits.

use kernel::{Action, Rejection};
use serde_json::{Value, json};
use shared_types::payload::window::{Rect, Window};
use shared_types::{ContentRef, Seq};

use crate::shell::Shell;
use crate::show::{makes, refuses};
use crate::steps::*;

fn too_large(what: &'static str, size: u64, limit: u64) -> Rejection {
    Rejection::TooLarge { what, size, limit }
}

fn invalid(what: &'static str, reason: &str) -> Rejection {
    Rejection::Invalid { what, reason: reason.into() }
}

const EMPTY: &str = "it is empty";
const CONTROL: &str = "it holds control characters";

fn shown(state: Window) -> Step {
    Action::SetWindow { window: window_id(1), state }.into()
}

#[test]
fn windows_open_change_and_close() {
    makes([], window(1, "A"), &["set window A"]);
    makes([window(1, "A")], window(1, "A"), &[]);
    makes([window(1, "A")], window(1, "B"), &["set window B"]);
    makes([window(1, "A")], close(1), &["close window A"]);
    makes([], shown(Window { title: "".into(), ..window_at("", 0) }), &["set window "]);
    refuses([], close(1), Rejection::NoWindow { window: window_id(1) });
    refuses([window(1, "A"), close(1)], close(1), Rejection::NoWindow { window: window_id(1) });
}

#[test]
fn a_window_has_limits() {
    let with_app = |app: &str| shown(Window { app: app.into(), ..window_at("A", 0) });
    refuses([], with_app(""), invalid("a window's app", EMPTY));
    refuses([], with_app("a\u{7}"), invalid("a window's app", CONTROL));
    refuses([], with_app(&"a".repeat(65)), too_large("a window's app", 65, 64));
    refuses([], window(1, &"t".repeat(1025)), too_large("a window's title", 1025, 1024));
    let off = invalid("a window's place", "it is empty or off the desktop");
    let ok = window_at("A", 0).rect;
    for rect in [
        Rect { width: 0, ..ok },
        Rect { height: 0, ..ok },
        Rect { x: i32::MIN, ..ok },
        Rect { y: i32::MAX, ..ok },
        Rect { width: u32::MAX, ..ok },
        Rect { height: (1 << 20) + 1, ..ok },
    ] {
        refuses([], shown(Window { rect, ..window_at("A", 0) }), off.clone());
    }
    makes([], shown(Window { rect: Rect { x: -(1 << 20), ..ok }, ..window_at("A", 0) }), &["set window A"]);
}

#[test]
fn settings_are_set_and_cleared() {
    makes([], set("theme", "dark"), &["set theme = \"dark\""]);
    makes([set("theme", "dark")], set("theme", "dark"), &[]);
    makes(
        [set("theme", "dark")],
        set("theme", json!({"b": 1, "a": [2]})),
        &["set theme = {\"a\":[2],\"b\":1}"],
    );
    makes([set("theme", "dark")], clear("theme"), &["clear theme"]);
    makes([set("n", 1)], set("n", 1.0), &["set n = 1.0"]);
    refuses([], clear("theme"), Rejection::NoSetting { key: "theme".into() });
}

#[test]
fn a_setting_has_limits() {
    refuses([], set("", 1), invalid("a setting's key", EMPTY));
    refuses([], set("a\u{0}", 1), invalid("a setting's key", CONTROL));
    refuses([], set(&"k".repeat(129), 1), too_large("a setting's key", 129, 128));
    refuses([], set("k", "v".repeat(16 * 1024)), too_large("a setting's value", 16 * 1024 + 2, 16 * 1024));
    refuses([], set("k", Value::Null), invalid("a setting's value", "null; clear the setting instead"));
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn a_setting_that_could_not_be_read_again_is_refused() {
    makes([], set("k", nested(2)), &["set k = [[1]]"]);
    let mut shell = Shell::new();
    shell.done(set("k", nested(32)));
    for depth in [33, 126, 127, 128, 1000] {
        refuses([], set("k", nested(depth)), invalid("a setting's value", "it is nested too deeply"));
    }
}

#[test]
fn every_number_is_read_back_as_it_was_set() {
    for number in [5e-324, 1.7976931348623157e308, 0.1, 123456.789e-20, 8.41e21, 9007199254740993.0, -0.0] {
        let mut shell = Shell::new();
        shell.done(set("n", number));
        assert_eq!(shell.at(Seq(1)).root(), shell.root());
    }
}

#[test]
fn notes_of_older_logs_are_written_and_deleted() {
    let title = |steps: &[Step]| {
        let (shell, _) = Shell::after(steps.to_vec());
        shell.view.notes.get(&note_id(1)).map(|note| note.title.to_string())
    };
    assert_eq!(title(&[note(1, "Tone")]).as_deref(), Some("Tone"));
    assert_eq!(title(&[note(1, "Tone"), note(1, "Style")]).as_deref(), Some("Style"));
    assert_eq!(title(&[note(1, "Tone"), forget_note(1)]), None);
    makes([note(1, "Tone")], note(1, "Style"), &["write note Style"]);
    makes([note(1, "Tone")], forget_note(1), &["delete note Tone"]);
}

fn post(n: u8, size: u64) -> Step {
    OldEvent::PostMessage(n, ContentRef { size, ..ContentRef::of(b"hello") }).into()
}

#[test]
fn conversations_of_older_logs_begin_and_grow() {
    makes([], start(1, "Plans"), &["start Plans"]);
    makes([start(1, "Plans")], post(1, 5), &["post 5 bytes"]);
    let (shell, _) = Shell::after([start(1, "Plans"), post(1, 5), start(2, "Other"), post(1, 6)]);
    let known = shell.view.conversations.get(&conversation_id(1)).unwrap();
    assert_eq!((known.messages, known.last), (2, Seq(4)));
}

fn create(name: &str) -> Step {
    Action::CreateUser { name: name.into() }.into()
}

/// A new name for the owner, as older logs hold it.
fn rename_owner(name: &str) -> Step {
    OldEvent::RenameUser(name.into()).into()
}

#[test]
fn a_computer_belongs_to_one_person() {
    makes([], create("Ada"), &["create user Ada"]);
    makes([create("Ada")], rename_owner("Bo"), &["rename user Ada to Bo"]);
    refuses([create("Ada")], create("Ada"), Rejection::AlreadySetUp);
    refuses([create("Ada"), rename_owner("Bo")], create("Ada"), Rejection::AlreadySetUp);
    refuses([], create(""), invalid("a name", EMPTY));
    refuses([], create("a\u{1b}[31m"), invalid("a name", CONTROL));
    refuses([], create(&"n".repeat(201)), too_large("a name", 201, 200));
    let (shell, _) = Shell::after([create("Ada"), rename_owner("Bo")]);
    assert_eq!(shell.view.computer.owner.as_deref(), Some("Bo"));
}
