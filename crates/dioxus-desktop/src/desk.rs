//! The state that the whole desktop shares, as signals, and the gestures that change it.

use std::rc::Rc;

use dioxus::prelude::*;
use serde_json::Value;
use shared_types::payload::window::{Rect, Window, WindowMode};
use shared_types::wire::{DesktopAction, DesktopState, Done, Gesture, Me};
use shared_types::{Event, OpId, Seq, Timestamp, WindowId};

use crate::api::{self, Answer, Failure};
use crate::apps::AppInfo;
use crate::connection::Link;
use crate::desktop::menu::Menu;
use crate::model::{Model, Settings, Windows};
use crate::undo::Ask;
use crate::{clock, dom, ids};

/// What lies over the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlay {
    None,
    Launcher,
    Notices,
    Shortcuts,
    Tour,
}

/// What a toast offers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Offer {
    Nothing,
    Undo(OpId),
    /// Redo of an undo, named by the operation that undid.
    Redo(OpId),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Toast {
    pub id: u64,
    pub text: String,
    pub bad: bool,
    pub offer: Offer,
}

/// A line of the notification list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notice {
    pub at: Timestamp,
    pub text: String,
    pub bad: bool,
}

/// A path that was copied or cut in Files.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clip {
    pub path: shared_types::FilePath,
    pub cut: bool,
}

/// The shared state. Cheap to copy; every field is a signal of its own, so that a change re-renders only its readers.
#[derive(Clone, Copy)]
pub(crate) struct Desk {
    pub me: Signal<Option<Me>>,
    pub link: Signal<Link>,
    pub ready: Signal<bool>,
    pub windows: Signal<Windows>,
    pub settings: Signal<Settings>,
    pub unsaved: Signal<u64>,
    /// Back to front.
    pub stack: Signal<Vec<WindowId>>,
    /// The newest event, and how far lists and search have followed it.
    pub seq: Signal<u64>,
    pub projected: Signal<u64>,
    pub screen: Signal<(i32, i32)>,
    pub overlay: Signal<Overlay>,
    pub menu: Signal<Option<Menu>>,
    pub toasts: Signal<Vec<Toast>>,
    pub notices: Signal<Vec<Notice>>,
    pub unread: Signal<u64>,
    /// A moment of the past that is being looked at.
    pub past: Signal<Option<Rc<DesktopState>>>,
    pub ask: Signal<Option<Ask>>,
    pub clip: Signal<Option<Clip>>,
    model: CopyValue<Model>,
}

pub(crate) const BAR: i32 = 56;
const CASCADE: i32 = 28;

/// The desktop that this component is a part of.
pub(crate) fn desk() -> Desk {
    consume_context()
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            me: Signal::new(None),
            link: Signal::new(Link::Connecting),
            ready: Signal::new(false),
            windows: Signal::new(Windows::new()),
            settings: Signal::new(Settings::new()),
            unsaved: Signal::new(0),
            stack: Signal::new(Vec::new()),
            seq: Signal::new(0),
            projected: Signal::new(0),
            screen: Signal::new(dom::screen()),
            overlay: Signal::new(Overlay::None),
            menu: Signal::new(None),
            toasts: Signal::new(Vec::new()),
            notices: Signal::new(Vec::new()),
            unread: Signal::new(0),
            past: Signal::new(None),
            ask: Signal::new(None),
            clip: Signal::new(None),
            model: CopyValue::new(Model::default()),
        }
    }

    pub(crate) fn seen(self) -> Seq {
        self.model.read().seq()
    }

    pub(crate) fn reset(mut self, state: DesktopState) {
        let seq = state.seq.0;
        self.model.write().reset(state);
        self.publish();
        self.seq.set(seq);
        if *self.projected.peek() < seq {
            self.projected.set(seq);
        }
        if !*self.ready.peek() {
            self.ready.set(true);
        }
    }

    pub(crate) fn apply(mut self, event: &Event) {
        if self.model.write().apply(event) {
            self.publish();
            self.seq.set(event.seq.0);
        }
    }

    /// Brings the signals in step with the model; only what differs wakes its readers.
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

    /// New and re-stacked windows come to the front, in the order of their place.
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

    /// Does a gesture: at once here, then on the server. What cannot be sent now is sent when the link is back.
    pub(crate) fn act(mut self, action: DesktopAction) {
        if self.past.peek().is_some() {
            return;
        }
        let gesture = Gesture { command: ids::command(), op: ids::op(), action };
        self.model.write().expect(gesture.clone());
        self.publish();
        api::run(self.send(gesture));
    }

    async fn send(mut self, gesture: Gesture) {
        let answer: Answer<Done> = api::post("/gestures", &gesture).await;
        match answer {
            Ok(done) if done.last.is_none() => self.model.write().settle(gesture.op),
            Ok(_) | Err(Failure::Unreachable) => return,
            Err(failure) => {
                self.model.write().settle(gesture.op);
                self.fail(&failure);
            }
        }
        self.publish();
    }

    /// Sends again what the server may not have got; ids make that harmless.
    pub(crate) fn resend(self) {
        for gesture in self.model.read().pending() {
            api::run(self.send(gesture));
        }
    }

    pub(crate) fn setting(self, key: &str) -> Option<Value> {
        self.settings.read().get(key).cloned()
    }

    pub(crate) fn set(self, key: &str, value: Value) {
        self.act(DesktopAction::SetSetting { key: key.into(), value });
    }

    pub(crate) fn front(self) -> Option<WindowId> {
        let windows = self.windows.read();
        let shown = |id: &&WindowId| windows.get(id).is_some_and(|w| w.mode != WindowMode::Minimized);
        self.stack.read().iter().rev().find(shown).copied()
    }

    pub(crate) fn window(self, id: WindowId) -> Option<Window> {
        self.windows.peek().get(&id).cloned()
    }

    /// Brings a window to the front of this tab.
    pub(crate) fn raise(mut self, id: WindowId) {
        if self.stack.peek().last() != Some(&id) {
            let mut stack = self.stack.write();
            stack.retain(|other| *other != id);
            stack.push(id);
        }
    }

    fn top(self) -> u32 {
        self.windows.peek().values().map(|w| w.z).max().unwrap_or_default().saturating_add(1)
    }

    /// Changes a window by a function and puts it in front.
    pub(crate) fn change(self, id: WindowId, change: impl FnOnce(&mut Window)) {
        let Some(mut state) = self.window(id) else { return };
        let before = state.clone();
        change(&mut state);
        if state == before {
            return self.raise(id);
        }
        if state.mode != WindowMode::Minimized && self.stack.peek().last() == Some(&id) {
            state.z = self.top();
        }
        self.act(DesktopAction::SetWindow { window: id, state });
    }

    pub(crate) fn close(self, id: WindowId) {
        self.act(DesktopAction::CloseWindow { window: id });
        match self.front() {
            Some(front) => dom::focus_soon(format!("w-{front}")),
            None => dom::focus_soon("area"),
        }
    }

    /// Brings a window back and in front.
    pub(crate) fn show(self, id: WindowId) {
        self.raise(id);
        if self.window(id).is_some_and(|w| w.mode == WindowMode::Minimized) {
            self.change(id, |w| w.mode = WindowMode::Normal);
        }
        dom::focus_soon(format!("w-{id}"));
    }

    /// Opens an app; an existing window that shows the same is brought forward instead.
    pub(crate) fn open(self, app: &AppInfo, shows: Option<&str>) {
        let same = |w: &Window| *w.app == *app.id && (shows.is_none() || w.shows.as_deref() == shows);
        let found = if app.many && shows.is_none() {
            None
        } else {
            self.windows.peek().iter().find(|(_, w)| same(w)).map(|(id, _)| *id)
        };
        if let Some(id) = found {
            return self.show(id);
        }
        self.open_new(app, shows);
    }

    pub(crate) fn open_new(self, app: &AppInfo, shows: Option<&str>) {
        let id = ids::window();
        let (w, h) = *self.screen.peek();
        let (width, height) = (app.size.0.min(w - 48), app.size.1.min(h - BAR - 48));
        let step = CASCADE * (self.windows.peek().len() as i32 % 8);
        let x = ((w - width) / 2 - 80 + step).clamp(12, (w - width - 12).max(12));
        let y = ((h - BAR - height) / 3 + step - 20).clamp(12, (h - BAR - height - 12).max(12));
        let rect = Rect { x, y, width: width.max(280) as u32, height: height.max(200) as u32 };
        let title = shows.and_then(|s| s.rsplit('/').next()).filter(|_| app.names_what_it_shows);
        let state = Window {
            app: app.id.into(),
            title: title.unwrap_or(app.title).into(),
            rect,
            mode: WindowMode::Normal,
            z: self.top(),
            shows: shows.map(Into::into),
        };
        self.act(DesktopAction::SetWindow { window: id, state });
        dom::focus_soon(format!("w-{id}"));
    }

    pub(crate) fn toast(mut self, text: impl Into<String>, bad: bool, offer: Offer) {
        let id = ids::now().millis() as u64 * 1000 + (ids::fraction() * 1000.0) as u64;
        let text = text.into();
        {
            let mut toasts = self.toasts.write();
            toasts.push(Toast { id, text: text.clone(), bad, offer });
            if toasts.len() > 3 {
                toasts.remove(0);
            }
        }
        if bad {
            self.notice(text, true);
        }
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(10_000).await;
            self.toasts.write().retain(|toast| toast.id != id);
        });
    }

    pub(crate) fn notice(mut self, text: String, bad: bool) {
        self.notices.write().insert(0, Notice { at: ids::now(), text, bad });
        self.notices.write().truncate(50);
        *self.unread.write() += 1;
    }

    pub(crate) fn fail(self, failure: &Failure) {
        self.toast(failure.text(), true, Offer::Nothing);
    }

    /// Says what was done, where there is nothing to undo.
    pub(crate) fn said<T>(self, text: &str, answer: &Answer<T>) {
        match answer {
            Ok(_) => self.toast(text, false, Offer::Nothing),
            Err(failure) => self.fail(failure),
        }
    }

    /// Says what an operation did, with Undo.
    pub(crate) fn did(self, text: &str, answer: &Answer<Done>) -> bool {
        match answer {
            Ok(done) => {
                // A move is two changes and still one file.
                let more = if done.total > 2 { format!(" ({})", clock::plural(done.total, "file")) } else { String::new() };
                let offer = done.op.map_or(Offer::Nothing, Offer::Undo);
                self.toast(format!("{text}{more}"), false, offer);
                true
            }
            Err(failure) => {
                self.fail(failure);
                false
            }
        }
    }
}
