//! The state that the whole desktop shares, as signals, and the gestures that change it.

mod changes;
mod messages;
mod runs;
mod session;
mod windows;

use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;

use dioxus::prelude::*;
use futures_util::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared_types::payload::DesktopEvent;
use shared_types::payload::window::Window;
use shared_types::wire::{ChangeResult, DesktopAction, DesktopState, Gesture, Me, SentEvent};
use shared_types::{OpId, RunId, Seq, Timestamp, WindowId};

use crate::api::{self, ApiFailure};
use crate::change_log::{Change, ChangeLog};
use crate::json::Json;
use crate::menu::Menu;
use crate::model::{DesktopModel, Settings, Windows};
use crate::undo_plan::RevertDialog;
use crate::{dom, ids};

pub(crate) use changes::use_changes;
pub(crate) use runs::RunsState;

/// The state of the connection to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Connecting,
    Live,
    /// Lost for long enough to tell the person.
    Lost,
}

/// A layer over the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlay {
    None,
    Launcher,
    Notices,
    Shortcuts,
    Tour,
}

/// The button of a toast.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToastAction {
    Nothing,
    Undo(OpId),
    /// Redo, by the id of the undo.
    Redo(OpId),
    /// Undo again, by the id of the redo.
    UndoAgain(OpId),
    /// Reopen a window that was closed with unsaved changes.
    Reopen(WindowId, Box<Window>),
    /// Open a run.
    Open(RunId),
    /// Open a run, or undo it.
    OpenOrUndo(RunId),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Toast {
    pub id: u64,
    pub text: String,
    pub bad: bool,
    pub offer: ToastAction,
}

/// A line of the notification list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notice {
    pub at: Timestamp,
    pub text: String,
    pub bad: bool,
    /// The run that this is about.
    pub run: Option<RunId>,
}

/// Paths that were copied or cut in Files.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clipboard {
    pub paths: Vec<shared_types::FilePath>,
    pub cut: bool,
}

/// The shared state. Cheap to copy; every field is a signal of its own, so that a change re-renders only its readers.
#[derive(Clone, Copy)]
pub(crate) struct AppState {
    pub me: Signal<Option<Me>>,
    pub connection: Signal<ConnectionState>,
    pub ready: Signal<bool>,
    pub windows: Signal<Windows>,
    pub settings: Signal<Settings>,
    pub unsaved: Signal<u64>,
    /// Back to front.
    pub stack: Signal<Vec<WindowId>>,
    /// The newest event.
    pub seq: Signal<u64>,
    /// What changed, as far as the server's lists contain it.
    pub changes: Signal<ChangeLog>,
    pub screen: Signal<(i32, i32)>,
    pub overlay: Signal<Overlay>,
    pub menu: Signal<Option<Menu>>,
    pub toasts: Signal<Vec<Toast>>,
    pub notices: Signal<Vec<Notice>>,
    pub unread: Signal<u64>,
    /// The moment of the past that is shown.
    pub past: Signal<Option<Rc<DesktopState>>>,
    pub revert_dialog: Signal<Option<RevertDialog>>,
    pub clipboard: Signal<Option<Clipboard>>,
    pub runs: RunsState,
    /// Changes that the server's lists do not contain yet.
    unprojected: CopyValue<Vec<Change>>,
    model: CopyValue<DesktopModel>,
    /// The number of the newest loop that sends gestures, and whether it is running.
    send_generation: CopyValue<u64>,
    is_sending: CopyValue<bool>,
}

/// Windows whose text is not saved.
static UNSAVED: GlobalSignal<BTreeSet<WindowId>> = Signal::global(BTreeSet::new);

/// Remembers whether the text in a window is saved.
pub(crate) fn mark_unsaved(window: WindowId, unsaved: bool) {
    if UNSAVED.peek().contains(&window) != unsaved {
        let mut windows = UNSAVED.write();
        if unsaved {
            windows.insert(window)
        } else {
            windows.remove(&window)
        };
    }
}

pub(crate) const BAR: i32 = 56;
/// Milliseconds after which a gesture that was not answered is sent again.
const RESEND_AFTER_MS: u32 = 10_000;

/// The desktop that this component is a part of.
pub(crate) fn app_state() -> AppState {
    consume_context()
}

impl AppState {
    pub(crate) fn new() -> Self {
        Self {
            me: Signal::new(None),
            connection: Signal::new(ConnectionState::Connecting),
            ready: Signal::new(false),
            windows: Signal::new(Windows::new()),
            settings: Signal::new(Settings::new()),
            unsaved: Signal::new(0),
            stack: Signal::new(Vec::new()),
            seq: Signal::new(0),
            changes: Signal::new(ChangeLog::default()),
            screen: Signal::new(dom::screen()),
            overlay: Signal::new(Overlay::None),
            menu: Signal::new(None),
            toasts: Signal::new(Vec::new()),
            notices: Signal::new(Vec::new()),
            unread: Signal::new(0),
            past: Signal::new(None),
            revert_dialog: Signal::new(None),
            clipboard: Signal::new(None),
            runs: RunsState::new(),
            unprojected: CopyValue::new(Vec::new()),
            model: CopyValue::new(DesktopModel::default()),
            send_generation: CopyValue::new(0),
            is_sending: CopyValue::new(false),
        }
    }

    pub(crate) fn seen(self) -> Seq {
        self.model.read().seq()
    }

    pub(crate) fn reset(mut self, state: DesktopState) {
        let seq = state.seq;
        self.model.write().reset(state);
        self.publish();
        self.seq.set(seq.0);
        self.unprojected.write().clear();
        self.changes.write().reset(seq);
        if !*self.ready.peek() {
            self.ready.set(true);
        }
    }

    pub(crate) fn apply(mut self, event: SentEvent) {
        let what = match DesktopEvent::decode(&event.name, event.version, Json(&event.payload)) {
            Ok(what) => what,
            Err(error) => {
                self.report_unreadable(&api::unreadable(&format!("{}: {error}", event.name)));
                DesktopEvent::NotFollowed
            }
        };
        self.runs.on_event(&event, &what);
        if self.model.write().apply(&event, &what) {
            self.unprojected.write().push(Change::of(&event, &what));
            self.outdate(&event, &what);
            self.publish();
            self.seq.set(self.seen().0);
        }
    }

    /// The server's lists contain everything up to this event.
    pub(crate) fn on_projected(mut self, seq: Seq) {
        let unprojected = std::mem::take(&mut *self.unprojected.write());
        let (listed, rest): (Vec<_>, Vec<_>) =
            unprojected.into_iter().partition(|change| change.seq() <= seq);
        self.unprojected.set(rest);
        if !listed.is_empty() {
            self.changes.write().extend(listed, seq);
        }
    }

    /// Updates the signals from the model; a signal that does not change is not written.
    fn publish(mut self) {
        let (windows, settings, unsaved) = {
            let model = self.model.read();
            (model.windows(), model.settings(), model.unsaved())
        };
        if *self.windows.peek() != windows {
            self.restack(&windows);
            self.windows.set(windows);
        }
        if *self.settings.peek() != settings {
            self.settings.set(settings);
        }
        if *self.unsaved.peek() != unsaved {
            self.unsaved.set(unsaved);
        }
    }

    /// New and re-stacked windows come to the front, ordered by `z`.
    fn restack(mut self, windows: &Windows) {
        let old = self.windows.peek();
        let mut stack: Vec<WindowId> =
            self.stack.peek().iter().copied().filter(|id| windows.contains_key(id)).collect();
        let mut moved: Vec<_> =
            windows.iter().filter(|(id, w)| old.get(id).is_none_or(|before| before.z != w.z)).collect();
        moved.sort_by_key(|(id, w)| (w.z, **id));
        for (id, _) in moved {
            stack.retain(|other| other != id);
            stack.push(*id);
        }
        drop(old);
        if *self.stack.peek() != stack {
            self.stack.set(stack);
        }
    }

    /// Performs a gesture: shown at once, then sent. Without a connection it is sent when the connection is back.
    pub(crate) fn act(mut self, action: DesktopAction) {
        if self.past.peek().is_some() {
            return;
        }
        let gesture = Gesture { command: ids::command(), op: ids::op(), action };
        self.model.write().add_pending(gesture);
        self.publish();
        if !*self.is_sending.peek() {
            self.resend();
        }
    }

    /// Resends unacknowledged gestures, in order: each sets the whole state of a window. Their ids make resends safe.
    pub(crate) fn resend(mut self) {
        // An older loop that still waits for an answer ends by itself.
        let send_generation = *self.send_generation.peek() + 1;
        self.send_generation.set(send_generation);
        self.is_sending.set(true);
        api::run(async move {
            while *self.send_generation.peek() == send_generation {
                let Some(gesture) = self.model.read().first_unsent() else { break };
                let answer = pin!(api::post::<ChangeResult>("/gestures", &gesture));
                let Either::Left((answer, _)) = select(answer, TimeoutFuture::new(RESEND_AFTER_MS)).await
                else {
                    continue;
                };
                match answer {
                    Ok(done) => match done.last {
                        Some(last) => self.model.write().recorded(gesture.op, last),
                        None => self.model.write().remove_pending(gesture.op),
                    },
                    // It is sent again with the next gesture, or when the connection is back.
                    Err(ApiFailure::Unreachable) => break,
                    Err(failure) => {
                        self.model.write().remove_pending(gesture.op);
                        self.report_failure(&failure);
                    }
                }
                self.publish();
            }
            if *self.send_generation.peek() == send_generation {
                self.is_sending.set(false);
            }
        });
    }

    /// Waits up to two seconds until the server has all settings: the next request may depend on them.
    pub(crate) async fn caught_up(self) {
        for _ in 0..100 {
            if !self.model.read().has_unsent_settings() {
                return;
            }
            TimeoutFuture::new(20).await;
        }
    }

    pub(crate) fn setting(self, key: &str) -> Option<Value> {
        self.settings.read().get(key).cloned()
    }

    /// A setting of this desktop. One that cannot be read is reported, and counts as absent.
    pub(crate) fn setting_as<T: DeserializeOwned>(self, key: &str) -> Option<T> {
        let value = self.setting(key).filter(|value| !value.is_null())?;
        match T::deserialize(Json(&value)) {
            Ok(value) => Some(value),
            Err(error) => {
                self.report_unreadable_later(&format!("{key}: {error}"));
                None
            }
        }
    }

    pub(crate) fn set(self, key: &str, value: Value) {
        self.act(DesktopAction::SetSetting { key: key.into(), value });
    }
}
