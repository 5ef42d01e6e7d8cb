//! Toasts: each reports an operation that was just done, and offers its undo for ten seconds.

use dioxus::prelude::*;

use crate::icons::Icon;
use crate::runs;
use crate::state::{ToastAction, app_state};
use crate::undo;
use crate::undo_plan::RevertKind;
use crate::widgets::{IconButton, choose_text};
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
                    Icon { name: choose_text(toast.bad, "triangle-alert", "check") }
                    span { class: "text", "{toast.text}" }
                    match toast.offer {
                        ToastAction::Nothing => rsx! {},
                        ToastAction::Undo(op) | ToastAction::UndoAgain(op) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); undo::revert_operation(app_state, RevertKind::Undo, op, None) }, {words::UNDO} }
                        },
                        ToastAction::Reopen(id, window) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); app_state.reopen(id, (*window).clone()) }, {words::desktop::REOPEN} }
                        },
                        ToastAction::Open(run) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::open(app_state, run) }, {words::OPEN} }
                        },
                        ToastAction::OpenOrUndo(run) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::undo(app_state, run) }, {words::UNDO} }
                            button { class: "offer", onclick: move |_| { close(toast.id); runs::open(app_state, run) }, {words::OPEN} }
                        },
                        ToastAction::Redo(op) => rsx! {
                            button { class: "offer", onclick: move |_| { close(toast.id); undo::revert_operation(app_state, RevertKind::Redo, op, None) }, {words::REDO} }
                        },
                    }
                    IconButton { icon: "x", label: words::desktop::DISMISS, onclick: move |_| close(toast.id) }
                }
            }
        }
    }
}
