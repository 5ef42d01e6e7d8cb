//! One operation in full: who, when, and what it changed.

use dioxus::prelude::*;
use shared_types::OpId;
use shared_types::wire::OperationDetail;

use super::Log;
use crate::api;
use crate::clock;
use crate::desk::desk;
use crate::icons::Icon;
use crate::parts::{Changes, IconButton, Trouble, Waiting, author, either};
use crate::undo::{self, Plan, Way};

#[component]
pub(crate) fn Detail(log: Log, op: OpId) -> Element {
    let desk = desk();
    let mut chosen = log.chosen;
    let detail = api::use_fetched(
        move || drop(desk.projected.read()),
        move || async move { api::get::<OperationDetail>(&format!("/operations/{op}")).await },
    );
    let body = match &*detail.read() {
        None => rsx! { Waiting {} },
        Some(Err(failure)) => rsx! { Trouble { failure: failure.clone() } },
        Some(Ok(detail)) => {
            let row = detail.operation.clone();
            let way = if row.undone { Way::Redo } else { Way::Undo };
            let title = log.title(&row);
            let plan = Plan::Revert { way, op, label: title.clone() };
            let restore = Plan::Restore { seq: row.last, label: format!("“{title}”") };
            rsx! {
                h3 { "{title}" }
                p { class: "quiet meta", i { class: author(row.source, &row.actor) } "{row.actor} · {clock::full(row.ts)} · events {row.first}–{row.last}" }
                div { class: "acts",
                    if row.reversible || row.undone {
                        button { class: "btn", onclick: move |_| undo::ask(desk, plan.clone()), Icon { name: either(way == Way::Undo, "undo-2", "redo-2") } "{way.verb()}" }
                    }
                    button { class: "btn", onclick: move |_| undo::ask(desk, restore.clone()), Icon { name: "rotate-ccw" } "Restore to here" }
                    button { class: "btn ghost", onclick: move |_| super::scrub::look(desk, row.last), Icon { name: "eye" } "Look" }
                }
                Changes { changes: detail.changes.clone(), total: detail.total, notes: detail.notes.clone() }
            }
        }
    };
    rsx! {
        aside { class: "detail scroll", "aria-label": "Details",
            IconButton { icon: "x", label: "Close the details", class: "corner", onclick: move |_| chosen.set(None) }
            {body}
        }
    }
}
