//! The agents of a run as a tree, each with its current activity, and the form that sends a message to one of them.

use dioxus::prelude::*;
use shared_types::TaskId;
use shared_types::wire::{Agent, AgentState, RunControl, RunDetails, RunLine, RunState};

use super::on_press;
use crate::format::{agent_state, cost, origins, role_icon, role_name};
use crate::icons::Icon;
use crate::runs;
use crate::state::{AppState, app_state};
use crate::widgets::{SOME_WORDS, button};
use crate::words;

/// One press on an agent shows only its steps, another all of them again.
pub(super) fn tree(app_state: AppState, details: &RunDetails, only: Signal<Option<TaskId>>) -> Element {
    let mut rows = Vec::new();
    place(&details.agents, None, 0, &mut rows);
    if rows.is_empty() {
        let begins = !details.line.state.is_over();
        return rsx! {
            if begins { p { class: "quiet", role: "status", {words::runs::FIRST_AGENT_COMES} } }
        };
    }
    let line = &details.line;
    let mut from: Vec<String> =
        rows.iter().map(|(_, agent)| origins(&agent.taint)).filter(|from| !from.is_empty()).collect();
    from.sort();
    from.dedup();
    let from = from.join(", ");
    rsx! {
        h3 { {words::runs::AGENTS} }
        if !from.is_empty() && line.state.is_over() {
            p { class: "note-line", Icon { name: "info" } span { {words::runs::have_read(&from)} } }
        } else if !from.is_empty() {
            p { class: "note-line warn", Icon { name: "triangle-alert" } span { {words::runs::have_read_and_work(&from)} } }
        }
        ul { class: "agents",
            for (depth, agent) in rows { {row(app_state, line, depth, agent, only)} }
        }
    }
}

/// Parents before their children, as deep as they are.
fn place<'a>(agents: &'a [Agent], parent: Option<TaskId>, depth: usize, out: &mut Vec<(usize, &'a Agent)>) {
    let known = |task: &TaskId| agents.iter().any(|agent| agent.id == *task);
    for agent in agents {
        if agent.parent.filter(known) == parent && depth < 8 {
            out.push((depth, agent));
            place(agents, Some(agent.id), depth + 1, out);
        }
    }
}

fn row(
    app_state: AppState,
    line: &RunLine,
    depth: usize,
    agent: &Agent,
    mut only: Signal<Option<TaskId>>,
) -> Element {
    let task = agent.id;
    let on = *only.read() == Some(task);
    let working = agent.state == AgentState::Working;
    let paused = working && line.state == RunState::Paused;
    let (word, class) = agent_state(agent.state, paused);
    let words = app_state.runs.streamed.read().get(&task).cloned().unwrap_or_default();
    let trust = on_press(line.run, RunControl::Trust { task });
    rsx! {
        li { key: "{task}", class: if working && !paused { "agent working" } else { "agent" }, "data-depth": "{depth.min(4)}",
            button {
                class: if on { "go on" } else { "go" },
                "aria-pressed": on.to_string(),
                title: words::runs::ONLY_ITS_STEPS,
                onclick: move |_| only.set((!on).then_some(task)),
                Icon { name: role_icon(&agent.role) }
                span { class: "two",
                    b { {role_name(&agent.role)} span { class, "{word}" } }
                    small { {if working && !paused { agent.doing.as_str() } else { agent.title.as_str() }} }
                }
                small { class: "quiet", {cost(&agent.cost)} }
            }
            if !agent.taint.is_empty() && !line.state.is_over() {
                p { class: "note-line", span { {words::runs::READ_UNTRUSTED_TEXT} } {button("btn small", "", words::runs::TRUST, trust)} }
            }
            if working && !words.is_empty() {
                div { class: "words-live", "aria-live": "off", p { "{words}" } }
            }
        }
    }
}

/// Says something to an agent while it works.
#[component]
pub(super) fn Steer(details: RunDetails) -> Element {
    let mut words = use_signal(String::new);
    let app_state = app_state();
    let mut to = use_signal(|| None::<TaskId>);
    // Before the server has recorded the run there is no agent to steer.
    if details.line.state.is_over() || details.agents.is_empty() {
        return rsx! {};
    }
    let run = details.line.run;
    let working: Vec<&Agent> =
        details.agents.iter().filter(|agent| agent.state == AgentState::Working).collect();
    // A message to an agent that is done goes to the lead agent.
    let chosen = to.read().filter(|to| working.iter().any(|agent| agent.id == *to));
    let say = move |event: FormEvent| {
        event.prevent_default();
        let steer = RunControl::Steer { task: chosen, words: words.peek().trim().to_owned() };
        runs::control(run, steer);
        words.set(String::new());
    };
    rsx! {
        form { class: "bar steer", onsubmit: say,
            Icon { name: "corner-down-right" }
            input { class: "field", placeholder: words::runs::STEER_EXAMPLE, "aria-label": words::runs::STEER, required: true, pattern: SOME_WORDS, value: "{words}", oninput: move |e| words.set(e.value()) }
            select { "aria-label": words::runs::TO_WHOM, onchange: move |e| {
                if let Some(task) = app_state.read_choice(&e.value()) {
                    to.set(task);
                }
            },
                option { value: "", {words::runs::TO_LEAD} }
                for agent in &working {
                    option { key: "{agent.id}", value: "{agent.id}", selected: chosen == Some(agent.id), {words::runs::to_role(&agent.role)} }
                }
            }
            button { class: "btn", r#type: "submit", {words::runs::STEER} }
        }
    }
}
