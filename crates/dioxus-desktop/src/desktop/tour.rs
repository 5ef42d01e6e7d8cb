//! Five quiet steps for the first visit. Skipping or finishing them is remembered as a setting.

use dioxus::prelude::*;

use crate::dom;
use crate::icons::Icon;
use crate::state::{Overlay, app_state};
use crate::words;

const STEPS: [(&str, &str, &str); 5] = [
    ("search", words::tour::PROMPT, words::tour::PROMPT_MORE),
    ("layout-grid", words::tour::WINDOWS, words::tour::WINDOWS_MORE),
    ("folder", words::tour::FILES, words::tour::FILES_MORE),
    ("history", words::tour::TIMELINE, words::tour::TIMELINE_MORE),
    ("undo-2", words::tour::UNDO, words::tour::UNDO_MORE),
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
        section { class: "dialog tour", role: "dialog", "aria-label": words::tour::TOUR, "aria-live": "polite",
            div { class: "tour-icon", Icon { name: icon } }
            h2 { "{title}" }
            p { "{text}" }
            footer {
                span { class: "dots", "aria-label": words::tour::step(at + 1),
                    for i in 0..5 { i { key: "{i}", class: if i == at { "on" } else { "" } } }
                }
                span { class: "sp" }
                if at < 4 {
                    button { class: "btn ghost", id: "tour-skip", onclick: move |_| end(), {words::tour::SKIP} }
                }
                button {
                    class: "btn pri",
                    id: "tour-next",
                    onclick: move |_| if at < 4 { step.set(at + 1) } else { end() },
                    if at < 4 { {words::tour::NEXT} } else { {words::tour::BEGIN} }
                }
            }
        }
    }
}
