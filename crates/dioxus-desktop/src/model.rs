//! What this tab knows of the computer: the server's view, and on top of it what the person just did and the server
//! has not answered yet.

use std::collections::BTreeMap;

use kernel::{View, evolve};
use serde_json::Value;
use shared_types::payload::checkpoint::CheckpointCreate;
use shared_types::payload::setting::SettingSet;
use shared_types::payload::system::SystemPurged;
use shared_types::payload::window::{Window, WindowSet};
use shared_types::wire::{DesktopAction, DesktopState, Gesture};
use shared_types::{Actor, EffectId, Event, EventId, OpId, Payload, Seq, Source, Timestamp, WindowId};

pub(crate) type Windows = BTreeMap<WindowId, Window>;
/// The map that a JSON object is: it is in the bundle anyway.
pub(crate) type Settings = serde_json::Map<String, Value>;

/// The server's truth and the gestures on their way to it.
#[derive(Default)]
pub(crate) struct Model {
    view: View,
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
        self.view.seq()
    }

    /// Starts again from a state. The view is only ever changed by events, so the state is told as events.
    pub(crate) fn reset(&mut self, state: DesktopState) {
        self.view = View::default();
        let mut tell = |payload: Payload| evolve(&mut self.view, &told(state.seq, payload));
        for (window, state) in state.windows {
            tell(WindowSet { window, state, prev: None }.into());
        }
        for (key, value) in state.settings {
            tell(SettingSet { key, value, prev: None }.into());
        }
        if let Some((commit, seq)) = state.checkpoint {
            let effect = EffectId::from_bytes([0; 16]);
            tell(CheckpointCreate { effect, commit, seq, message: "".into() }.into());
        }
        // Also when there was nothing to tell, the place in the log is known.
        tell(SystemPurged { effect: EffectId::from_bytes([0; 16]), dropped: 0 }.into());
        self.view.computer.unsaved = state.unsaved;
        let seq = self.view.seq();
        self.pending.retain(|pending| pending.recorded.is_none_or(|recorded| recorded > seq));
    }

    /// Applies the next event; true if it is new.
    pub(crate) fn apply(&mut self, event: &Event) -> bool {
        if event.seq <= self.view.seq() {
            return false;
        }
        evolve(&mut self.view, event);
        self.settle(event.op);
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
        if at <= self.view.seq() {
            return self.settle(op);
        }
        for pending in self.pending.iter_mut().filter(|pending| pending.gesture.op == op) {
            pending.recorded = Some(at);
        }
    }

    /// What the server may not have got.
    pub(crate) fn pending(&self) -> Vec<Gesture> {
        let unsure = self.pending.iter().filter(|pending| pending.recorded.is_none());
        unsure.map(|pending| pending.gesture.clone()).collect()
    }

    pub(crate) fn unsaved(&self) -> u64 {
        self.view.computer.unsaved
    }

    pub(crate) fn windows(&self) -> Windows {
        // One by one: to collect them would bring another sort into the bundle.
        let mut windows = Windows::new();
        windows.extend(self.view.windows.iter().map(|(id, w)| (*id, w.clone())));
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
        let read = |text: &str| serde_json::from_str(text).ok();
        let mut settings = Settings::new();
        settings.extend(self.view.settings.iter().filter_map(|(k, v)| Some((k.to_string(), read(v)?))));
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

fn told(seq: Seq, payload: Payload) -> Event {
    Event {
        seq,
        id: EventId::from_bytes([0; 16]),
        ts: Timestamp::from_millis(0),
        source: Source::System,
        op: OpId::from_bytes([0; 16]),
        actor: Actor::CLI,
        run_id: None,
        cause: None,
        taint: Vec::new(),
        payload,
    }
}

#[cfg(test)]
mod tests {
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
        let payload = WindowSet { window: id(), state: window(50), prev: None }.into();
        let event = Event { op: moved(50).op, ..told(Seq(8), payload) };
        assert!(model.apply(&event));
        assert!(!model.apply(&event), "an event counts once");
        assert!(model.pending().is_empty());
        assert_eq!(x(&model), 50);
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
        assert_eq!(model.pending().len(), 1);
        model.recorded(moved(50).op, Seq(8));
        assert!(model.pending().is_empty());
        assert_eq!(x(&model), 50);
        model.reset(state(9, 70));
        assert_eq!(x(&model), 70);
    }
}
