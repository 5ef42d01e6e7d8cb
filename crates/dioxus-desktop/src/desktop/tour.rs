//! Five quiet steps for the first visit. Skipping or finishing them is remembered as a setting.

use dioxus::prelude::*;

use crate::dom;
use crate::icons::Icon;
use crate::state::{Overlay, app_state};

const STEPS: [(&str, &str, &str); 5] = [
    (
        "search",
        "One bar for everything",
        "Press Ctrl K anywhere and say what the choir should do. The name of an app, a file or a setting opens it; > begins a command.",
    ),
    (
        "layout-grid",
        "Windows with manners",
        "Drag a title to an edge to fill half the screen, to a corner for a quarter. Alt-drag moves a window from anywhere. Everything stays where you left it.",
    ),
    (
        "folder",
        "Your files, live",
        "Files shows the workspace as it is, and keeps every version. Drop files on it to upload them.",
    ),
    (
        "history",
        "Everything is in the timeline",
        "Each row is something that happened. Open it to see what changed, drag the bar on top to look at the desktop as it was.",
    ),
    (
        "undo-2",
        "Undo, always",
        "Nothing asks “are you sure?”, because everything can be taken back: Ctrl Z, the toast, or any row of the timeline.",
    ),
];

#[component]
pub(crate) fn Tour() -> Element {
    let mut app_state = app_state();
    let mut step = use_signal(|| 0usize);
    use_effect(move || {
        let _ = step.read();
        if *app_state.overlay.read() == Overlay::Tour {
            dom::focus_soon("tour-next");
        }
    });
    if *app_state.overlay.read() != Overlay::Tour {
        return rsx! {};
    }
    let mut end = move || {
        app_state.overlay.set(Overlay::None);
        step.set(0);
        if app_state.settings.peek().get("tour.done").is_none() {
            app_state.set("tour.done", true.into());
        }
    };
    let at = step();
    let (icon, title, text) = STEPS[at.min(4)];
    rsx! {
        section { class: "dialog tour", role: "dialog", "aria-label": "A short tour", "aria-live": "polite",
            div { class: "tour-icon", Icon { name: icon } }
            h2 { "{title}" }
            p { "{text}" }
            footer {
                span { class: "dots", "aria-label": "Step {at + 1} of 5",
                    for i in 0..5 { i { key: "{i}", class: if i == at { "on" } else { "" } } }
                }
                span { class: "sp" }
                if at < 4 {
                    button { class: "btn ghost", id: "tour-skip", onclick: move |_| end(), "Skip" }
                }
                button {
                    class: "btn pri",
                    id: "tour-next",
                    onclick: move |_| if at < 4 { step.set(at + 1) } else { end() },
                    if at < 4 { "Next" } else { "Begin" }
                }
            }
        }
    }
}
