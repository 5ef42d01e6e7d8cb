//! Runs: what the choir does and did. A list of runs beside one of them in full: its agents, live, every step with
//! what went in and what came out, and all that the person can do to it.

mod agents;
mod head;
mod steps;

pub(crate) use head::share;

use dioxus::prelude::*;
use serde_json::Value;
use shared_types::WindowId;

use crate::api::{self, Answer};
use crate::choir;
use crate::choir::read::{cost, is, items, moment, number, object, state, text};
use crate::clock;
use crate::desk::desk;
use crate::desktop::{cards, prompt};
use crate::parts::{Empty, Trouble, Waiting, press};

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let desk = desk();
    let choir = desk.choir;
    let mut older = use_signal(|| Value::Array(Vec::new()));
    let mut before = use_signal(|| 0u64);
    let lines: Vec<Value> = {
        let (runs, older) = (choir.runs.read(), older.read());
        runs.as_array().into_iter().chain(older.as_array()).flatten().cloned().collect()
    };
    // Shown beside the list, the newest needs no asking for; shown instead of it, the list comes first.
    let chosen = shows.clone().filter(|run| !run.is_empty());
    let newest = lines.first().map(|line| text(line, "run").to_owned());
    let run = chosen.clone().or(newest);
    let next = match before() {
        0 => *choir.before.read(),
        further => further,
    };
    if lines.is_empty() && run.is_none() {
        return rsx! {
            Empty { icon: "sparkles", title: "Nothing has been asked yet",
                p { "Say what the choir should do. It works in the open: each step can be seen, stopped and undone." }
                {press("btn pri", "sparkles", "Ask the choir", prompt::open)}
            }
        };
    }
    let more = move || {
        spawn(async move {
            let answer: Answer<Value> = api::get(&format!("/runs?before={next}")).await;
            match answer {
                Ok(list) => {
                    // What comes after the last page is never asked for.
                    before.set(number(&list, "before").max(1));
                    if let Some(all) = older.write().as_array_mut() {
                        all.extend(items(&list, "runs").iter().cloned());
                    }
                }
                Err(failure) => desk.fail(&failure),
            }
        });
    };
    rsx! {
        div { class: if chosen.is_some() { "runs one" } else { "runs" },
            nav { class: "rail scroll", "aria-label": "Runs",
                {press("btn wide", "sparkles", "Ask the choir", prompt::open)}
                for line in lines.iter() {
                    {entry(window, line, run.as_deref() == Some(text(line, "run")))}
                }
                if next > 1 {
                    {press("btn ghost wide", "", "Older runs", more)}
                }
            }
            if let Some(run) = run {
                One { key: "{run}", window, run }
            }
        }
    }
}

/// A line of the list.
fn entry(window: WindowId, line: &Value, on: bool) -> Element {
    let desk = desk();
    let run = text(line, "run").to_owned();
    let (word, class) = state(text(line, "state"));
    let asks = number(line, "asks");
    rsx! {
        button {
            key: "{run}",
            class: if on { "entry on" } else { "entry" },
            "aria-current": on.then_some("true"),
            onclick: move |_| desk.change(window, |w| w.shows = Some(run.as_str().into())),
            b { class: if is(line, "undone") { "gone" } else { "" }, {text(line, "title")} }
            span {
                span { class, "{word}" }
                if asks > 0 { span { class: "chip warn", {clock::plural(asks, "question")} } }
                if is(line, "undone") { span { class: "chip", "undone" } }
            }
            small { "{clock::when(moment(line, \"started\"))} " {cost(&line["cost"])} }
        }
    }
}

/// One run.
#[component]
fn One(window: WindowId, run: String) -> Element {
    let desk = desk();
    let choir = desk.choir;
    let id = run.clone();
    let beat = use_memo(move || choir.beat(&id));
    let path = format!("/runs/{run}");
    let details = api::use_fetched::<Value>(move || {
        drop(beat.read());
        path.clone()
    });
    let chosen = use_signal(|| 0u64);
    let only = use_signal(String::new);
    let known = details.read();
    let details = match &*known {
        Some(Ok(details)) => details.clone(),
        // It was just begun, and the server may not have it yet.
        Some(Err(failure)) if failure.status() != 404 => return rsx! { Trouble { failure: failure.clone() } },
        Some(Err(_)) | None => match choir.line(&run) {
            Some(line) => object(&[("line", line)]),
            // Nor will it ever.
            None => match &*known {
                Some(Err(failure)) => return rsx! { Trouble { failure: failure.clone() } },
                Some(Ok(_)) | None => return rsx! { Waiting {} },
            },
        },
    };
    let questions = items(&details, "questions").to_vec();
    let body = rsx! {
        {head::head(desk, window, &details)}
        for question in questions {
            cards::Card { key: "{text(&question, \"ask\")}", question }
        }
        {head::outcome(desk, &details)}
        {agents::tree(desk, &details, only)}
    };
    rsx! {
        div { class: "one-run",
            div { class: "split",
                steps::Steps { run: run.clone(), details: details.clone(), only, chosen, above: body }
                if chosen() > 0 {
                    steps::Parts { key: "{chosen}", run: run.clone(), beat: *beat.read(), chosen }
                }
            }
            agents::Steer { details: details.clone() }
        }
    }
}

/// Where a run was not chosen yet, the list is all there is.
fn back(window: WindowId) {
    desk().change(window, |w| w.shows = None);
}

/// What the person does to a run, by a word.
fn does(run: &str, what: &'static str) -> impl Fn() + 'static {
    let run = run.to_owned();
    move || choir::gesture(&run, what.into())
}
