//! This tab's model of the computer: the server's state, and on top of it the gestures that the server has not confirmed.

use std::collections::BTreeMap;

use serde_json::Value;
use shared_types::payload::DesktopEvent;
use shared_types::payload::checkpoint::CheckpointEvent;
use shared_types::payload::setting::SettingEvent;
use shared_types::payload::window::{Window, WindowEvent};
use shared_types::wire::{DesktopAction, DesktopState, Gesture, SentEvent};
use shared_types::{OpId, Seq, WindowId};

pub(crate) type Windows = BTreeMap<WindowId, Window>;
/// The map type of JSON objects, which the bundle contains anyway.
pub(crate) type Settings = serde_json::Map<String, Value>;

/// The state that the desktop shows, and the gestures that are being sent.
#[derive(Default)]
pub(crate) struct DesktopModel {
    seq: Seq,
    windows: Windows,
    settings: Settings,
    /// Operations on files since the last checkpoint, and the newest change of a file.
    unsaved: u64,
    changed: Option<(Seq, OpId)>,
    pending: Vec<PendingGesture>,
}

/// A gesture that is shown and whose event has not arrived.
struct PendingGesture {
    gesture: Gesture,
    /// Where the server recorded it, once it has answered.
    recorded: Option<Seq>,
}

impl DesktopModel {
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

    /// Applies the next event; true if it is new.
    pub(crate) fn apply(&mut self, event: &SentEvent, what: &DesktopEvent) -> bool {
        if event.seq <= self.seq {
            return false;
        }
        self.seq = event.seq;
        match what {
            DesktopEvent::Window(WindowEvent::Set(p)) => {
                self.windows.insert(p.window, p.state.clone());
            }
            DesktopEvent::Window(WindowEvent::Close(p)) => {
                self.windows.remove(&p.window);
            }
            DesktopEvent::Setting(SettingEvent::Set(p)) => {
                self.settings.insert(p.key.to_string(), p.value.clone());
            }
            DesktopEvent::Setting(SettingEvent::Clear(p)) => {
                self.settings.remove(&*p.key);
            }
            DesktopEvent::Checkpoint(CheckpointEvent::Create(p)) => {
                // The commit does not contain changes made during the checkpoint.
                self.changed = self.changed.filter(|(seq, _)| *seq > p.seq);
                self.unsaved = u64::from(self.changed.is_some());
            }
            DesktopEvent::File(_) => {
                if self.changed.is_none_or(|(_, last)| last != event.op) {
                    self.unsaved += 1;
                }
                self.changed = Some((event.seq, event.op));
            }
            DesktopEvent::Checkpoint(CheckpointEvent::Request(_) | CheckpointEvent::Fail(_))
            | DesktopEvent::ModelAnswered(_)
            | DesktopEvent::NotFollowed => {}
        }
        self.remove_pending(event.op);
        true
    }

    /// Shows a gesture before the server has it.
    pub(crate) fn add_pending(&mut self, gesture: Gesture) {
        self.pending.push(PendingGesture { gesture, recorded: None });
    }

    /// Removes a gesture: its event has arrived, or it was refused.
    pub(crate) fn remove_pending(&mut self, op: OpId) {
        self.pending.retain(|pending| pending.gesture.op != op);
    }

    /// The server has recorded a gesture; it stays shown until its event is here.
    pub(crate) fn recorded(&mut self, op: OpId, at: Seq) {
        if at <= self.seq {
            return self.remove_pending(op);
        }
        for pending in self.pending.iter_mut().filter(|pending| pending.gesture.op == op) {
            pending.recorded = Some(at);
        }
    }

    /// The first gesture that the server may not have received.
    pub(crate) fn first_unsent(&self) -> Option<Gesture> {
        let first = self.pending.iter().find(|pending| pending.recorded.is_none());
        first.map(|pending| pending.gesture.clone())
    }

    /// Whether a change of a setting may not have reached the server.
    pub(crate) fn has_unsent_settings(&self) -> bool {
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
        for PendingGesture { gesture, .. } in &self.pending {
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
        for PendingGesture { gesture, .. } in &self.pending {
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

    fn at(seq: u64, x: i32) -> DesktopModel {
        let mut model = DesktopModel::default();
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

    /// Applies an event as it comes over the socket.
    fn apply(model: &mut DesktopModel, seq: u64, name: &str, version: u16, op: OpId, payload: Value) -> bool {
        let event = json!({
            "id": op, "seq": seq, "ts": 0, "source": "user", "type": name, "v": version, "op": op,
            "actor": "desktop", "payload": payload, "hash": "00".repeat(32),
        });
        let event: SentEvent = crate::json::read(&event.to_string()).unwrap();
        let what = DesktopEvent::decode(&event.name, event.version, &event.payload).unwrap();
        model.apply(&event, &what)
    }

    fn x(model: &DesktopModel) -> i32 {
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
        model.add_pending(moved(50));
        assert_eq!(x(&model), 50);
        let payload = json!({ "window": id(), "state": window(50) });
        assert!(apply(&mut model, 8, "window.set", 1, moved(50).op, payload.clone()));
        assert!(!apply(&mut model, 8, "window.set", 1, moved(50).op, payload), "an event counts once");
        assert!(model.first_unsent().is_none());
        assert_eq!(x(&model), 50);
    }

    #[test]
    fn changes_of_files_count_by_operation_until_a_checkpoint() {
        let mut model = at(7, 10);
        let mut next = |seq: u64, name: &str, version: u16, op: u8, payload: Value| {
            apply(&mut model, seq, name, version, OpId::from_bytes([op; 16]), payload);
            (model.unsaved(), model.settings().get("theme").cloned())
        };
        let (write, delete) =
            (json!({ "path": "a", "node": "folder" }), json!({ "path": "a", "prev": "folder" }));
        let checkpoint = |seq: u64| json!({ "effect": id(), "commit": "c", "seq": seq, "message": "m" });
        next(8, "file.write", 1, 1, write.clone());
        assert_eq!(next(9, "file.delete", 1, 1, delete).0, 3);
        next(10, "file.write", 1, 2, write);
        assert_eq!(next(11, "checkpoint.create", 1, 3, checkpoint(9)).0, 1, "one came while it was made");
        assert_eq!(next(12, "checkpoint.create", 1, 4, checkpoint(11)).0, 0);
        let light = json!({ "key": "theme", "value": "light" });
        assert_eq!(next(13, "setting.set", 1, 5, light).1, Some("light".into()));
        // A later version of an event is not known here.
        next(14, "setting.clear", 2, 6, json!({ "key": "theme" }));
        assert_eq!((model.seq(), model.settings().len()), (Seq(14), 1));
    }

    #[test]
    fn a_refused_gesture_goes_back() {
        let mut model = at(7, 10);
        model.add_pending(moved(50));
        model.remove_pending(moved(50).op);
        assert_eq!(x(&model), 10);
    }

    #[test]
    fn a_recorded_gesture_is_not_sent_again_and_a_newer_state_settles_it() {
        let mut model = at(7, 10);
        model.add_pending(moved(50));
        assert!(model.first_unsent().is_some());
        model.recorded(moved(50).op, Seq(8));
        assert!(model.first_unsent().is_none());
        assert_eq!(x(&model), 50);
        model.reset(state(9, 70));
        assert_eq!(x(&model), 70);
    }
}
