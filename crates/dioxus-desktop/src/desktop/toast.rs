//! Toasts: each reports an operation that was just done, and offers its undo for ten seconds.

use dioxus::prelude::*;

use crate::icons::Icon;
use crate::parts::{IconButton, either};
use crate::runs;
use crate::state::{Offer, app_state};
use crate::undo;
use crate::undo_plan::Way;
use crate::words;

#[component]
pub(crate) fn Toasts() -> Element {
    let mut app_state = app_state();
    let toasts = app_state.toasts.read().clone();
    let mut close = move |id: u64| app_state.toasts.write().retain(|t| t.id != id);
    rsx! {
        div { class: "toasts", role: "status", "aria-live": "polite",
            for toast in toasts {
                div { key: "{toast.id}", class: if toast.bad { "toast bad" } else { "toast" },
                    Icon { name: either(toast.bad, "triangle-alert", "check") }
                    span { class: "text", "{toast.text}" }
                    match toast.offer {
                        Offer::Nothing => rsx! {},
                        Offer::Undo(op) | Offer::UndoAgain(op) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); undo::one(app_state, Way::Undo, op, None) }, {words::UNDO} }
                        },
                        Offer::Reopen(id, window) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); app_state.reopen(id, (*window).clone()) }, {words::desktop::REOPEN} }
                        },
                        Offer::Open(run) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::open(app_state, run) }, {words::OPEN} }
                        },
                        Offer::OpenOrUndo(run) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::undo(app_state, run) }, {words::UNDO} }
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::open(app_state, run) }, {words::OPEN} }
                        },
                        Offer::Redo(op) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); undo::one(app_state, Way::Redo, op, None) }, {words::REDO} }
                        },
                    }
                    IconButton { icon: "x", label: words::desktop::DISMISS, onclick: move |_| close(toast.id) }
                }
            }
        }
    }
}
