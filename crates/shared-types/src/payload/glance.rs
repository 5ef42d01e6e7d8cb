//! What a desktop needs of an event. It follows windows, settings and checkpoints, and of files that they changed; the
//! rest it carries unread. What would read everything is a tenth of a bundle that people wait for.

use serde::Deserialize;
use serde_json::Value;

use super::checkpoint::CheckpointCreate;
use super::file::FileBatch;
use super::setting::{SettingClear, SettingSet};
use super::window::{Rect, Window, WindowClose, WindowMode, WindowSet};
use super::{DecodeError, Payload, unknown, unreadable};
use crate::{EffectId, Seq, WindowId};

/// The fields that are looked at, of whichever event has them.
#[derive(Deserialize)]
struct Seen {
    window: Option<WindowId>,
    state: Option<Window>,
    key: Option<Box<str>>,
    value: Option<Value>,
    effect: Option<EffectId>,
    commit: Option<Box<str>>,
    seq: Option<Seq>,
}

impl Payload {
    /// Understands as much of a stored payload as a desktop needs. What was there before is not a part of that.
    pub fn glance(name: &str, version: u16, json: &str) -> Result<Self, DecodeError> {
        if name.starts_with("file.") {
            return Ok(FileBatch::unread().into());
        }
        if version != 1 || !FOLLOWED.contains(&name) {
            return unknown(name, version, json);
        }
        let seen: Seen = serde_json::from_str(json).map_err(|e| unreadable(name, &e))?;
        let absent =
            || DecodeError { name: name.to_owned(), part: "payload", reason: "a field is missing".into() };
        seen.into_payload(name).ok_or_else(absent)
    }
}

const FOLLOWED: [&str; 5] =
    ["window.set", "window.close", "setting.set", "setting.clear", "checkpoint.create"];

impl Seen {
    fn into_payload(self, name: &str) -> Option<Payload> {
        let Self { window, state, key, value, effect, commit, seq } = self;
        Some(match name {
            "window.set" => WindowSet { window: window?, state: state?, prev: None }.into(),
            "window.close" => WindowClose { window: window?, prev: nothing() }.into(),
            "setting.set" => SettingSet { key: key?, value: value.unwrap_or_default(), prev: None }.into(),
            "setting.clear" => SettingClear { key: key?, prev: Value::Null }.into(),
            "checkpoint.create" => {
                CheckpointCreate { effect: effect?, commit: commit?, seq: seq?, message: "".into() }.into()
            }
            _ => return None,
        })
    }
}

/// A window of which nothing is known.
fn nothing() -> Window {
    let rect = Rect { x: 0, y: 0, width: 0, height: 0 };
    Window { app: "".into(), title: "".into(), rect, mode: WindowMode::Normal, z: 0, shows: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::file::FileEvent;
    use crate::payload::setting::SettingEvent;
    use crate::payload::window::WindowEvent;

    fn glance(name: &str, json: &str) -> Payload {
        Payload::glance(name, 1, json).unwrap()
    }

    #[test]
    fn what_a_desktop_follows_is_read_and_the_rest_is_carried() {
        let id = "018f3c00-0000-7000-8000-000000000001";
        let window = r#"{"app":"files","title":"Files","rect":{"x":1,"y":2,"width":3,"height":4},"mode":"normal","z":5}"#;
        let set = glance("window.set", &format!(r#"{{"window":"{id}","state":{window},"prev":{window}}}"#));
        assert!(matches!(set, Payload::Window(WindowEvent::Set(p)) if p.state.rect.height == 4));
        let close = glance("window.close", &format!(r#"{{"window":"{id}","prev":{window}}}"#));
        assert!(matches!(close, Payload::Window(WindowEvent::Close(p)) if p.window.to_string() == id));
        let set = glance("setting.set", r#"{"key":"theme","value":"dark","prev":"light"}"#);
        assert!(matches!(set, Payload::Setting(SettingEvent::Set(p)) if p.value == "dark"));
        let clear = glance("setting.clear", r#"{"key":"theme","prev":"dark"}"#);
        assert!(matches!(clear, Payload::Setting(SettingEvent::Clear(p)) if &*p.key == "theme"));
        assert!(
            matches!(glance("file.write", "{}"), Payload::File(FileEvent::Batch(b)) if b.changes.is_empty())
        );
        assert!(
            matches!(glance("tool.call", r#"{"tool":1}"#), Payload::Unknown(p) if &*p.json == r#"{"tool":1}"#)
        );
        assert!(matches!(Payload::glance("window.set", 2, "{}"), Ok(Payload::Unknown(_))));
    }

    #[test]
    fn what_is_not_whole_is_an_error() {
        assert!(Payload::glance("window.set", 1, "{}").is_err());
        assert!(Payload::glance("setting.set", 1, "[").is_err());
        assert!(Payload::glance("not a name", 1, "{}").is_err());
    }
}
