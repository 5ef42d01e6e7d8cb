//! What was just done, with Undo for ten seconds.

use dioxus::prelude::*;

use crate::desk::{Offer, desk};
use crate::icons::Icon;
use crate::parts::{IconButton, either};
use crate::runs;
use crate::undo::{self, Way};

#[component]
pub(crate) fn Toasts() -> Element {
    let mut desk = desk();
    let toasts = desk.toasts.read().clone();
    let mut close = move |id: u64| desk.toasts.write().retain(|t| t.id != id);
    rsx! {
        div { class: "toasts", role: "status", "aria-live": "polite",
            for toast in toasts {
                div { key: "{toast.id}", class: if toast.bad { "toast bad" } else { "toast" },
                    Icon { name: either(toast.bad, "triangle-alert", "check") }
                    span { class: "text", "{toast.text}" }
                    match toast.offer {
                        Offer::Nothing => rsx! {},
                        Offer::Undo(op) | Offer::UndoAgain(op) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); undo::one(desk, Way::Undo, op, None) }, "Undo" }
                        },
                        Offer::Reopen(id, window) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); desk.reopen(id, (*window).clone()) }, "Reopen" }
                        },
                        Offer::Open(run) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::open(desk, run) }, "Open" }
                        },
                        Offer::OpenOrUndo(run) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::undo(desk, run) }, "Undo" }
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::open(desk, run) }, "Open" }
                        },
                        Offer::Redo(op) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); undo::one(desk, Way::Redo, op, None) }, "Redo" }
                        },
                    }
                    IconButton { icon: "x", label: "Dismiss", onclick: move |_| close(toast.id) }
                }
            }
        }
    }
}
