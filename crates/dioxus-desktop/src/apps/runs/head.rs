//! The top of a run: objective, state, usage against the budget, and result.

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::payload::run::Budget;
use shared_types::wire::{RunControl, RunDetails, RunLine, RunState};

use super::{KnownRun, back, on_press};
use crate::apps::files;
use crate::apps::settings::models::BudgetForm;
use crate::apps::viewer::Markdown;
use crate::clock;
use crate::file_kinds::icon_for;
use crate::format::{budget, cost, duration, run_state};
use crate::icons::Icon;
use crate::runs;
use crate::state::AppState;
use crate::undo;
use crate::undo_plan::{RevertKind, RevertPlan, RevertTarget};
use crate::widgets::{IconButton, button};
use crate::words;

pub(super) fn head(app_state: AppState, window: WindowId, known: &KnownRun) -> Element {
    // A recorded run is resumed with the button of the budget form.
    let KnownRun { details, is_recorded } = known;
    let line = &details.line;
    let run = line.run;
    let title = line.title.clone();
    let (word, class) = run_state(line.state);
    let objective = &details.objective;
    let over = line.state.is_over();
    let paused = line.state == RunState::Paused;
    let undone = line.undone;
    let revert = {
        let title = title.clone();
        let kind = if undone { RevertKind::Redo } else { RevertKind::Undo };
        move || {
            undo::open_dialog(
                app_state,
                RevertPlan::Revert { kind, target: RevertTarget::Run(run), label: title.clone() },
            )
        }
    };
    let mut facts = vec![clock::full(line.started)];
    if let Some(ended) = line.ended {
        facts.push(duration(u64::try_from(ended.millis() - line.started.millis()).unwrap_or_default()));
    }
    facts.push(words::steps(line.cost.turns));
    facts.push(cost(&line.cost));
    facts.extend(details.model.clone());
    facts.retain(|fact| !fact.is_empty());
    rsx! {
        header { class: "run-head",
            div { class: "line",
                span { class: "only-narrow", IconButton { icon: "chevron-left", label: words::runs::ALL_RUNS, onclick: move |_| back(window) } }
                h1 { class: if undone { "gone" } else { "" }, "{title}" }
                span { class, id: "run-state", "{word}" }
                if undone { span { class: "chip", {words::UNDONE} } }
            }
            if !objective.is_empty() && *objective != title {
                p { class: "objective", "{objective}" }
            }
            p { class: "quiet", {facts.join(" · ")} }
            if *is_recorded { {spent(&details.budget, line)} }
            div { class: "acts",
                if !over {
                    if paused && !is_recorded {
                        {button("btn pri", "play", words::runs::GO_ON, on_press(run, RunControl::Resume { budget: None }))}
                    } else if !paused {
                        {button("btn", "pause", words::runs::PAUSE, on_press(run, RunControl::Pause))}
                        {button("btn", "user", words::runs::TAKE_OVER, on_press(run, RunControl::TakeOver))}
                    }
                    {button("btn danger", "square", words::STOP, on_press(run, RunControl::Stop))}
                }
                if over && !app_state.runs.is_unrecorded(run) {
                    {button("btn", if undone { "redo-2" } else { "undo-2" }, if undone { {words::runs::REDO_RUN} } else { {words::runs::UNDO_RUN} }, revert)}
                }
            }
            if let Some(reason) = &line.reason {
                p { class: if paused { "note-line warn" } else { "note-line bad" }, role: "status", Icon { name: "triangle-alert" } span { "{reason}" } }
            }
            if paused && *is_recorded {
                details { class: "opens", open: true,
                    summary { {words::runs::BUDGET} }
                    BudgetForm {
                        value: details.budget,
                        verb: words::runs::GO_ON,
                        class: "btn pri",
                        onset: move |budget| runs::control(run, RunControl::Resume { budget: Some(budget) }),
                    }
                }
            }
        }
    }
}

/// How many of a hundred parts are taken.
pub(crate) fn share(taken: u64, most: u64) -> u64 {
    taken.saturating_mul(100).checked_div(most).unwrap_or_default().min(100)
}

/// Usage in percent of the limit that is closest to being reached.
fn spent(bounds: &Budget, line: &RunLine) -> Element {
    let part = |taken: u64, most: Option<u64>| share(taken, most.unwrap_or_default());
    let full = part(line.cost.micros, bounds.micros)
        .max(part(line.cost.tokens, bounds.tokens))
        .max(part(line.cost.turns, bounds.steps));
    rsx! {
        div { class: "spent",
            div { class: "meter", role: "meter", "aria-label": words::runs::SPENT, "aria-valuenow": "{full}", "aria-valuemin": "0", "aria-valuemax": "100",
                i { class: if full >= 90 { "w" } else { "a" }, width: "{full}%" }
            }
            small { {words::runs::spent_of(full, &budget(bounds))} }
        }
    }
}

/// The summary of a run and the files that it made.
pub(super) fn outcome(app_state: AppState, details: &RunDetails) -> Element {
    let summary = details.summary.clone().filter(|summary| !summary.is_empty());
    let results = &details.results;
    if summary.is_none() && results.is_empty() {
        return rsx! {};
    }
    rsx! {
        section { class: "outcome", "aria-label": words::runs::RESULT,
            if let Some(summary) = summary {
                Markdown { text: summary }
            }
            div { class: "acts",
                for path in results {
                    {button("btn", icon_for(path.name()), path.as_str(), {
                        let path = path.clone();
                        move || files::open_path(app_state, path.as_str())
                    })}
                }
            }
        }
    }
}
