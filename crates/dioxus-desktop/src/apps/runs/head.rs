//! The top of a run: what was asked, how it stands, what it took of what it may take, and how it ended.

use dioxus::prelude::*;
use serde_json::Value;
use shared_types::WindowId;

use super::{back, does};
use crate::apps::files;
use crate::apps::files::markdown::Markdown;
use crate::apps::settings::models::Budget;
use crate::choir::read::{allows, cost, is, is_over, items, lasted, moment, number, object, state, text};
use crate::choir::{self};
use crate::clock;
use crate::desk::Desk;
use crate::icons::Icon;
use crate::parts::{IconButton, press};
use crate::undo::{self, Plan, Target, Way};

pub(super) fn head(desk: Desk, window: WindowId, details: &Value) -> Element {
    let line = &details["line"];
    let run = text(line, "run").to_owned();
    let title = text(line, "title").to_owned();
    let (word, class) = state(text(line, "state"));
    let objective = text(details, "objective");
    let over = is_over(line);
    let paused = text(line, "state") == "paused";
    // Then it goes on by the button below its bounds.
    let bounded = details.get("budget").is_some();
    let taken_back = is(line, "undone");
    let revert = {
        let (run, title) = (run.clone(), title.clone());
        let way = if taken_back { Way::Redo } else { Way::Undo };
        move || {
            if let Ok(run) = run.parse() {
                undo::ask(desk, Plan::Revert { way, target: Target::Run(run), label: title.clone() });
            }
        }
    };
    let mut facts = vec![clock::full(moment(line, "started"))];
    if over {
        facts.push(lasted(number(line, "ended").saturating_sub(number(line, "started"))));
    }
    facts.push(clock::plural(number(&line["cost"], "steps"), "step"));
    facts.push(cost(&line["cost"]));
    facts.push(text(details, "model").to_owned());
    facts.retain(|fact| !fact.is_empty());
    let reason = text(line, "reason").to_owned();
    rsx! {
        header { class: "run-head",
            div { class: "line",
                span { class: "only-narrow", IconButton { icon: "chevron-left", label: "All runs", onclick: move |_| back(window) } }
                h1 { class: if taken_back { "gone" } else { "" }, "{title}" }
                span { class, id: "run-state", "{word}" }
                if taken_back { span { class: "chip", "undone" } }
            }
            if !objective.is_empty() && objective != title {
                p { class: "objective", "{objective}" }
            }
            p { class: "quiet", {facts.join(" · ")} }
            {spent(&details["budget"], line)}
            div { class: "acts",
                if !over {
                    if paused && !bounded {
                        {press("btn pri", "play", "Go on", {
                            let run = run.clone();
                            move || choir::gesture(&run, object(&[("resume", object(&[]))]))
                        })}
                    } else if !paused {
                        {press("btn", "pause", "Pause", does(&run, "pause"))}
                        {press("btn", "user", "Take over", does(&run, "take_over"))}
                    }
                    {press("btn danger", "square", "Stop", does(&run, "stop"))}
                }
                if over && number(line, "seq") > 0 {
                    {press("btn", if taken_back { "redo-2" } else { "undo-2" }, if taken_back { "Redo the run" } else { "Undo the run" }, revert)}
                }
            }
            if !reason.is_empty() {
                p { class: if paused { "note-line warn" } else { "note-line bad" }, role: "status", Icon { name: "triangle-alert" } span { "{reason}" } }
            }
            if paused && bounded {
                details { class: "opens", open: true,
                    summary { "What it may take" }
                    Budget {
                        value: details["budget"].clone(),
                        verb: "Go on",
                        onset: move |budget: Value| choir::gesture(&run, object(&[("resume", object(&[("budget", budget)]))])),
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

/// How much is taken of what may be taken: of the bound that is nearest.
fn spent(budget: &Value, line: &Value) -> Element {
    let taken = |key: &str| number(&line["cost"], key);
    let part = |key: &str| share(taken(key), number(budget, key));
    let full = part("micros").max(part("tokens")).max(part("steps"));
    if budget.as_object().is_none_or(|bounds| bounds.is_empty()) {
        return rsx! {};
    }
    rsx! {
        div { class: "spent",
            div { class: "meter", role: "meter", "aria-label": "Spent", "aria-valuenow": "{full}", "aria-valuemin": "0", "aria-valuemax": "100",
                i { class: if full >= 90 { "w" } else { "a" }, width: "{full}%" }
            }
            small { "{full}% of " {allows(budget)} }
        }
    }
}

/// What the person was told at the end, and what there is to open.
pub(super) fn outcome(desk: Desk, details: &Value) -> Element {
    let summary = text(details, "summary").to_owned();
    let results = items(details, "results");
    if summary.is_empty() && results.is_empty() {
        return rsx! {};
    }
    rsx! {
        section { class: "outcome", "aria-label": "Result",
            if !summary.is_empty() {
                div { class: "read", Markdown { text: summary } }
            }
            div { class: "acts",
                for path in results.iter().filter_map(Value::as_str) {
                    {press("btn", files::icon_for(path), path, {
                        let path = path.to_owned();
                        move || files::open_path(desk, &path)
                    })}
                }
            }
        }
    }
}
