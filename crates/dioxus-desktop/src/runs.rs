//! Starts and controls runs, answers their questions, and keeps the list of the newest runs up to date.
//!
//! Nothing here polls. An event of a run marks it, and components that show the run fetch it again, a few times a second
//! at most.

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use shared_types::payload::run::{Budget, Reply};
use shared_types::payload::window::{Window, WindowMode};
use shared_types::wire::{
    ControlRun, Questions, RunControl, RunCost, RunLine, RunList, RunQuestion, RunState, StartRun,
};
use shared_types::{FilePath, RunId, Seq};

use crate::api::{self, ApiFailure, Method};
use crate::app_list;
use crate::state::{AppState, ToastAction, app_state};
use crate::undo;
use crate::undo_plan::{RevertKind, RevertPlan, RevertTarget};
use crate::words;
use crate::{dom, ids};

/// Milliseconds until an objective that got no answer is sent again.
const RETRY_MS: u32 = 2_000;

/// Fetches the newest runs and questions whenever a run changed, and reports when one has ended.
pub(crate) fn use_watch() {
    let app_state = app_state();
    let mut state = app_state.runs;
    let subscribe = move || {
        let _ = (state.revision.read(), app_state.ready.read());
    };
    let runs = api::use_fetched::<RunList>(move || {
        subscribe();
        "/runs".to_owned()
    });
    let questions = api::use_fetched::<Questions>(move || {
        subscribe();
        "/questions".to_owned()
    });
    use_effect(move || match &*runs.read() {
        Some(Ok(list)) => {
            state.before.set(list.before);
            let mut lines = list.runs.clone();
            state.mark_recorded(&lines);
            let known = std::mem::take(&mut *state.newest.write());
            for old in known {
                match lines.iter().find(|line| line.run == old.run) {
                    Some(new) => report(app_state, &old, new),
                    None if state.unrecorded.peek().contains(&old.run) => lines.insert(0, old),
                    None => {}
                }
            }
            state.newest.set(lines);
        }
        Some(Err(failure)) => app_state.report_unreadable(failure),
        None => {}
    });
    use_effect(move || match &*questions.read() {
        Some(Ok(list)) => state.questions.set(list.questions.clone()),
        Some(Err(failure)) => app_state.report_unreadable(failure),
        None => {}
    });
}

/// Reports that a run has ended or paused; a pause only if the run's window is not in front.
fn report(app_state: AppState, old: &RunLine, new: &RunLine) {
    let word = match new.state {
        RunState::Completed => words::runs::RUN_DONE,
        RunState::Failed => words::runs::RUN_FAILED,
        RunState::Paused if !is_looked_at(app_state, new.run) => words::runs::RUN_PAUSED,
        RunState::Paused | RunState::Running | RunState::Waiting | RunState::Cancelled => return,
    };
    if old.state == new.state {
        return;
    }
    let text = words::runs::ended(word, &new.title, new.reason.as_deref());
    app_state.notice(text.clone(), new.state == RunState::Failed, Some(new.run));
    let offer = if new.state == RunState::Completed {
        ToastAction::OpenOrUndo(new.run)
    } else {
        ToastAction::Open(new.run)
    };
    app_state.toast(text, false, offer);
}

/// The same as [`is_in_front`], without subscribing to it.
fn is_looked_at(app_state: AppState, run: RunId) -> bool {
    let stack = app_state.stack.peek();
    let mut open = stack.iter().rev().filter_map(|id| app_state.window(*id));
    open.find(|w| w.mode != WindowMode::Minimized).is_some_and(|w| shows(&w, run))
}

fn shows(window: &Window, run: RunId) -> bool {
    &*window.app == "runs" && window.shows.as_deref().and_then(|shows| shows.parse().ok()) == Some(run)
}

/// Whether the front window shows a run.
pub(crate) fn is_in_front(app_state: AppState, run: RunId) -> bool {
    let front = app_state.front().and_then(|id| app_state.window(id));
    front.is_some_and(|w| shows(&w, run))
}

/// Shows a run.
pub(crate) fn open(app_state: AppState, run: RunId) {
    if let Some(app) = app_list::find("runs") {
        app_state.open(app, Some(&run.to_string()));
    }
}

/// Undoes a whole run, after a preview.
pub(crate) fn undo(app_state: AppState, run: RunId) {
    let label = app_state.runs.line(run).map(|line| line.title).unwrap_or_default();
    undo::open_dialog(
        app_state,
        RevertPlan::Revert { kind: RevertKind::Undo, target: RevertTarget::Run(run), label },
    );
}

/// Shows where models are set up.
pub(crate) fn open_models(app_state: AppState) {
    if let Some(app) = app_list::find("settings") {
        app_state.open(app, Some("models"));
    }
}

/// An objective from the prompt bar.
pub(crate) struct Objective {
    pub text: String,
    pub attached: Vec<FilePath>,
    pub model: Option<String>,
    pub budget: Budget,
}

/// Starts a run: it is shown at once, and sent meanwhile.
pub(crate) fn start(app_state: AppState, objective: Objective) {
    let run = ids::run();
    let mut state = app_state.runs;
    let Objective { text, attached, model, budget } = objective;
    state.unrecorded.write().push(run);
    let title = text.lines().next().unwrap_or_default().chars().take(120).collect();
    state.newest.write().insert(
        0,
        RunLine {
            run,
            title,
            state: RunState::Running,
            reason: None,
            // Not known before the server has recorded the run; see `RunsState::unrecorded`.
            seq: Seq::ZERO,
            started: ids::now(),
            ended: None,
            cost: RunCost::default(),
            open_questions: 0,
            undone: false,
        },
    );
    open(app_state, run);
    let body = StartRun { command: ids::command(), run, objective: text, attached, model, budget };
    api::run(async move {
        let mut was_told = false;
        app_state.caught_up().await;
        let answer = loop {
            if state.is_called_off(run) {
                return;
            }
            match api::post::<RunLine>("/runs", &body).await {
                // The objective is not lost. Should it have arrived, the server knows its command.
                Err(ApiFailure::Unreachable) => {
                    if !std::mem::replace(&mut was_told, true) {
                        app_state.toast(words::runs::SENT_LATER, true, ToastAction::Nothing);
                    }
                    TimeoutFuture::new(RETRY_MS).await;
                }
                answer => break answer,
            }
        };
        if state.is_called_off(run) && answer.is_ok() {
            let stop = ControlRun { command: ids::command(), control: RunControl::Stop };
            let path = format!("/runs/{run}/gestures");
            if let Err(failure) = api::send_json(Method::Post, &path, &stop).await {
                app_state.report_failure(&failure);
            }
        }
        if let Err(failure) = &answer {
            app_state.report_failure(failure);
        }
        // A line that the list brought meanwhile is newer.
        if !state.is_unrecorded(run) {
            return;
        }
        if let Ok(recorded) = &answer {
            state.mark_recorded(std::slice::from_ref(recorded));
        }
        let mut newest = state.newest.write();
        if let Some(line) = newest.iter_mut().find(|line| line.run == run) {
            match answer {
                Ok(recorded) => *line = recorded,
                Err(failure) => {
                    line.state = RunState::Failed;
                    line.reason = Some(failure.text());
                }
            }
        }
    });
}

/// Controls a run: pause, resume, steer, answer, stop.
pub(crate) fn control(run: RunId, control: RunControl) {
    // A run that the server has not recorded yet is stopped here.
    let mut state = app_state().runs;
    if control == RunControl::Stop && state.is_unrecorded(run) {
        let mut newest = state.newest.write();
        let running = |line: &&mut RunLine| line.run == run && line.state == RunState::Running;
        if let Some(line) = newest.iter_mut().find(running) {
            line.state = RunState::Cancelled;
            return;
        }
    }
    let app_state = app_state();
    api::run(async move {
        let body = ControlRun { command: ids::command(), control };
        if let Err(failure) = api::send_json(Method::Post, &format!("/runs/{run}/gestures"), &body).await {
            app_state.report_failure(&failure);
            // A question that was taken from the screen may have to come back.
            app_state.runs.refresh();
        }
    });
}

/// Answers a question and takes it from the screen.
pub(crate) fn answer(question: &RunQuestion, reply: Reply) {
    let mut state = app_state().runs;
    let ask = question.id;
    // A call in the outbox is shown until the server reports that it was cancelled or sent.
    if question.about.needs_answer() {
        state.questions.write().retain(|other| other.id != ask);
    }
    control(question.run, RunControl::Answer { ask, reply });
    dom::focus_soon("waiting");
}
