//! The launcher: all apps, each with a line on its purpose.

use dioxus::prelude::*;

use crate::app_list;
use crate::dom;
use crate::icons::Icon;
use crate::state::{Overlay, app_state};
use crate::words;

#[component]
pub(crate) fn Launcher() -> Element {
    let mut app_state = app_state();
    let open = *app_state.overlay.read() == Overlay::Launcher;
    use_effect(move || {
        if *app_state.overlay.read() == Overlay::Launcher {
            dom::focus_soon("launch-0");
        }
    });
    if !open {
        return rsx! {};
    }
    let close = move || {
        let mut app_state = app_state;
        app_state.overlay.set(Overlay::None);
        dom::focus("launcher-button");
    };
    rsx! {
        div { class: "scrim clear", onpointerdown: move |_| close() }
        section { class: "panel launcher", role: "dialog", "aria-label": words::desktop::ALL_APPS,
            onkeydown: move |event| {
                let at = dom::active().and_then(|e| e.id().strip_prefix("launch-")?.parse::<i32>().ok()).unwrap_or(0);
                let count = app_list::APPS.len() as i32;
                let next = match dom::key(&event).as_str() {
                    "ArrowRight" => at + 1,
                    "ArrowLeft" => at - 1,
                    "ArrowDown" => at + 3,
                    "ArrowUp" => at - 3,
                    _ => return,
                };
                event.prevent_default();
                dom::focus(&format!("launch-{}", next.clamp(0, count - 1)));
            },
            for (i, app) in app_list::APPS.iter().enumerate() {
                button {
                    key: "{app.id}",
                    id: "launch-{i}",
                    class: "tile",
                    onclick: move |_| {
                        app_state.overlay.set(Overlay::None);
                        app_state.open(app, None);
                    },
                    Icon { name: app.icon }
                    b { "{app.title}" }
                    small { "{app.about}" }
                }
            }
        }
    }
}
