//! The agents of a run as a tree, each with what it does now; and the line in which the person speaks to them.

use dioxus::prelude::*;
use serde_json::Value;

use crate::choir;
use crate::choir::read::{cost, is_over, items, name, object, origins, sign, state, text};
use crate::desk::Desk;
use crate::icons::Icon;
use crate::parts::{SOME_WORDS, press};

/// One press on an agent shows only its steps, another all of them again.
pub(super) fn tree(desk: Desk, details: &Value, only: Signal<String>) -> Element {
    let mut rows = Vec::new();
    place(items(details, "agents"), "", 0, &mut rows);
    if rows.is_empty() {
        let begins = !is_over(&details["line"]);
        return rsx! {
            if begins { p { class: "quiet", role: "status", "The first agent is on its way." } }
        };
    }
    let line = &details["line"];
    let mut from: Vec<String> =
        rows.iter().map(|(_, agent)| origins(agent)).filter(|from| !from.is_empty()).collect();
    from.sort();
    from.dedup();
    let from = from.join(", ");
    rsx! {
        h3 { "Agents" }
        if !from.is_empty() && is_over(line) {
            p { class: "note-line", Icon { name: "info" } span { "They have read words from {from}." } }
        } else if !from.is_empty() {
            p { class: "note-line warn", Icon { name: "triangle-alert" } span { "They have read words from {from}, which may try to steer them. What cannot be undone is asked about first." } }
        }
        ul { class: "agents",
            for (depth, agent) in rows { {row(desk, line, depth, agent, only)} }
        }
    }
}

/// Parents before their children, as deep as they are.
fn place<'a>(agents: &'a [Value], parent: &str, depth: usize, out: &mut Vec<(usize, &'a Value)>) {
    let known = |task: &str| agents.iter().any(|agent| text(agent, "task") == task);
    for agent in agents {
        let above = text(agent, "parent");
        let above = if known(above) { above } else { "" };
        if above == parent && depth < 8 {
            out.push((depth, agent));
            place(agents, text(agent, "task"), depth + 1, out);
        }
    }
}

fn row(desk: Desk, line: &Value, depth: usize, agent: &Value, mut only: Signal<String>) -> Element {
    let task = text(agent, "task").to_owned();
    let role = text(agent, "role");
    let on = *only.read() == task;
    let working = text(agent, "state") == "working";
    // Nobody works in a run that stands still.
    let paused = working && text(line, "state") == "paused";
    let (word, class) = state(if paused { "paused" } else { text(agent, "state") });
    let said = desk.choir.said.read();
    let words = text(&said, &task).to_owned();
    let trust = {
        let (run, task) = (text(line, "run").to_owned(), task.clone());
        move || choir::gesture(&run, object(&[("trust", object(&[("task", task.as_str().into())]))]))
    };
    rsx! {
        li { key: "{task}", class: if working && !paused { "agent working" } else { "agent" }, "data-depth": "{depth.min(4)}",
            button {
                class: if on { "go on" } else { "go" },
                "aria-pressed": on.to_string(),
                title: "Show only its steps",
                onclick: move |_| only.set(if on { String::new() } else { task.clone() }),
                Icon { name: sign(role) }
                span { class: "two",
                    b { {name(role)} span { class, "{word}" } }
                    small { {if working && !paused { text(agent, "doing") } else { text(agent, "title") }} }
                }
                small { class: "quiet", {cost(&agent["cost"])} }
            }
            if !origins(agent).is_empty() && !is_over(line) {
                p { class: "note-line", span { "Has read such words." } {press("btn small", "", "Trust", trust)} }
            }
            if working && !words.is_empty() {
                div { class: "words-live", "aria-live": "off", p { "{words}" } }
            }
        }
    }
}

/// Says something to an agent while it works.
#[component]
pub(super) fn Steer(details: Value) -> Element {
    let mut words = use_signal(String::new);
    let mut to = use_signal(String::new);
    // Before the computer knows of the run there is nobody to hear anything.
    if is_over(&details["line"]) || items(&details, "agents").is_empty() {
        return rsx! {};
    }
    let run = text(&details["line"], "run").to_owned();
    let working: Vec<Value> =
        items(&details, "agents").iter().filter(|agent| text(agent, "state") == "working").cloned().collect();
    // Whoever is done hears nothing any more; whoever leads does.
    let hears = working.iter().any(|agent| text(agent, "task") == *to.read());
    let say = move |event: FormEvent| {
        event.prevent_default();
        let task = hears.then(|| to.peek().clone());
        let said = words.peek().trim().to_owned();
        choir::gesture(&run, object(&[("steer", object(&[("task", task.into()), ("words", said.into())]))]));
        words.set(String::new());
    };
    rsx! {
        form { class: "bar steer", onsubmit: say,
            Icon { name: "corner-down-right" }
            input { class: "field", placeholder: "Steer: say something while they work", "aria-label": "Steer", required: true, pattern: SOME_WORDS, value: "{words}", oninput: move |e| words.set(e.value()) }
            select { "aria-label": "To whom", onchange: move |e| to.set(e.value()),
                option { value: "", "to whoever leads" }
                for agent in &working {
                    option { key: "{text(agent, \"task\")}", value: text(agent, "task"), selected: text(agent, "task") == *to.read(), "to the {text(agent, \"role\")}" }
                }
            }
            button { class: "btn", r#type: "submit", "Steer" }
        }
    }
}
