//! One operation in full: author, time and changes.

use dioxus::prelude::*;
use shared_types::OpId;
use shared_types::wire::OperationDetails;

use super::command::{CallBadge, CallInfo, CommandButtons};
use super::{OperationList, row_title};
use crate::api;
use crate::clock;
use crate::icons::Icon;
use crate::state::app_state;
use crate::state::use_changes;
use crate::undo;
use crate::undo_plan::{RevertKind, RevertPlan, RevertTarget};
use crate::widgets::{Changes, IconButton, LoadError, Loading, author, choose_text};
use crate::words;

#[component]
pub(crate) fn Detail(list: OperationList, op: OpId) -> Element {
    let app_state = app_state();
    let mut chosen = list.chosen;
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
            let kind = if row.undone { RevertKind::Redo } else { RevertKind::Undo };
            let title = row_title(&row);
            let plan = RevertPlan::Revert { kind, target: RevertTarget::Op(op), label: title.clone() };
            let open = detail.call.as_ref().filter(|call| call.status.is_none());
            let restore = RevertPlan::Restore { seq: row.last, label: words::quoted(&title) };
            rsx! {
                h3 {
                    if let Some(call) = row.call {
                        code { "{title}" }
                        CallBadge { call }
                    } else {
                        "{title}"
                    }
                }
                p { class: "quiet meta", i { class: author(row.source, &row.actor) } {words::timeline::about(&row.actor, &clock::full(row.ts), row.first, row.last)} }
                div { class: "acts",
                    if let Some(call) = open { CommandButtons { op, held: call.dry_run_changes.is_some() } }
                    if row.reversible || row.undone {
                        button { class: "btn", onclick: move |_| undo::open_dialog(app_state, plan.clone()), Icon { name: choose_text(kind == RevertKind::Undo, "undo-2", "redo-2") } "{kind.verb()}" }
                    }
                    if open.is_none() {
                        button { class: "btn", onclick: move |_| undo::open_dialog(app_state, restore.clone()), Icon { name: "rotate-ccw" } {words::RESTORE_TO_HERE} }
                        button { class: "btn ghost", onclick: move |_| super::scrub::look(app_state, row.last), Icon { name: "eye" } {words::timeline::LOOK} }
                    }
                }
                if let Some(call) = detail.call.clone() {
                    CallInfo { op, call }
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
