//! The dialog before an undo, a redo or a restore: a preview of the changes and, for each conflict, both sides to choose
//! from.

use dioxus::prelude::*;
use shared_types::Subject;
use shared_types::wire::{ChangeResult, ConflictView, Side};

use crate::dom;
use crate::icons::Icon;
use crate::state::app_state;
use crate::undo;
use crate::undo_plan::{RevertDialog, RevertKind, RevertPlan};
use crate::widgets::{Changes, Loading};
use crate::words;

#[component]
pub(crate) fn RevertDialogLayer() -> Element {
    let mut app_state = app_state();
    use_effect(move || {
        if app_state.revert_dialog.read().is_some() {
            dom::focus_soon("ask");
        }
    });
    let Some(dialog) = app_state.revert_dialog.read().clone() else { return rsx! {} };
    rsx! {
        div { class: "scrim", onpointerdown: move |_| app_state.revert_dialog.set(None) }
        RevertQuestion { dialog }
    }
}

#[component]
fn RevertQuestion(dialog: RevertDialog) -> Element {
    let mut app_state = app_state();
    let mut sides = use_signal(Vec::<Side>::new);
    let (title, verb) = match &dialog.plan {
        RevertPlan::Revert { kind, label, .. } => (words::undo::verb_of(kind.verb(), label), kind.verb()),
        RevertPlan::Restore { label, .. } => (words::undo::restore_to(label), words::undo::RESTORE),
    };
    let is_retry = matches!(dialog.plan, RevertPlan::Revert { kind: RevertKind::Retry, .. });
    let plan = dialog.plan.clone();
    let waiting = dialog.preview.is_none() && dialog.conflicts.is_empty();
    let conflicts = dialog.conflicts.iter().enumerate();
    let chosen: Vec<(Subject, Side)> =
        conflicts.map(|(index, conflict)| (conflict.subject.clone(), side(&sides.read(), index))).collect();
    rsx! {
        section { class: "dialog ask", id: "ask", tabindex: "-1", role: "dialog", "aria-modal": "true", "aria-label": "{title}",
            header { h2 { "{title}" } }
            div { class: "ask-body",
                if waiting {
                    Loading {}
                }
                if let Some(done) = dialog.preview.clone() {
                    {changes(done, is_retry)}
                }
                if !chosen.is_empty() {
                    p { class: "note-line", Icon { name: "triangle-alert" } {words::undo::CHANGED_SINCE} }
                    for (index, conflict) in dialog.conflicts.iter().enumerate() {
                        Conflict {
                            key: "{conflict.subject}",
                            conflict: conflict.clone(),
                            side: side(&sides.read(), index),
                            onside: move |chosen| {
                                let mut sides = sides.write();
                                let length = sides.len().max(index + 1);
                                sides.resize(length, Side::Keep);
                                sides[index] = chosen;
                            },
                        }
                    }
                    ChoicesPreview { plan: plan.clone(), chosen: chosen.clone(), is_retry }
                }
            }
            footer {
                span { class: "quiet", {if is_retry { words::undo::AGENTS_BEGIN_AGAIN } else { words::undo::CAN_BE_UNDONE }} }
                span { class: "sp" }
                button { class: "btn", onclick: move |_| app_state.revert_dialog.set(None), {words::CANCEL} }
                button { class: "btn pri", id: "ask-confirm", disabled: waiting, onclick: move |_| undo::confirm(app_state, plan.clone(), chosen.clone()), "{verb}" }
            }
        }
    }
}

fn changes(done: ChangeResult, is_retry: bool) -> Element {
    rsx! {
        if done.changes.is_empty() && done.notes.is_empty() {
            p { class: "quiet pad", {if is_retry { words::undo::NO_FILE_CHANGES } else { words::undo::NOTHING_WOULD_CHANGE }} }
        }
        Changes { changes: done.changes, total: done.total, notes: done.notes }
    }
}

/// A preview with the current choices. Keeping one end of a move also keeps the other.
#[component]
fn ChoicesPreview(plan: RevertPlan, chosen: Vec<(Subject, Side)>, is_retry: bool) -> Element {
    let outcome = use_resource(use_reactive!(|(plan, chosen)| undo::preview(plan, chosen)));
    rsx! {
        section { class: "foreseen", "aria-live": "polite",
            h3 { {words::undo::WITH_THESE_CHOICES} }
            match &*outcome.read() {
                None => rsx! { Loading {} },
                Some(Ok(done)) => changes(done.clone(), is_retry),
                Some(Err(failure)) => rsx! { p { class: "quiet pad", {failure.text()} } },
            }
        }
    }
}

/// The choice for a conflict; at first, to keep the present state.
fn side(chosen: &[Side], index: usize) -> Side {
    chosen.get(index).copied().unwrap_or(Side::Keep)
}

#[component]
fn Conflict(conflict: ConflictView, side: Side, onside: EventHandler<Side>) -> Element {
    let pane = |title: &'static str, text: Option<String>, mine: Side| {
        rsx! {
            button {
                class: if side == mine { "side on" } else { "side" },
                "aria-pressed": (side == mine).to_string(),
                onclick: move |_| onside.call(mine),
                b { "{title}" }
                pre { {text.unwrap_or_else(|| words::NOTHING.to_owned())} }
            }
        }
    };
    rsx! {
        div { class: "clash",
            h3 { "{conflict.subject}" }
            p { class: "quiet", "{conflict.reason}" }
            div { class: "sides",
                {pane(words::undo::KEEP_PRESENT, conflict.today.clone(), Side::Keep)}
                {pane(words::undo::TAKE_OTHER, conflict.undone.clone(), Side::Take)}
            }
        }
    }
}
