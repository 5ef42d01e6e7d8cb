//! The steps of a run, the newest first, in groups by agent. Only those in sight are in the document; what went in and
//! what came out of one is read when it is opened.

use dioxus::prelude::*;
use serde_json::Value;
use shared_types::Seq;

use crate::api::{self, Answer};
use crate::apps;
use crate::choir::read::{cost, is, items, moment, name, number, sign, text};
use crate::clock;
use crate::desk::{Desk, desk};
use crate::dom;
use crate::icons::Icon;
use crate::parts::{IconButton, Trouble, Waiting, press};
use crate::undo::{self, Plan, Target, Way};

const ROW: usize = 36;
const SPARE: usize = 10;

/// Everything of a run in one scroll: what is above its steps, and the steps.
#[component]
pub(super) fn Steps(
    run: String,
    details: Value,
    only: Signal<String>,
    chosen: Signal<u64>,
    above: Element,
) -> Element {
    let mut chosen = chosen;
    let mut top = use_signal(|| 0usize);
    let mut tall = use_signal(|| 900usize);
    let mut turn = use_signal(|| 0u32);
    let mut kept = use_hook(|| CopyValue::new(Value::Array(Vec::new())));
    drop(turn.read());
    let (steps, hidden) = merge(&mut kept.write(), &details, &only.read());
    let total = steps.len();
    let first = (top() / ROW).saturating_sub(SPARE).min(total);
    let last = ((top() + tall()) / ROW + SPARE).min(total);
    let place = format!("steps-{run}");
    let space = place.clone();
    let numbers: Vec<u64> = steps.iter().map(|step| number(step, "seq")).collect();
    let keydown = move |event: KeyboardEvent| {
        let at = numbers.iter().position(|seq| *seq == *chosen.peek());
        let next = match dom::key(&event).as_str() {
            "ArrowDown" => at.map_or(0, |i| i + 1),
            "ArrowUp" => at.map_or(0, |i| i.saturating_sub(1)),
            "Escape" if at.is_some() => {
                event.stop_propagation();
                return chosen.set(0);
            }
            _ => return,
        };
        event.prevent_default();
        if let Some(seq) = numbers.get(next) {
            chosen.set(*seq);
            dom::reveal(&format!("step-{seq}"));
        }
    };
    let oldest = kept.read().as_array().and_then(|all| all.first()).map(|step| number(step, "seq"));
    let more = move || {
        let run = run.clone();
        spawn(async move {
            let before = oldest.unwrap_or_default();
            let answer: Answer<Value> = api::get(&format!("/runs/{run}/steps?before={before}")).await;
            match answer {
                Ok(Value::Array(mut older)) => {
                    if let Some(kept) = kept.write().as_array_mut() {
                        older.append(kept);
                        *kept = older;
                    }
                    *turn.write() += 1;
                }
                Ok(_) => {}
                Err(failure) => desk().fail(&failure),
            }
        });
    };
    rsx! {
        div {
            class: "run-scroll scroll",
            onscroll: move |event| {
                let above = dom::by_id(&place).map(|space| space.offset_top()).unwrap_or_default();
                let now = (event.data().scroll_top() as i32 - above).max(0) as usize;
                if top.peek().abs_diff(now) >= ROW {
                    top.set(now);
                    tall.set(event.data().client_height().max(0) as usize);
                }
            },
            {above}
            if total > 0 {
                h3 { "Steps" if !only.read().is_empty() { " of one agent" } }
            }
            div { class: "space steps", id: "{space}", role: "listbox", tabindex: "0", "aria-label": "Steps, newest first", height: "{total * ROW}px", onkeydown: keydown,
                div { class: "slab", top: "{first * ROW}px",
                    for index in first..last {
                        {row(&details, &steps[index], index.checked_sub(1).and_then(|above| steps.get(above)), chosen)}
                    }
                }
            }
            if hidden > 0 {
                {press("btn ghost wide", "", format!("Show {} earlier", clock::plural(hidden, "step")), more)}
            }
        }
    }
}

/// Puts the newest steps beside those that were read before; says which are shown, the newest first, and how many are
/// not here.
fn merge(kept: &mut Value, details: &Value, only: &str) -> (Vec<Value>, u64) {
    let newest = items(details, "steps");
    let from = newest.first().map_or(u64::MAX, |step| number(step, "seq"));
    let Some(kept) = kept.as_array_mut() else { return (Vec::new(), 0) };
    if from < u64::MAX {
        kept.retain(|step| number(step, "seq") < from);
    }
    let before = kept.len() as u64;
    let hidden = number(details, "earlier").saturating_sub(before);
    kept.extend(newest.iter().cloned());
    let fits = |step: &&Value| only.is_empty() || text(step, "task") == only;
    (kept.iter().rev().filter(fits).cloned().collect(), hidden)
}

fn row(details: &Value, step: &Value, above: Option<&Value>, mut chosen: Signal<u64>) -> Element {
    let seq = number(step, "seq");
    let on = *chosen.read() == seq;
    let task = text(step, "task");
    let role = items(details, "agents").iter().find(|agent| text(agent, "task") == task);
    let role = role.map(|agent| text(agent, "role")).unwrap_or_default();
    let begins = above.is_none_or(|above| text(above, "task") != task);
    let class = format!(
        "step{}{}{}{}",
        if on { " on" } else { "" },
        if begins { " first" } else { "" },
        if is(step, "undone") { " undone" } else { "" },
        if is(step, "failed") { " failed" } else { "" },
    );
    let icon = match text(step, "kind") {
        "reply" => "sparkles",
        "call" => "square-terminal",
        "message" => "corner-down-right",
        "ask" => "circle-help",
        _ => "chevron-right",
    };
    let files = number(step, "files");
    rsx! {
        div {
            key: "{seq}",
            id: "step-{seq}",
            class,
            role: "option",
            "aria-selected": on.to_string(),
            onclick: move |_| chosen.set(if on { 0 } else { seq }),
            span { class: "who", if begins { Icon { name: sign(role) } {if role.is_empty() { "Run".to_owned() } else { name(role) }} } }
            Icon { name: icon }
            span { class: "w", {text(step, "label")} }
            if is(step, "failed") { span { class: "chip bad", "failed" } }
            if is(step, "undone") { span { class: "chip", "undone" } }
            if files > 0 { span { class: "chip", {clock::plural(files, "file")} } }
            small { {cost(&step["cost"])} }
            time { {clock::time(moment(step, "ts"))} }
        }
    }
}

/// What went into a step and what came out of it.
#[component]
pub(super) fn Parts(run: String, beat: u64, chosen: Signal<u64>) -> Element {
    let desk = desk();
    let mut chosen = chosen;
    let seq = *chosen.peek();
    let mut now = use_signal(|| beat);
    if *now.peek() != beat {
        now.set(beat);
    }
    let of = run.clone();
    let parts = api::use_fetched::<Value>(move || {
        drop(now.read());
        format!("/runs/{of}/steps/{seq}")
    });
    let body = match &*parts.read() {
        None => rsx! { Waiting {} },
        Some(Err(failure)) => rsx! { Trouble { failure: failure.clone() } },
        Some(Ok(parts)) => {
            let step = &parts["step"];
            rsx! {
                h3 { {text(step, "label")} }
                p { class: "quiet", {clock::full(moment(step, "ts"))} " · event {seq}" }
                {acts(desk, &run, step)}
                for note in items(parts, "notes").iter().filter_map(Value::as_str) {
                    p { class: "note-line", Icon { name: "info" } "{note}" }
                }
                {part("Given", text(parts, "input"))}
                {part("Came back", text(parts, "output"))}
            }
        }
    };
    rsx! {
        aside { class: "detail scroll", "aria-label": "Step",
            IconButton { icon: "x", label: "Close the step", class: "corner", onclick: move |_| chosen.set(0) }
            {body}
        }
    }
}

fn part(title: &str, words: &str) -> Element {
    if words.is_empty() {
        return rsx! {};
    }
    rsx! {
        h4 { "{title}" }
        pre { class: "output scroll", tabindex: "0", "aria-label": "{title}", "{words}" }
    }
}

/// What can be done to a step: a turn and a call can be tried again, and a call is an operation of its own.
fn acts(desk: Desk, run: &str, step: &Value) -> Element {
    let label = text(step, "label").to_owned();
    let (run, seq) = (run.parse(), Seq(number(step, "seq")));
    let again = (matches!(text(step, "kind"), "reply" | "call") && !is(step, "undone")).then(|| {
        let label = label.clone();
        let retry = move || {
            if let Ok(run) = run {
                let (way, target) = (Way::Retry, Target::Step(run, seq));
                undo::ask(desk, Plan::Revert { way, target, label: label.clone() });
            }
        };
        press("btn", "rotate-ccw", Way::Retry.verb(), retry)
    });
    let Ok(op) = text(step, "op").parse() else {
        return rsx! {
            div { class: "acts", {again} }
        };
    };
    let way = if is(step, "undone") { Way::Redo } else { Way::Undo };
    let revert = move || undo::ask(desk, Plan::Revert { way, target: Target::Op(op), label: label.clone() });
    let look = move || {
        if let Some(app) = apps::find("timeline") {
            desk.open(app, Some(&op.to_string()));
        }
    };
    rsx! {
        div { class: "acts",
            if number(step, "files") > 0 {
                {press("btn", if way == Way::Undo { "undo-2" } else { "redo-2" }, way.verb(), revert)}
            }
            {again}
            {press("btn ghost", "history", "In the timeline", look)}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn details(steps: std::ops::Range<u64>, earlier: u64) -> Value {
        let steps: Vec<Value> =
            steps.map(|seq| json!({ "seq": seq, "task": if seq % 2 == 0 { "a" } else { "b" } })).collect();
        json!({ "steps": steps, "earlier": earlier })
    }

    #[test]
    fn the_newest_steps_join_those_that_were_read_before() {
        let mut kept = Value::Array(Vec::new());
        let (shown, hidden) = merge(&mut kept, &details(3..6, 2), "");
        assert_eq!(shown.iter().map(|step| number(step, "seq")).collect::<Vec<_>>(), [5, 4, 3]);
        assert_eq!(hidden, 2);
        let (shown, hidden) = merge(&mut kept, &details(5..8, 4), "");
        assert_eq!(shown.iter().map(|step| number(step, "seq")).collect::<Vec<_>>(), [7, 6, 5, 4, 3]);
        assert_eq!(hidden, 2, "two of the four were read before");
        let (shown, _) = merge(&mut kept, &details(5..8, 4), "a");
        assert_eq!(shown.iter().map(|step| number(step, "seq")).collect::<Vec<_>>(), [6, 4]);
        let (shown, _) = merge(&mut kept, &json!({}), "");
        assert_eq!(shown.len(), 5, "nothing is lost while it is read again");
    }
}
