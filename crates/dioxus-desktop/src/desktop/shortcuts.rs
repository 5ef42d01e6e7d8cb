//! Keys that work everywhere, in one table with the sheet that shows them.

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::payload::window::WindowMode;
use web_sys::KeyboardEvent;

use super::snap::{self, Zone};
use super::{drag, window};
use crate::dom;
use crate::state::{AppState, Overlay, app_state};
use crate::undo;
use crate::undo_plan::RevertKind;
use crate::widgets::ShortcutTable;
use crate::words;

pub(crate) fn install(app_state: AppState) {
    dom::listen::<KeyboardEvent>("keydown", true, move |event| {
        if handled(app_state, &event) {
            event.prevent_default();
            event.stop_propagation();
        }
    });
}

fn handled(mut app_state: AppState, event: &KeyboardEvent) -> bool {
    let key = event.key();
    let ctrl = event.ctrl_key() || event.meta_key();
    let (alt, shift) = (event.alt_key(), event.shift_key());
    match (key.to_lowercase().as_str(), ctrl, alt) {
        ("k", true, false) => dom::focus_prompt(),
        ("`", true, false) => cycle(app_state, shift),
        ("z", true, false) if !dom::is_typing() => {
            undo::revert_latest(app_state, if shift { RevertKind::Redo } else { RevertKind::Undo });
        }
        ("y", true, false) if !dom::is_typing() => undo::revert_latest(app_state, RevertKind::Redo),
        // The browser would select the whole page. Lists of files have a selection of their own.
        ("a", true, false) if !dom::is_typing() && !dom::is_in("[aria-multiselectable=true]") => {
            dom::select_window_text()
        }
        ("arrowleft", true, true) => on_front(app_state, |id| snap::to_zone(app_state, id, Zone::Left)),
        ("arrowright", true, true) => on_front(app_state, |id| snap::to_zone(app_state, id, Zone::Right)),
        ("arrowup", true, true) => on_front(app_state, |id| snap::to_zone(app_state, id, Zone::Full)),
        ("arrowdown", true, true) => on_front(app_state, |id| lower(app_state, id)),
        ("w", false, true) => on_front(app_state, |id| app_state.close(id)),
        ("f6", _, false) => next_region(app_state),
        ("?", false, false) if !dom::is_typing() => app_state.overlay.set(Overlay::Shortcuts),
        ("escape", false, false) => return escape(app_state),
        _ => return false,
    }
    true
}

pub(super) fn on_front(app_state: AppState, run: impl FnOnce(WindowId)) {
    if let Some(id) = app_state.front() {
        run(id);
    }
}

fn lower(app_state: AppState, id: WindowId) {
    match app_state.window(id).map(|w| w.mode) {
        Some(WindowMode::Maximized) => window::toggle_max(app_state, id),
        Some(WindowMode::Normal | WindowMode::Minimized) => {
            app_state.change(id, |w| w.mode = WindowMode::Minimized);
        }
        None => {}
    }
}

/// Brings the rearmost window to the front, or with Shift sends the front one to the back.
fn cycle(mut app_state: AppState, backwards: bool) {
    let windows = app_state.windows.peek().clone();
    let shown = |id: &WindowId| windows.get(id).is_some_and(|w| w.mode != WindowMode::Minimized);
    let order: Vec<WindowId> = app_state.stack.peek().iter().copied().filter(shown).collect();
    let next = if backwards {
        if let Some(front) = order.last().copied() {
            let mut stack = app_state.stack.write();
            stack.retain(|id| *id != front);
            stack.insert(0, front);
        }
        order.iter().rev().nth(1)
    } else {
        order.first()
    };
    if let Some(id) = next {
        app_state.show(*id);
    }
}

fn next_region(app_state: AppState) {
    let waits = dom::by_id("waiting").is_some_and(|cards| cards.child_element_count() > 0);
    match app_state.front() {
        _ if !dom::is_in("#taskbar") && (!waits || dom::is_in("#waiting")) => dom::focus("launcher-button"),
        _ if !dom::is_in("#taskbar") => dom::focus("waiting"),
        Some(id) => dom::focus_window_soon(format!("w-{id}")),
        None => dom::focus("area"),
    }
}

/// Closes the topmost layer; false if there is none, so that the key reaches the app.
fn escape(mut app_state: AppState) -> bool {
    if drag::active() {
        drag::cancel(app_state);
    } else if app_state.menu.peek().is_some() {
        // The menu closes itself and returns the focus.
        return false;
    } else if app_state.revert_dialog.peek().is_some() {
        app_state.revert_dialog.set(None);
    } else if *app_state.overlay.peek() != Overlay::None {
        let back = match *app_state.overlay.peek() {
            Overlay::Launcher => "launcher-button",
            Overlay::Notices => "notices-button",
            Overlay::None | Overlay::Shortcuts | Overlay::Tour => "area",
        };
        if *app_state.overlay.peek() == Overlay::Tour {
            app_state.set("tour.done", true.into());
        }
        app_state.overlay.set(Overlay::None);
        dom::focus(back);
    } else if app_state.past.peek().is_some() {
        app_state.past.set(None);
    } else {
        return false;
    }
    true
}

#[component]
pub(crate) fn CheatSheet() -> Element {
    let mut app_state = app_state();
    use_effect(move || {
        if *app_state.overlay.read() == Overlay::Shortcuts {
            dom::focus_soon("sheet");
        }
    });
    if *app_state.overlay.read() != Overlay::Shortcuts {
        return rsx! {};
    }
    rsx! {
        div { class: "scrim", onpointerdown: move |_| app_state.overlay.set(Overlay::None) }
        section { class: "dialog sheet", id: "sheet", tabindex: "-1", role: "dialog", "aria-modal": "true", "aria-label": words::desktop::KEYBOARD_SHORTCUTS,
            header { h2 { {words::desktop::KEYBOARD_SHORTCUTS} } span { class: "sp" } button { class: "btn", onclick: move |_| app_state.overlay.set(Overlay::None), {words::CLOSE} } }
            ShortcutTable {}
        }
    }
}
