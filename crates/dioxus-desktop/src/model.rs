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
pub(crate) type Settings = BTreeMap<Box<str>, Value>;

/// The server's truth and the gestures on their way to it.
#[derive(Default)]
pub(crate) struct Model {
    view: View,
    pending: Vec<Gesture>,
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
        self.pending.push(gesture);
    }

    /// Forgets a gesture: it is in the view now, or it was refused.
    pub(crate) fn settle(&mut self, op: OpId) {
        self.pending.retain(|gesture| gesture.op != op);
    }

    /// What the server may not have got.
    pub(crate) fn pending(&self) -> Vec<Gesture> {
        self.pending.clone()
    }

    pub(crate) fn unsaved(&self) -> u64 {
        self.view.computer.unsaved
    }

    pub(crate) fn windows(&self) -> Windows {
        let mut windows: Windows = self.view.windows.iter().map(|(id, w)| (*id, w.clone())).collect();
        for gesture in &self.pending {
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
        let mut settings: Settings =
            self.view.settings.iter().filter_map(|(k, v)| Some((k.clone(), read(v)?))).collect();
        for gesture in &self.pending {
            match &gesture.action {
                DesktopAction::SetSetting { key, value } => drop(settings.insert(key.clone(), value.clone())),
                DesktopAction::ClearSetting { key } => drop(settings.remove(key)),
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
