//! The desktop: windows over a wallpaper, the taskbar, and the layers over both.

pub(crate) mod drag;
pub(crate) mod launcher;
mod layers;
pub(crate) mod menu;
mod palette;
pub(crate) mod prompt;
pub(crate) mod prompt_commands;
mod prompt_results;
pub(crate) mod revert_dialog;
pub(crate) mod shortcuts;
pub(crate) mod snap;
pub(crate) mod taskbar;
pub(crate) mod toast;
pub(crate) mod tour;
pub(crate) mod window;

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use shared_types::payload::window::Window;
use shared_types::{Seq, WindowId};

use crate::icons::Icon;
use crate::menu::{Item, Menu};
use crate::state::{ConnectionState, Overlay, app_state};
use crate::undo;
use crate::undo_plan::RevertPlan;
use crate::words;
use crate::{app_list, apps, dom, runs};

/// Milliseconds after the start until the code of the apps is fetched in the background.
const IDLE_MS: u32 = 500;

#[component]
pub(crate) fn Desktop() -> Element {
    let mut app_state = app_state();
    use_hook(move || {
        drag::install(app_state);
        shortcuts::install(app_state);
        dom::listen::<web_sys::Event>("resize", false, move |_| app_state.screen.set(dom::screen()));
    });
    // Until the settings arrive, the page keeps the theme of its first paint.
    use_effect(move || {
        if *app_state.ready.read() {
            theme(app_state.setting_as::<String>("theme").as_deref());
        }
    });
    use_effect(move || {
        if *app_state.ready.read() && app_state.settings.peek().get("tour.done").is_none() {
            app_state.overlay.set(Overlay::Tour);
        }
    });
    use_hook(|| {
        spawn(async {
            TimeoutFuture::new(IDLE_MS).await;
            apps::fetch_all().await;
        });
    });
    runs::use_watch();
    let past = app_state.past.read().clone();
    // Windows stay mounted behind the view of the past, so that they keep their state.
    let windows: Vec<(WindowId, Window)> =
        app_state.windows.read().iter().map(|(id, w)| (*id, w.clone())).collect();
    let ghosts: Vec<(WindowId, Window)> = past.iter().flat_map(|past| past.windows.clone()).collect();
    let ready = *app_state.ready.read();
    let none_open = ready && windows.is_empty();
    rsx! {
        div { class: if past.is_some() { "desktop past" } else { "desktop" },
            main {
                class: "area",
                id: "area",
                tabindex: "-1",
                "aria-label": words::desktop::WINDOWS,
                oncontextmenu: move |event| {
                    event.prevent_default();
                    let at = event.client_coordinates();
                    app_state.menu.set(Some(Menu::at(at.x, at.y, background_menu())));
                },
                if none_open {
                    Welcome {}
                }
                for (id, state) in windows {
                    window::Frame { key: "{id}", id, state }
                }
                for (id, state) in ghosts {
                    window::Ghost { key: "{id}", state }
                }
                div { id: "snap", class: "snap", hidden: true }
            }
            if let Some(past) = past.as_ref() {
                PastBar { seq: past.seq }
            }
            ConnectionBanner {}
            taskbar::Taskbar {}
            layers::Layers {}
        }
    }
}

fn background_menu() -> Vec<Item> {
    let mut items = vec![
        Item::new("search", words::desktop::PROMPT, dom::focus_prompt).key(words::desktop::CTRL_K),
        Item::new("layout-grid", words::desktop::ALL_APPS, || app_state().overlay.set(Overlay::Launcher)),
        Item::Line,
    ];
    for app in app_list::APPS.iter().filter(|app| app.pinned) {
        items.push(Item::new(app.icon, app.title, move || app_state().open(app, None)));
    }
    items.push(Item::Line);
    items.push(
        Item::new("undo-2", words::UNDO, || {
            undo::revert_latest(app_state(), crate::undo_plan::RevertKind::Undo)
        })
        .key("Ctrl Z"),
    );
    items.push(
        Item::new("keyboard", words::desktop::KEYBOARD_SHORTCUTS, || {
            app_state().overlay.set(Overlay::Shortcuts)
        })
        .key("?"),
    );
    items
}

/// The empty desktop: a greeting and a few apps to start with.
#[component]
fn Welcome() -> Element {
    let name = app_state().me.read().as_ref().map(|me| me.name.clone()).unwrap_or_default();
    rsx! {
        div { class: "welcome",
            h1 { if name.is_empty() { {words::desktop::HELLO} } else { {words::desktop::hello(&name)} } }
            p { {words::desktop::PRESS} kbd { {words::desktop::CTRL_K} } {words::desktop::SAY_WHAT} }
            div { class: "welcome-apps",
                for app in app_list::APPS.iter().filter(|a| matches!(a.id, "files" | "terminal" | "timeline" | "help")) {
                    button { key: "{app.id}", class: "tile", onclick: move |_| app_state().open(app, None),
                        Icon { name: app.icon }
                        b { "{app.title}" }
                        small { "{app.about}" }
                    }
                }
            }
        }
    }
}

/// Sets the theme for the whole document, and for `theme.ts` to set before the next page is painted; anything but
/// `light` and `dark` follows the machine.
pub(crate) fn theme(setting: Option<&str>) {
    let forced = setting.filter(|name| matches!(*name, "light" | "dark"));
    dom::keep("theme", forced);
    let Some(root) = dom::document().and_then(|d| d.document_element()) else { return };
    let _ = match forced {
        Some(name) => root.set_attribute("data-theme", name),
        None => root.remove_attribute("data-theme"),
    };
}

#[component]
fn ConnectionBanner() -> Element {
    let app_state = app_state();
    let lost = *app_state.connection.read() == ConnectionState::Lost;
    rsx! {
        div { class: "banner", role: "status", hidden: !lost,
            if lost {
                Icon { name: "wifi-off" }
                span { {words::desktop::OUT_OF_REACH} }
            }
        }
    }
}

#[component]
fn PastBar(seq: Seq) -> Element {
    let mut app_state = app_state();
    rsx! {
        div { class: "past-bar", role: "status",
            Icon { name: "history" }
            span { {words::desktop::as_it_was(seq)} }
            button {
                class: "btn ghost",
                onclick: move |_| undo::open_dialog(app_state, RevertPlan::Restore { seq, label: words::event(seq) }),
                {words::RESTORE_TO_HERE}
            }
            button { class: "btn pri", id: "return-to-now", onclick: move |_| app_state.past.set(None), {words::desktop::RETURN_TO_NOW} }
        }
    }
}
