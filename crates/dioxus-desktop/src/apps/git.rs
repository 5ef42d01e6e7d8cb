//! Checkpoints: git commits of the whole workspace. Make one, compare any two or one with now, return to one.

use dioxus::prelude::*;
use shared_types::wire::{ChangeResult, Checkpoint, Comparison, NewCheckpoint};
use shared_types::{Seq, WindowId};

use crate::api::{self, ApiResult};
use crate::change_log::Change;
use crate::clock;
use crate::icons::Icon;
use crate::state::app_state;
use crate::state::use_changes;
use crate::undo;
use crate::undo_plan::RevertPlan;
use crate::widgets::{Changes, Empty, LoadError, Loading};
use crate::words;

/// The two moments that are compared; no second one is now.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    from: Seq,
    to: Option<Seq>,
}

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let _ = (window, shows);
    let app_state = app_state();
    let mut message = use_signal(String::new);
    let mut busy = use_signal(|| false);
    let mut pair = use_signal(|| None::<Pair>);
    let changes = use_changes(Change::is_of_checkpoint);
    let checkpoints = api::use_fetched::<Vec<Checkpoint>>(move || {
        drop(changes.read());
        "/checkpoints".to_owned()
    });
    let unsaved = *app_state.unsaved.read();
    let list = match &*checkpoints.read() {
        Some(Ok(list)) => list.clone(),
        Some(Err(_)) | None => Vec::new(),
    };
    let state = if unsaved == 0 {
        words::checkpoints::ALL_SAVED.to_owned()
    } else {
        words::checkpoints::not_saved_yet(unsaved)
    };
    rsx! {
        div { class: "git",
            form {
                class: "bar make",
                onsubmit: move |event| {
                    event.prevent_default();
                    let text = message.peek().trim().to_owned();
                    let text = if text.is_empty() { {words::checkpoints::NO_MESSAGE}.to_owned() } else { text };
                    busy.set(true);
                    spawn(async move {
                        let answer: ApiResult<ChangeResult> = api::post("/checkpoints", &NewCheckpoint { message: text }).await;
                        busy.set(false);
                        if answer.is_ok() {
                            message.set(String::new());
                        }
                        app_state.report_done(words::checkpoints::MADE, &answer);
                    });
                },
                input { class: "field", placeholder: words::checkpoints::MESSAGE_EXAMPLE, "aria-label": words::checkpoints::MESSAGE, value: "{message}", oninput: move |e| message.set(e.value()) }
                button { class: "btn pri", r#type: "submit", disabled: busy(), Icon { name: "git-commit-horizontal" } if busy() { {words::checkpoints::SAVING} } else { {words::checkpoints::MAKE} } }
            }
            div { class: "split",
                div { class: "commits scroll",
                    p { class: "quiet pad", "{state}" }
                    match &*checkpoints.read() {
                        None => rsx! { Loading {} },
                        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
                        Some(Ok(list)) if list.is_empty() => rsx! {
                            Empty { icon: "git-branch", title: words::checkpoints::NONE_YET, p { {words::checkpoints::NONE_YET_MORE} } }
                        },
                        Some(Ok(list)) => rsx! {
                            for point in list.clone() {
                                div { key: "{point.commit}", class: if pair().is_some_and(|p| p.from == point.seq) { "commit on" } else { "commit" },
                                    button { class: "go", onclick: move |_| pair.set(Some(Pair { from: point.seq, to: None })),
                                        i { class: "dot s" }
                                        div { class: "words",
                                            div { class: "w", "{point.message}" }
                                            div { class: "d", code { {point.commit.chars().take(7).collect::<String>()} } {words::checkpoints::about(&clock::full(point.ts), point.seq)} }
                                        }
                                    }
                                    button {
                                        class: "btn small",
                                        onclick: {
                                            let label = words::quoted(&point.message);
                                            move |_| undo::open_dialog(app_state, RevertPlan::Restore { seq: point.seq, label: label.clone() })
                                        },
                                        Icon { name: "rotate-ccw" }
                                        {words::checkpoints::RESTORE}
                                    }
                                }
                            }
                        },
                    }
                }
                if let Some(now) = pair() {
                    aside { class: "detail scroll", "aria-label": words::checkpoints::COMPARISON,
                        div { class: "bar",
                            Icon { name: "git-compare" }
                            span { {words::checkpoints::COMPARE_WITH} }
                            select {
                                "aria-label": words::checkpoints::COMPARE_WITH,
                                onchange: move |e| {
                                    if let Some(to) = app_state.read_choice(&e.value()) {
                                        pair.set(Some(Pair { from: now.from, to }));
                                    }
                                },
                                option { value: "", selected: now.to.is_none(), {words::checkpoints::NOW} }
                                for point in list.iter().filter(|p| p.seq != now.from) {
                                    option { key: "{point.commit}", value: "{point.seq}", selected: now.to == Some(point.seq), "{point.message}" }
                                }
                            }
                        }
                        Compared { pair: now }
                    }
                }
            }
        }
    }
}

#[component]
fn Compared(pair: Pair) -> Element {
    let wanted = use_memo(use_reactive!(|(pair,)| pair));
    // Two checkpoints never change; the files of now do.
    let changes = use_changes(move |change| wanted.peek().to.is_none() && change.is_of_file());
    let found = api::use_fetched::<Comparison>(move || {
        drop(changes.read());
        let pair = *wanted.read();
        // The older one comes first.
        let (from, to) = match pair.to {
            Some(to) if to < pair.from => (to, Some(pair.from)),
            Some(_) | None => (pair.from, pair.to),
        };
        let to = to.map(|s| s.to_string()).unwrap_or_default();
        api::query("/compare", &[("from", &from.to_string()), ("to", &to)])
    });
    match &*found.read() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
        Some(Ok(found)) if found.changes.is_empty() => {
            rsx! { p { class: "quiet pad", {words::checkpoints::NO_DIFFERENCE} } }
        }
        Some(Ok(found)) => {
            rsx! { Changes { changes: found.changes.clone(), total: found.total, notes: Vec::new() } }
        }
    }
}
