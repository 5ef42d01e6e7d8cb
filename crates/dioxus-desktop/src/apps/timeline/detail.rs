//! One operation in full: who, when, and what it changed.

use dioxus::prelude::*;
use shared_types::OpId;
use shared_types::wire::OperationDetails;

use super::Log;
use super::command::{About, Badge, Settle};
use crate::api;
use crate::clock;
use crate::icons::Icon;
use crate::parts::{Changes, IconButton, LoadError, Loading, author, either};
use crate::state::app_state;
use crate::state::use_changes;
use crate::undo;
use crate::undo_plan::{Plan, Target, Way};
use crate::words;

#[component]
pub(crate) fn Detail(log: Log, op: OpId) -> Element {
    let app_state = app_state();
    let mut chosen = log.chosen;
    let changes = use_changes(move |change| change.is_of_operation(op));
    let detail = api::use_fetched::<OperationDetails>(move || {
        drop(changes.read());
        format!("/operations/{op}")
    });
    let body = match &*detail.read() {
        None => rsx! { Loading {} },
        // It was just begun, and the lists do not have it yet.
        Some(Err(failure)) if failure.status() == 404 => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
        Some(Ok(detail)) => {
            let row = detail.operation.clone();
            let way = if row.undone { Way::Redo } else { Way::Undo };
            let title = log.title(&row);
            let plan = Plan::Revert { way, target: Target::Op(op), label: title.clone() };
            let open = detail.call.as_ref().filter(|call| call.status.is_none());
            let restore = Plan::Restore { seq: row.last, label: words::quoted(&title) };
            rsx! {
                h3 {
                    if let Some(call) = row.call {
                        code { "{title}" }
                        Badge { call }
                    } else {
                        "{title}"
                    }
                }
                p { class: "quiet meta", i { class: author(row.source, &row.actor) } {words::timeline::about(&row.actor, &clock::full(row.ts), row.first, row.last)} }
                div { class: "acts",
                    if let Some(call) = open { Settle { op, held: call.dry_run_changes.is_some() } }
                    if row.reversible || row.undone {
                        button { class: "btn", onclick: move |_| undo::ask(app_state, plan.clone()), Icon { name: either(way == Way::Undo, "undo-2", "redo-2") } "{way.verb()}" }
                    }
                    if open.is_none() {
                        button { class: "btn", onclick: move |_| undo::ask(app_state, restore.clone()), Icon { name: "rotate-ccw" } {words::RESTORE_TO_HERE} }
                        button { class: "btn ghost", onclick: move |_| super::scrub::look(app_state, row.last), Icon { name: "eye" } {words::timeline::LOOK} }
                    }
                }
                if let Some(call) = detail.call.clone() {
                    About { op, call }
                }
                Changes { changes: detail.changes.clone(), total: detail.total, notes: detail.notes.clone() }
            }
        }
    };
    rsx! {
        aside { class: "detail scroll", "aria-label": words::timeline::DETAILS,
            IconButton { icon: "x", label: words::timeline::CLOSE_DETAILS, class: "corner", onclick: move |_| chosen.set(None) }
            {body}
        }
    }
}
