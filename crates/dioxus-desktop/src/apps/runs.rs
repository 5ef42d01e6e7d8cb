//! Runs: a list of runs, and one of them in full, with its agents, its steps with input and output, and its controls.

mod agents;
mod head;
mod steps;

pub(crate) use head::share;

use dioxus::prelude::*;
use shared_types::payload::run::Budget;
use shared_types::wire::{RunControl, RunDetails, RunLine, RunList};
use shared_types::{RunId, Seq, TaskId, WindowId};

use crate::api::{self, ApiResult};
use crate::clock;
use crate::dom;
use crate::format::{cost, run_state};
use crate::question_cards::Card;
use crate::runs;
use crate::state::app_state;
use crate::widgets::{Empty, LoadError, Loading, button};
use crate::words;

/// How far back the list of older runs reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
enum OlderRuns {
    NotAsked,
    Before(Seq),
    AllThere,
}

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let app_state = app_state();
    let state = app_state.runs;
    let mut older = use_signal(Vec::<RunLine>::new);
    let mut reach = use_signal(|| OlderRuns::NotAsked);
    let chosen = match shows.as_deref().filter(|run| !run.is_empty()).map(str::parse::<RunId>).transpose() {
        Ok(chosen) => chosen,
        Err(error) => {
            return rsx! { Empty { icon: "triangle-alert", title: words::runs::NOT_A_RUN, p { "{error}" } } };
        }
    };
    let lines: Vec<RunLine> = state.newest.read().iter().chain(&*older.read()).cloned().collect();
    // On a wide screen the newest run is selected; on a narrow one the list is shown first.
    let run = chosen.or(lines.first().map(|line| line.run));
    let next = match reach() {
        OlderRuns::NotAsked => *state.before.read(),
        OlderRuns::Before(seq) => Some(seq),
        OlderRuns::AllThere => None,
    };
    if lines.is_empty() && run.is_none() {
        return rsx! {
            Empty { icon: "sparkles", title: words::runs::NONE_YET,
                p { {words::runs::NONE_YET_MORE} }
                {button("btn pri", "sparkles", words::runs::ASK, dom::focus_prompt)}
            }
        };
    }
    let more = move |before: Seq| {
        spawn(async move {
            let answer: ApiResult<RunList> = api::get(&format!("/runs?before={before}")).await;
            match answer {
                Ok(list) => {
                    reach.set(list.before.map_or(OlderRuns::AllThere, OlderRuns::Before));
                    older.write().extend(list.runs);
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        div { class: if chosen.is_some() { "runs one" } else { "runs" },
            nav { class: "rail scroll", "aria-label": words::runs::RUNS,
                {button("btn wide", "sparkles", words::runs::ASK, dom::focus_prompt)}
                for line in lines.iter() {
                    {run_row(window, line, run == Some(line.run))}
                }
                if let Some(before) = next {
                    {button("btn ghost wide", "", words::runs::OLDER, move || more(before))}
                }
            }
            if let Some(run) = run {
                RunPage { key: "{run}", window, run }
            }
        }
    }
}

/// A row of the list.
fn run_row(window: WindowId, line: &RunLine, on: bool) -> Element {
    let app_state = app_state();
    let run = line.run;
    let (word, class) = run_state(line.state);
    rsx! {
        button {
            key: "{run}",
            class: if on { "entry on" } else { "entry" },
            "aria-current": on.then_some("true"),
            onclick: move |_| app_state.change(window, |w| w.shows = Some(run.to_string().into())),
            b { class: if line.undone { "gone" } else { "" }, "{line.title}" }
            span {
                span { class, "{word}" }
                if line.open_questions > 0 { span { class: "chip warn", {words::runs::questions(line.open_questions)} } }
                if line.undone { span { class: "chip", {words::UNDONE} } }
            }
            small { "{clock::when(line.started)} " {cost(&line.cost)} }
        }
    }
}

/// A run as this tab knows it.
#[derive(Debug, Clone, PartialEq)]
struct KnownRun {
    details: RunDetails,
    /// Whether the details came from the server; else the run was just started here.
    is_recorded: bool,
}

impl KnownRun {
    fn just_started(line: RunLine) -> Self {
        let details = RunDetails {
            line,
            objective: String::new(),
            model: None,
            budget: Budget::default(),
            agents: Vec::new(),
            questions: Vec::new(),
            steps: Vec::new(),
            earlier: 0,
            summary: None,
            results: Vec::new(),
        };
        Self { details, is_recorded: false }
    }
}

/// One run: its agents, its questions and its steps.
#[component]
fn RunPage(window: WindowId, run: RunId) -> Element {
    let app_state = app_state();
    let state = app_state.runs;
    let revision = use_memo(move || state.revision_of(run));
    let fetched = api::use_fetched::<RunDetails>(move || {
        drop(revision.read());
        format!("/runs/{run}")
    });
    let chosen = use_signal(|| None::<Seq>);
    let only = use_signal(|| None::<TaskId>);
    let known = match (&*fetched.read(), state.line(run)) {
        (Some(Ok(details)), _) => KnownRun { details: details.clone(), is_recorded: true },
        (Some(Err(failure)), None) => return rsx! { LoadError { failure: failure.clone() } },
        (Some(Err(failure)), _) if failure.status() != 404 => {
            return rsx! { LoadError { failure: failure.clone() } };
        }
        // It was just started, and the server may not have it yet.
        (Some(Err(_)) | None, Some(line)) => KnownRun::just_started(line),
        (None, None) => return rsx! { Loading {} },
    };
    let details = &known.details;
    let body = rsx! {
        {head::head(app_state, window, &known)}
        for question in details.questions.clone() {
            Card { key: "{question.id}", question }
        }
        {head::outcome(app_state, details)}
        {agents::tree(app_state, details, only)}
    };
    rsx! {
        div { class: "one-run",
            div { class: "split",
                steps::Steps { run, details: details.clone(), only, chosen, above: body }
                if let Some(seq) = chosen() {
                    steps::Parts { key: "{seq}", run, seq, revision: *revision.read(), chosen }
                }
            }
            agents::Steer { details: details.clone() }
        }
    }
}

/// Returns to the list.
fn back(window: WindowId) {
    app_state().change(window, |w| w.shows = None);
}

/// A callback that controls a run.
fn on_press(run: RunId, control: RunControl) -> impl Fn() + 'static {
    move || runs::control(run, control.clone())
}
