//! What this tab knows of the computer: the server's view, and on top of it what the person just did and the server
//! has not answered yet.

use std::collections::BTreeMap;

use serde_json::Value;
use shared_types::payload::window::Window;
use shared_types::wire::{DesktopAction, DesktopState, Gesture};
use shared_types::{OpId, Seq, WindowId};

use crate::choir::read::{number, text};
use crate::wire::{FromJson, field};

pub(crate) type Windows = BTreeMap<WindowId, Window>;
/// The map that a JSON object is: it is in the bundle anyway.
pub(crate) type Settings = serde_json::Map<String, Value>;

/// The server's truth, as far as a desktop shows it, and the gestures on their way to it.
#[derive(Default)]
pub(crate) struct Model {
    seq: Seq,
    windows: Windows,
    settings: Settings,
    /// Operations on files since the last checkpoint, and the newest change of a file.
    unsaved: u64,
    changed: Option<(u64, OpId)>,
    pending: Vec<Pending>,
}

/// A gesture that is shown and not in the view yet.
struct Pending {
    gesture: Gesture,
    /// Where the server recorded it, once it has answered.
    recorded: Option<Seq>,
}

impl Model {
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Starts again from a state.
    pub(crate) fn reset(&mut self, state: DesktopState) {
        self.seq = state.seq;
        // One by one: to collect them would bring another sort into the bundle.
        self.windows = Windows::new();
        self.windows.extend(state.windows);
        self.settings = Settings::new();
        self.settings.extend(state.settings.into_iter().map(|(key, value)| (key.into_string(), value)));
        self.unsaved = state.unsaved;
        self.changed = None;
        let seq = self.seq;
        self.pending.retain(|pending| pending.recorded.is_none_or(|recorded| recorded > seq));
    }

    /// Applies the next event; true if it is new. What a desktop does not show it passes over.
    pub(crate) fn apply(&mut self, event: &Value) -> bool {
        let seq = number(event, "seq");
        if seq <= self.seq.0 {
            return false;
        }
        self.seq = Seq(seq);
        let op: OpId = field(event, "op");
        let payload = &event["payload"];
        // A later version of an event is none that is known here.
        let name = if event.get("v").is_none() { text(event, "type") } else { "" };
        match name {
            "window.set" => drop(self.windows.insert(field(payload, "window"), field(payload, "state"))),
            "window.close" => drop(self.windows.remove(&WindowId::from_json(&payload["window"]))),
            "setting.set" => {
                drop(self.settings.insert(text(payload, "key").to_owned(), payload["value"].clone()))
            }
            "setting.clear" => drop(self.settings.remove(text(payload, "key"))),
            "checkpoint.create" => {
                // What was written while the commit was made is not in it.
                let at = number(payload, "seq");
                self.changed = self.changed.filter(|(seq, _)| *seq > at);
                self.unsaved = u64::from(self.changed.is_some());
            }
            _ if text(event, "type").starts_with("file.") => {
                if self.changed.is_none_or(|(_, last)| last != op) {
                    self.unsaved += 1;
                }
                self.changed = Some((seq, op));
            }
            _ => {}
        }
        self.settle(op);
        true
    }

    /// Shows a gesture before the server has it.
    pub(crate) fn expect(&mut self, gesture: Gesture) {
        self.pending.push(Pending { gesture, recorded: None });
    }

    /// Forgets a gesture: it is in the view now, or it was refused.
    pub(crate) fn settle(&mut self, op: OpId) {
        self.pending.retain(|pending| pending.gesture.op != op);
    }

    /// The server has recorded a gesture; it stays shown until its event is here.
    pub(crate) fn recorded(&mut self, op: OpId, at: Seq) {
        if at <= self.seq {
            return self.settle(op);
        }
        for pending in self.pending.iter_mut().filter(|pending| pending.gesture.op == op) {
            pending.recorded = Some(at);
        }
    }

    /// The first gesture that the server may not have got.
    pub(crate) fn unsure(&self) -> Option<Gesture> {
        let first = self.pending.iter().find(|pending| pending.recorded.is_none());
        first.map(|pending| pending.gesture.clone())
    }

    /// Whether a change of a setting may not have reached the server.
    pub(crate) fn has_unsure_settings(&self) -> bool {
        self.pending.iter().filter(|pending| pending.recorded.is_none()).any(|pending| {
            match pending.gesture.action {
                DesktopAction::SetSetting { .. } | DesktopAction::ClearSetting { .. } => true,
                DesktopAction::SetWindow { .. } | DesktopAction::CloseWindow { .. } => false,
            }
        })
    }

    pub(crate) fn unsaved(&self) -> u64 {
        self.unsaved
    }

    pub(crate) fn windows(&self) -> Windows {
        let mut windows = self.windows.clone();
        for Pending { gesture, .. } in &self.pending {
            match &gesture.action {
                DesktopAction::SetWindow { window, state } => drop(windows.insert(*window, state.clone())),
                DesktopAction::CloseWindow { window } => drop(windows.remove(window)),
                DesktopAction::SetSetting { .. } | DesktopAction::ClearSetting { .. } => {}
            }
        }
        windows
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = self.settings.clone();
        for Pending { gesture, .. } in &self.pending {
            match &gesture.action {
                DesktopAction::SetSetting { key, value } => {
                    drop(settings.insert(key.to_string(), value.clone()))
                }
                DesktopAction::ClearSetting { key } => drop(settings.remove(&**key)),
                DesktopAction::SetWindow { .. } | DesktopAction::CloseWindow { .. } => {}
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared_types::payload::window::{Rect, WindowMode};
    use shared_types::{CommandId, RootHash};

    use super::*;

    fn window(x: i32) -> Window {
        let rect = Rect { x, y: 0, width: 300, height: 200 };
        let mode = WindowMode::Normal;
        Window { app: "files".into(), title: "Files".into(), rect, mode, z: 1, shows: None }
    }

    fn id() -> WindowId {
        WindowId::from_bytes([1; 16])
    }

    fn at(seq: u64, x: i32) -> Model {
        let mut model = Model::default();
        model.reset(state(seq, x));
        model
    }

    fn state(seq: u64, x: i32) -> DesktopState {
        let settings = vec![("theme".into(), Value::from("dark"))];
        DesktopState {
            seq: Seq(seq),
            root: RootHash::default(),
            windows: vec![(id(), window(x))],
            settings,
            checkpoint: None,
            unsaved: 2,
        }
    }

    fn moved(x: i32) -> Gesture {
        let action = DesktopAction::SetWindow { window: id(), state: window(x) };
        Gesture { command: CommandId::from_bytes([2; 16]), op: OpId::from_bytes([3; 16]), action }
    }

    fn x(model: &Model) -> i32 {
        model.windows()[&id()].rect.x
    }

    #[test]
    fn a_state_is_taken_over() {
        let model = at(7, 10);
        assert_eq!((model.seq(), x(&model), model.unsaved()), (Seq(7), 10, 2));
        assert_eq!(model.settings()["theme"], "dark");
    }

    #[test]
    fn a_gesture_shows_at_once_and_settles_with_its_event() {
        let mut model = at(7, 10);
        model.expect(moved(50));
        assert_eq!(x(&model), 50);
        let payload = json!({ "window": id(), "state": window(50) });
        let event = json!({ "seq": 8, "type": "window.set", "op": moved(50).op, "payload": payload });
        assert!(model.apply(&event));
        assert!(!model.apply(&event), "an event counts once");
        assert!(model.unsure().is_none());
        assert_eq!(x(&model), 50);
    }

    #[test]
    fn changes_of_files_count_by_operation_until_a_checkpoint() {
        let mut model = at(7, 10);
        let event = |seq: u64, kind: &str, op: u8, payload: Value| json!({ "seq": seq, "type": kind, "op": OpId::from_bytes([op; 16]), "payload": payload });
        model.apply(&event(8, "file.write", 1, json!({})));
        model.apply(&event(9, "file.delete", 1, json!({})));
        assert_eq!(model.unsaved(), 3);
        model.apply(&event(10, "file.write", 2, json!({})));
        model.apply(&event(11, "checkpoint.create", 3, json!({ "seq": 9, "commit": "c" })));
        assert_eq!(model.unsaved(), 1, "one came while it was made");
        model.apply(&event(12, "checkpoint.create", 4, json!({ "seq": 11, "commit": "c" })));
        assert_eq!(model.unsaved(), 0);
        model.apply(&event(13, "setting.set", 5, json!({ "key": "theme", "value": "light" })));
        assert_eq!(model.settings()["theme"], "light");
        model.apply(&json!({ "seq": 14, "v": 2, "type": "setting.clear", "payload": { "key": "theme" } }));
        assert_eq!((model.seq(), model.settings().len()), (Seq(14), 1));
    }

    #[test]
    fn a_refused_gesture_goes_back() {
        let mut model = at(7, 10);
        model.expect(moved(50));
        model.settle(moved(50).op);
        assert_eq!(x(&model), 10);
    }

    #[test]
    fn a_recorded_gesture_is_not_sent_again_and_a_newer_state_settles_it() {
        let mut model = at(7, 10);
        model.expect(moved(50));
        assert!(model.unsure().is_some());
        model.recorded(moved(50).op, Seq(8));
        assert!(model.unsure().is_none());
        assert_eq!(x(&model), 50);
        model.reset(state(9, 70));
        assert_eq!(x(&model), 70);
    }
}
