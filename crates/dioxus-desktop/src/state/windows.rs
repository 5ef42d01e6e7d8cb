//! Actions on windows, each sent as one gesture.

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::payload::window::{Rect, Window, WindowMode};
use shared_types::wire::DesktopAction;

use super::{AppState, BAR, ToastAction, UNSAVED};
use crate::app_list::AppInfo;
use crate::words;
use crate::{dom, ids};

const CASCADE: i32 = 28;

impl AppState {
    pub(crate) fn front(self) -> Option<WindowId> {
        let windows = self.windows.read();
        let shown = |id: &&WindowId| windows.get(id).is_some_and(|w| w.mode != WindowMode::Minimized);
        self.stack.read().iter().rev().find(shown).copied()
    }

    pub(crate) fn window(self, id: WindowId) -> Option<Window> {
        self.windows.peek().get(&id).cloned()
    }

    /// Whether a window whose app has loaded may take the keys: it is in front, and the person does not type elsewhere.
    pub(crate) fn may_take_focus(self, id: WindowId) -> bool {
        let is_front = self.stack.peek().last() == Some(&id);
        is_front && (!dom::is_typing() || dom::is_in(&format!("[id='w-{id}']")))
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
        if UNSAVED.peek().contains(&id)
            && let Some(window) = self.window(id)
        {
            let text = words::desktop::closed_unsaved(&window.title);
            self.toast(text, false, ToastAction::Reopen(id, Box::new(window)));
        }
        self.act(DesktopAction::CloseWindow { window: id });
        match self.front() {
            Some(front) => dom::focus_window_soon(format!("w-{front}")),
            None => dom::focus_soon("area"),
        }
    }

    /// Opens a window again that was closed, as it was.
    pub(crate) fn reopen(self, id: WindowId, window: Window) {
        self.act(DesktopAction::SetWindow { window: id, state: Window { z: self.top(), ..window } });
        dom::focus_window_soon(format!("w-{id}"));
    }

    /// Brings a window back and in front.
    pub(crate) fn show(self, id: WindowId) {
        self.raise(id);
        if self.window(id).is_some_and(|w| w.mode == WindowMode::Minimized) {
            self.change(id, |w| w.mode = WindowMode::Normal);
        }
        dom::focus_window_soon(format!("w-{id}"));
    }

    /// Opens an app; an existing window that shows the same is brought forward instead.
    pub(crate) fn open(self, app: &AppInfo, shows: Option<&str>) {
        let fits = |w: &Window| shows.is_none() || app.reuses_window || w.shows.as_deref() == shows;
        let same = |w: &Window| *w.app == *app.id && fits(w);
        let found = if app.opens_many && shows.is_none() {
            None
        } else {
            self.windows.peek().iter().find(|(_, w)| same(w)).map(|(id, _)| *id)
        };
        if let Some(id) = found {
            if shows.is_some() {
                // In front first, so that it is recorded there and a reload finds it there.
                self.raise(id);
                self.change(id, |w| {
                    w.shows = shows.map(Into::into);
                    if w.mode == WindowMode::Minimized {
                        w.mode = WindowMode::Normal;
                    }
                });
            }
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
        dom::focus_window_soon(format!("w-{id}"));
    }
}
