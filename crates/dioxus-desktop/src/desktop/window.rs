//! The frame around an app: title bar, controls, edges. Dragging and resizing write styles directly (see `drag`); a
//! window is rendered again only when its state has changed.

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::WindowId;
use shared_types::payload::window::{Rect, Window, WindowMode};

use super::drag::{self, Edge};
use super::snap::{self, Zone};
use crate::icons::Icon;
use crate::menu::{Item, Menu};
use crate::state::{AppState, BAR, app_state};
use crate::widgets::{IconButton, choose_text};
use crate::words;
use crate::{app_list, apps, dom};

/// Screens narrower than this, in pixels, are those of tablets.
const SMALL: i32 = 1100;

/// Keeps a window within reach on a screen that may be smaller than the one it was placed on.
pub(crate) fn reachable(rect: Rect, (width, height): (i32, i32)) -> Rect {
    let w = (rect.width as i32).clamp(240, width.max(240));
    let h = (rect.height as i32).clamp(140, (height - BAR).max(140));
    // On a small screen nothing is put half outside on purpose: it was placed on a larger one.
    let (beside, below) = if width < SMALL { (w, h) } else { (80, 34) };
    let x = rect.x.clamp(beside - w, (width - beside).max(0));
    let y = rect.y.clamp(0, (height - BAR - below).max(0));
    Rect { x, y, width: w as u32, height: h as u32 }
}

pub(crate) fn toggle_max(app_state: AppState, id: WindowId) {
    app_state.raise(id);
    app_state.change(id, |w| {
        w.mode = match w.mode {
            WindowMode::Maximized => WindowMode::Normal,
            WindowMode::Normal | WindowMode::Minimized => WindowMode::Maximized,
        };
    });
}

fn window_menu(id: WindowId) -> Vec<Item> {
    let place = |zone: Zone| move || snap::to_zone(app_state(), id, zone);
    vec![
        Item::new("maximize-2", words::desktop::MAXIMISE_OR_RESTORE, move || toggle_max(app_state(), id)),
        Item::new("minus", words::desktop::MINIMISE, move || {
            app_state().change(id, |w| w.mode = WindowMode::Minimized)
        }),
        Item::Line,
        Item::new("columns-2", words::desktop::LEFT_HALF, place(Zone::Left)).key("Ctrl Alt ←"),
        Item::new("columns-2", words::desktop::RIGHT_HALF, place(Zone::Right)).key("Ctrl Alt →"),
        Item::Line,
        Item::new("x", words::CLOSE, move || app_state().close(id)).key("Alt W"),
    ]
}

#[component]
pub(crate) fn Frame(id: WindowId, state: Window) -> Element {
    let mut app_state = app_state();
    let depth = app_state.stack.read().iter().position(|other| *other == id).unwrap_or_default();
    let front = app_state.front() == Some(id);
    let rect = reachable(state.rect, *app_state.screen.read());
    let app = app_list::find(&state.app);
    let mode = match state.mode {
        WindowMode::Normal => "",
        WindowMode::Minimized => "min",
        WindowMode::Maximized => "max",
    };
    let class = format!("win {mode} {}", if front { "front" } else { "" });
    let title = state.title.to_string();
    let is_max = state.mode == WindowMode::Maximized;
    let hidden = state.mode == WindowMode::Minimized;
    rsx! {
        section {
            class,
            id: "w-{id}",
            role: "dialog",
            "aria-label": "{title}",
            "aria-hidden": hidden.then_some("true"),
            "data-app": "{state.app}",
            tabindex: "-1",
            left: "{rect.x}px",
            top: "{rect.y}px",
            width: "{rect.width}px",
            height: "{rect.height}px",
            z_index: "{depth + 1}",
            onpointerdown: move |event| {
                app_state.raise(id);
                if event.modifiers().alt() {
                    let native = event.data().as_web_event();
                    native.prevent_default();
                    drag::begin_move(app_state, id, &native);
                }
            },
            onfocusin: move |_| {
                app_state.raise(id);
                dom::remember_focus(&format!("w-{id}"));
            },
            header {
                class: "title",
                onpointerdown: move |event| {
                    let native = event.data().as_web_event();
                    if native.button() == 0 && !event.modifiers().alt() {
                        drag::begin_move(app_state, id, &native);
                        // The title bar itself has no use for keys.
                        dom::focus_window_soon(format!("w-{id}"));
                    }
                },
                ondoubleclick: move |_| toggle_max(app_state, id),
                oncontextmenu: move |event| {
                    event.prevent_default();
                    event.stop_propagation();
                    let at = event.client_coordinates();
                    app_state.menu.set(Some(Menu::at(at.x, at.y, window_menu(id))));
                },
                Icon { name: app.map_or("info", |app| app.icon) }
                span { class: "name", "{title}" }
                if let Some(shows) = state.shows.as_ref().filter(|s| s.contains('/') && ***s != *title) {
                    span { class: "sub", "{shows}" }
                }
                span { class: "sp", id: "bar-{id}" }
                span {
                    class: "ctl",
                    onpointerdown: move |event| {
                        app_state.raise(id);
                        event.stop_propagation();
                    },
                    ondoubleclick: move |event| event.stop_propagation(),
                    IconButton { icon: "minus", label: words::desktop::MINIMISE, onclick: move |_| app_state.change(id, |w| w.mode = WindowMode::Minimized) }
                    IconButton {
                        icon: choose_text(is_max, "copy", "square"),
                        label: if is_max { words::desktop::RESTORE } else { words::desktop::MAXIMISE },
                        class: "wide-only",
                        onclick: move |_| toggle_max(app_state, id),
                    }
                    IconButton { icon: "x", label: words::CLOSE, class: "close", onclick: move |_| app_state.close(id) }
                }
            }
            div { class: "body",
                apps::Body { app: state.app.to_string(), window: id, shows: state.shows.as_ref().map(|s| s.to_string()) }
            }
            if !is_max {
                for edge in Edge::ALL {
                    div {
                        key: "{edge.name()}",
                        class: "edge {edge.name()}",
                        onpointerdown: move |event| {
                            let native = event.data().as_web_event();
                            drag::begin_resize(app_state, id, edge, &native);
                        },
                    }
                }
            }
        }
    }
}

/// A window as it was: its place and its name, and nothing to press.
#[component]
pub(crate) fn Ghost(state: Window) -> Element {
    let rect = reachable(state.rect, *app_state().screen.read());
    let icon = app_list::find(&state.app).map_or("info", |app| app.icon);
    let class = match state.mode {
        WindowMode::Normal => "win ghost",
        WindowMode::Maximized => "win ghost max",
        WindowMode::Minimized => return rsx! {},
    };
    rsx! {
        section {
            class,
            "aria-label": words::desktop::window_as_it_was(&state.title),
            left: "{rect.x}px",
            top: "{rect.y}px",
            width: "{rect.width}px",
            height: "{rect.height}px",
            z_index: "{state.z}",
            header { class: "title", Icon { name: icon } span { class: "name", "{state.title}" } }
            div { class: "body",
                div { class: "ghost-body",
                    Icon { name: icon }
                    span { {state.shows.as_deref().unwrap_or(&state.title)} }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(x: i32, y: i32, screen: (i32, i32)) -> (i32, i32, u32, u32) {
        let Rect { x, y, width, height } = reachable(Rect { x, y, width: 900, height: 600 }, screen);
        (x, y, width, height)
    }

    #[test]
    fn a_window_of_a_large_screen_is_whole_on_a_small_one() {
        assert_eq!(placed(500, 300, (1024, 768)), (124, 768 - BAR - 600, 900, 600));
        assert_eq!(placed(-400, 20, (1024, 768)), (0, 20, 900, 600));
        assert_eq!(placed(40, 300, (820, 500)), (0, 0, 820, (500 - BAR) as u32));
    }

    #[test]
    fn a_window_may_be_put_aside_where_there_is_room_but_not_out_of_reach() {
        assert_eq!(placed(1300, 300, (1440, 900)), (1300, 300, 900, 600));
        assert_eq!(placed(5000, 5000, (1440, 900)), (1360, 900 - BAR - 34, 900, 600));
    }
}
