//! The visible rows, all of one height, in a scrolled space as tall as all rows.

use dioxus::prelude::*;
use shared_types::wire::Operation;

use super::{OperationList, row_title};
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::menu::{Item, Menu};
use crate::state::app_state;
use crate::undo;
use crate::undo_plan::{RevertKind, RevertPlan, RevertTarget};
use crate::widgets::{Empty, author, choose_text};
use crate::words;

pub(crate) const ROW_HEIGHT: usize = 52;
const OVERSCAN_ROWS: usize = 8;
/// Pixels; browsers render nothing below some height. Older rows are reached with the filters.
const TALLEST: usize = 15_000_000;

#[component]
pub(crate) fn Rows(list: OperationList, top: Signal<usize>) -> Element {
    let mut top = top;
    let mut tall = use_signal(|| 900usize);
    let total = *list.total.read() as usize;
    let first = (top() / ROW_HEIGHT).saturating_sub(OVERSCAN_ROWS).min(total);
    let last = ((top() + tall()) / ROW_HEIGHT + OVERSCAN_ROWS).min(total);
    use_effect(move || {
        let first = (top() / ROW_HEIGHT).saturating_sub(OVERSCAN_ROWS);
        let last = (top() + tall()) / ROW_HEIGHT + OVERSCAN_ROWS;
        let total = *list.total.read() as usize;
        if total > 0 {
            list.ensure_loaded(first.min(total - 1), last.min(total - 1));
        }
    });
    let height = (total * ROW_HEIGHT).min(TALLEST);
    let mut chosen = list.chosen;
    let keydown = move |event: KeyboardEvent| {
        let at = (0..total).take(5000).find(|i| list.row(*i).map(|o| o.op) == *chosen.peek());
        let next = match dom::key(&event).as_str() {
            "ArrowDown" => at.map_or(0, |i| i + 1),
            "ArrowUp" => at.map_or(0, |i| i.saturating_sub(1)),
            "Escape" if chosen.peek().is_some() => {
                chosen.set(None);
                return;
            }
            _ => return,
        };
        event.prevent_default();
        if let Some(row) = list.row(next) {
            chosen.set(Some(row.op));
        }
    };
    rsx! {
        div {
            class: "ops scroll",
            role: "listbox",
            tabindex: "0",
            "aria-label": words::timeline::OPERATIONS,
            onkeydown: keydown,
            onscroll: move |event| {
                let now = event.data().scroll_top().max(0.0) as usize;
                if top.peek().abs_diff(now) >= ROW_HEIGHT / 2 {
                    top.set(now);
                    tall.set(event.data().client_height().max(0) as usize);
                }
            },
            if total == 0 {
                Empty { icon: "history", title: words::timeline::NOTHING_HERE, p { {words::timeline::NOTHING_HERE_MORE} } }
            }
            div { class: "space", height: "{height}px",
                div { class: "slab", top: "{first * ROW_HEIGHT}px",
                    for index in first..last {
                        if let Some(row) = list.row(index) {
                            Row { key: "{row.op}", on: *chosen.read() == Some(row.op), list, row }
                        } else {
                            div { key: "{index}", class: "op blank", i { class: "dot" } }
                        }
                    }
                }
            }
        }
    }
}

/// The second line of a row.
fn about(row: &Operation) -> String {
    let mut parts = Vec::new();
    if row.files > 0 {
        parts.push(words::files(row.files));
    }
    if row.call.is_some() {
        parts.push(words::timeline::RUNS_IN_CELL.to_owned());
    } else if row.events > row.files.max(1) {
        parts.push(words::timeline::events(row.events));
    }
    if parts.is_empty() {
        parts.push(row.family.clone());
    }
    parts.push(row.actor.clone());
    parts.join(" · ")
}

#[component]
fn Row(list: OperationList, row: Operation, on: bool) -> Element {
    let mut app_state = app_state();
    let mut chosen = list.chosen;
    let (op, seq) = (row.op, row.last);
    let kind = if row.undone { RevertKind::Redo } else { RevertKind::Undo };
    let can = row.reversible || row.undone;
    let title = row_title(&row);
    let plan = RevertPlan::Revert { kind, target: RevertTarget::Op(op), label: title.clone() };
    let restore = RevertPlan::Restore { seq, label: words::quoted(&title) };
    let (menu_plan, menu_restore) = (plan.clone(), restore.clone());
    let class = format!("op {} {}", if on { "on" } else { "" }, if row.undone { "undone" } else { "" });
    rsx! {
        div {
            class,
            role: "option",
            "aria-selected": on.to_string(),
            "data-op": "{op}",
            onclick: move |_| chosen.set(if on { None } else { Some(op) }),
            oncontextmenu: move |event| {
                event.prevent_default();
                event.stop_propagation();
                let at = event.client_coordinates();
                let mut items = Vec::new();
                if can {
                    let plan = menu_plan.clone();
                    items.push(Item::new(if kind == RevertKind::Undo { "undo-2" } else { "redo-2" }, words::timeline::ask_first(kind.verb()), move || undo::open_dialog(app_state, plan.clone())));
                }
                let restore = menu_restore.clone();
                items.push(Item::new("rotate-ccw", words::timeline::RESTORE_TO_HERE_ASK, move || undo::open_dialog(app_state, restore.clone())));
                items.push(Item::new("eye", words::timeline::LOOK_AT_DESKTOP, move || super::scrub::look(app_state, seq)));
                app_state.menu.set(Some(Menu::at(at.x, at.y, items)));
            },
            i { class: author(row.source, &row.actor) }
            div { class: "words",
                div { class: if row.call.is_some() { "w cmd" } else { "w" },
                    if let Some(call) = row.call {
                        Icon { name: "square-terminal" }
                        code { "{title}" }
                        super::command::CallBadge { call }
                    } else {
                        "{title}"
                    }
                    if row.undone { span { class: "chip", {words::UNDONE} } }
                }
                div { class: "d", "{about(&row)}" }
            }
            div { class: "side",
                time { title: "{clock::full(row.ts)}", "{clock::when(row.ts)}" }
                span { class: "acts",
                    if can {
                        button {
                            class: "btn small",
                            "aria-label": words::timeline::verb_on(kind.verb(), &title),
                            onclick: move |event| {
                                event.stop_propagation();
                                undo::open_dialog(app_state, plan.clone());
                            },
                            Icon { name: choose_text(kind == RevertKind::Undo, "undo-2", "redo-2") }
                            "{kind.verb()}"
                        }
                    }
                    button {
                        class: "btn small",
                        "aria-label": words::RESTORE_TO_HERE,
                        title: words::RESTORE_TO_HERE,
                        onclick: move |event| {
                            event.stop_propagation();
                            undo::open_dialog(app_state, restore.clone());
                        },
                        Icon { name: "rotate-ccw" }
                    }
                }
            }
        }
    }
}
