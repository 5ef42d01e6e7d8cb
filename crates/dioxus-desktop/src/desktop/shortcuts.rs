//! Keys that work everywhere, in one table with the sheet that shows them.

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::payload::window::WindowMode;
use web_sys::KeyboardEvent;

use super::snap::{self, Zone};
use super::{drag, prompt, window};
use crate::desk::{Desk, Overlay, desk};
use crate::dom;
use crate::undo::{self, Way};

pub(crate) const SHEET: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("Ctrl K", "Ask the choir, open, find, or run a command"),
            ("Ctrl Z", "Undo the latest change"),
            ("Ctrl Shift Z", "Redo"),
            ("F6", "Next region: windows, what waits for you, taskbar"),
            ("?", "This sheet"),
            ("Esc", "Close what is on top"),
        ],
    ),
    (
        "Windows",
        &[
            ("Ctrl `", "Next window"),
            ("Ctrl Alt ← →", "Left or right half"),
            ("Ctrl Alt ↑ ↓", "Maximise, restore or minimise"),
            ("Alt W", "Close the window"),
            ("Alt drag", "Move from anywhere"),
            ("Double-click title", "Maximise"),
        ],
    ),
    (
        "Files",
        &[
            ("↑ ↓", "Choose"),
            ("Enter", "Open"),
            ("F2", "Rename"),
            ("Delete", "Delete, with undo"),
            ("Ctrl C · X · V", "Copy, cut, paste"),
            ("Backspace", "Folder above"),
        ],
    ),
];

pub(crate) fn install(desk: Desk) {
    dom::listen::<KeyboardEvent>("keydown", true, move |event| {
        if handled(desk, &event) {
            event.prevent_default();
            event.stop_propagation();
        }
    });
}

fn handled(mut desk: Desk, event: &KeyboardEvent) -> bool {
    let key = event.key();
    let ctrl = event.ctrl_key() || event.meta_key();
    let (alt, shift) = (event.alt_key(), event.shift_key());
    match (key.to_lowercase().as_str(), ctrl, alt) {
        ("k", true, false) => prompt::open(),
        ("`", true, false) => cycle(desk, shift),
        ("z", true, false) if !dom::is_typing() => {
            undo::latest(desk, if shift { Way::Redo } else { Way::Undo });
        }
        ("y", true, false) if !dom::is_typing() => undo::latest(desk, Way::Redo),
        ("arrowleft", true, true) => on_front(desk, |id| snap::to_zone(desk, id, Zone::Left)),
        ("arrowright", true, true) => on_front(desk, |id| snap::to_zone(desk, id, Zone::Right)),
        ("arrowup", true, true) => on_front(desk, |id| snap::to_zone(desk, id, Zone::Full)),
        ("arrowdown", true, true) => on_front(desk, |id| lower(desk, id)),
        ("w", false, true) => on_front(desk, |id| desk.close(id)),
        ("f6", _, false) => next_region(desk),
        ("?", false, false) if !dom::is_typing() => desk.overlay.set(Overlay::Shortcuts),
        ("escape", false, false) => return escape(desk),
        _ => return false,
    }
    true
}

fn on_front(desk: Desk, run: impl FnOnce(WindowId)) {
    if let Some(id) = desk.front() {
        run(id);
    }
}

fn lower(desk: Desk, id: WindowId) {
    match desk.window(id).map(|w| w.mode) {
        Some(WindowMode::Maximized) => window::toggle_max(desk, id),
        Some(WindowMode::Normal | WindowMode::Minimized) => {
            desk.change(id, |w| w.mode = WindowMode::Minimized);
        }
        None => {}
    }
}

/// The window furthest back comes to the front, or with Shift the front one goes back.
fn cycle(mut desk: Desk, backwards: bool) {
    let windows = desk.windows.peek().clone();
    let shown = |id: &WindowId| windows.get(id).is_some_and(|w| w.mode != WindowMode::Minimized);
    let order: Vec<WindowId> = desk.stack.peek().iter().copied().filter(shown).collect();
    let next = if backwards {
        if let Some(front) = order.last().copied() {
            let mut stack = desk.stack.write();
            stack.retain(|id| *id != front);
            stack.insert(0, front);
        }
        order.iter().rev().nth(1)
    } else {
        order.first()
    };
    if let Some(id) = next {
        desk.show(*id);
    }
}

fn next_region(desk: Desk) {
    let within = |place: &str| dom::active().is_some_and(|e| e.closest(place).ok().flatten().is_some());
    let waits = dom::by_id("waiting").is_some_and(|cards| cards.child_element_count() > 0);
    match desk.front() {
        _ if !within("#taskbar") && (!waits || within("#waiting")) => dom::focus("launcher-button"),
        _ if !within("#taskbar") => dom::focus("waiting"),
        Some(id) => dom::focus(&format!("w-{id}")),
        None => dom::focus("area"),
    }
}

/// Closes the topmost thing; false if there is none, so that apps hear the key.
fn escape(mut desk: Desk) -> bool {
    if drag::active() {
        drag::cancel(desk);
    } else if desk.menu.peek().is_some() {
        // The menu closes itself and returns the focus.
        return false;
    } else if desk.ask.peek().is_some() {
        desk.ask.set(None);
    } else if *desk.overlay.peek() != Overlay::None {
        let back = match *desk.overlay.peek() {
            Overlay::Launcher => "launcher-button",
            Overlay::Notices => "notices-button",
            Overlay::None | Overlay::Shortcuts | Overlay::Tour => "area",
        };
        if *desk.overlay.peek() == Overlay::Tour {
            desk.set("tour.done", true.into());
        }
        desk.overlay.set(Overlay::None);
        dom::focus(back);
    } else if desk.past.peek().is_some() {
        desk.past.set(None);
    } else {
        return false;
    }
    true
}

#[component]
pub(crate) fn CheatSheet() -> Element {
    let mut desk = desk();
    use_effect(move || {
        if *desk.overlay.read() == Overlay::Shortcuts {
            dom::focus_soon("sheet");
        }
    });
    if *desk.overlay.read() != Overlay::Shortcuts {
        return rsx! {};
    }
    rsx! {
        div { class: "scrim", onpointerdown: move |_| desk.overlay.set(Overlay::None) }
        section { class: "dialog sheet", id: "sheet", tabindex: "-1", role: "dialog", "aria-modal": "true", "aria-label": "Keyboard shortcuts",
            header { h2 { "Keyboard shortcuts" } span { class: "sp" } button { class: "btn", onclick: move |_| desk.overlay.set(Overlay::None), "Close" } }
            ShortcutTable {}
        }
    }
}

/// The table itself, also shown in Help.
#[component]
pub(crate) fn ShortcutTable() -> Element {
    rsx! {
        div { class: "keys",
            for (group, rows) in SHEET {
                section { key: "{group}",
                    h3 { "{group}" }
                    dl {
                        for (keys, what) in rows.iter() {
                            dt { kbd { "{keys}" } }
                            dd { "{what}" }
                        }
                    }
                }
            }
        }
    }
}
