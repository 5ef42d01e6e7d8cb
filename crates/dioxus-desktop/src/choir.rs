//! The choir as this tab knows it: the newest runs, what waits for the person, and what agents say just now.
//!
//! Nothing here polls. An event of a run marks it, and what shows the run is read again, a few times in a second at
//! most.

pub(crate) mod read;

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use serde_json::Value;
use shared_types::payload::window::{Window, WindowMode};

use crate::api::{self, Answer, Failure};
use crate::apps;
use crate::desk::{Desk, Offer, desk};
use crate::undo::{self, Plan, Target, Way};
use crate::{dom, ids};
use read::{items, number, object, text};

/// Milliseconds in which events are gathered before anything is read again.
const GATHER: u32 = 90;
/// Milliseconds until something is sent again that did not arrive.
const AGAIN: u32 = 2_000;
/// Bytes of live words that are kept for an agent.
const HEARD: usize = 4000;

/// The shared state. All of it is JSON as it came: see [`read`].
#[derive(Clone, Copy)]
pub(crate) struct Choir {
    /// The newest runs, the newest first.
    pub runs: Signal<Value>,
    /// There are older ones before this.
    pub before: Signal<u64>,
    /// What waits for the person.
    pub questions: Signal<Value>,
    /// What agents say just now, by task.
    pub said: Signal<Value>,
    /// How often anything happened in a run, by run, and in any of them.
    pub stirs: Signal<Value>,
    pub stir: Signal<u64>,
    /// Runs with events since they were last read.
    marked: CopyValue<Vec<String>>,
    gathering: CopyValue<bool>,
}

impl Choir {
    pub(crate) fn new() -> Self {
        Self {
            runs: Signal::new(Value::Null),
            before: Signal::new(0),
            questions: Signal::new(Value::Null),
            said: Signal::new(object(&[])),
            stirs: Signal::new(object(&[])),
            stir: Signal::new(0),
            marked: CopyValue::new(Vec::new()),
            gathering: CopyValue::new(false),
        }
    }

    /// An event came.
    pub(crate) fn heard(mut self, event: &Value) {
        let (name, run) = (text(event, "type"), text(event, "run_id"));
        let silent = ["capability", "undo", "redo", "restore"].iter().any(|family| name.starts_with(family));
        // Whom it concerns is not always said; the lists will know.
        if !run.is_empty() || silent {
            self.marked.write().push(run.to_owned());
        }
        if !run.is_empty() {
            self.gather();
        }
        if name.starts_with("llm.")
            && let Some(said) = self.said.write().as_object_mut()
        {
            said.remove(text(&event["payload"], "task"));
        }
    }

    /// Soon lets everybody read again who shows a run that was marked.
    pub(crate) fn gather(mut self) {
        if self.marked.read().is_empty() || *self.gathering.read() {
            return;
        }
        self.gathering.set(true);
        api::run(async move {
            TimeoutFuture::new(GATHER).await;
            self.gathering.set(false);
            let marked = std::mem::take(&mut *self.marked.write());
            if let Some(stirs) = self.stirs.write().as_object_mut() {
                for run in marked {
                    let next = stirs.get(&run).and_then(Value::as_u64).unwrap_or_default() + 1;
                    stirs.insert(run, next.into());
                }
            }
            *self.stir.write() += 1;
        });
    }

    /// Something may have happened that nobody told us of.
    pub(crate) fn missed(mut self) {
        self.marked.write().push(String::new());
        self.gather();
    }

    /// An agent says something.
    pub(crate) fn said(mut self, task: String, words: &str) {
        let mut said = self.said.write();
        let Some(said) = said.as_object_mut() else { return };
        if words.is_empty() {
            said.remove(&task);
            return;
        }
        let mut all = said.get(&task).and_then(Value::as_str).unwrap_or_default().to_owned();
        all.push_str(words);
        if all.len() > HEARD {
            let cut =
                (all.len() - HEARD / 2..all.len()).find(|at| all.is_char_boundary(*at)).unwrap_or_default();
            all.drain(..cut);
        }
        said.insert(task, all.into());
    }

    /// Changes when something happened in a run.
    pub(crate) fn beat(self, run: &str) -> u64 {
        let stirs = self.stirs.read();
        number(&stirs, run) + number(&stirs, "")
    }

    /// Whether the person stopped a run before anybody had heard of it.
    fn is_called_off(self, run: &str) -> bool {
        self.line(run).is_some_and(|line| number(&line, "seq") == 0 && text(&line, "state") == "cancelled")
    }

    /// The line of a run, if it is among the newest.
    pub(crate) fn line(self, run: &str) -> Option<Value> {
        self.runs.read().as_array()?.iter().find(|line| text(line, "run") == run).cloned()
    }
}

/// Reads the newest runs and questions whenever a run has stirred, and says when one has come to its end.
pub(crate) fn use_watch() {
    let desk = desk();
    let mut choir = desk.choir;
    let read_again = move || {
        let _ = (choir.stir.read(), desk.ready.read());
    };
    let runs = api::use_fetched::<Value>(move || {
        read_again();
        "/runs".to_owned()
    });
    let questions = api::use_fetched::<Value>(move || {
        read_again();
        "/questions".to_owned()
    });
    use_effect(move || {
        if let Some(Ok(list)) = &*runs.read() {
            choir.before.set(number(list, "before"));
            let mut lines = items(list, "runs").to_vec();
            let known = std::mem::take(&mut *choir.runs.write());
            for old in known.as_array().into_iter().flatten() {
                match lines.iter().find(|line| line["run"] == old["run"]) {
                    Some(new) => tell(desk, old, new),
                    // Just begun here, and not in the lists yet.
                    None if number(old, "seq") == 0 => lines.insert(0, old.clone()),
                    None => {}
                }
            }
            choir.runs.set(Value::Array(lines));
        }
    });
    use_effect(move || {
        if let Some(Ok(list)) = &*questions.read() {
            choir.questions.set(list["questions"].clone());
        }
    });
}

/// Says that a run has ended or stands still, unless it is being looked at.
fn tell(desk: Desk, old: &Value, new: &Value) {
    let (was, is) = (text(old, "state"), text(new, "state"));
    let run = text(new, "run");
    let words = match is {
        "completed" => "Done",
        "failed" => "Failed",
        "paused" if !is_looked_at(desk, run) => "Paused",
        _ => return,
    };
    if was == is {
        return;
    }
    let mut said = format!("{words}: {}", text(new, "title"));
    let reason = text(new, "reason");
    if !reason.is_empty() {
        said.push_str(". ");
        said.push_str(reason);
    }
    desk.notice(said.clone(), is == "failed", run);
    let run = run.to_owned();
    desk.toast(said, false, if is == "completed" { Offer::OpenOrUndo(run) } else { Offer::Open(run) });
}

/// The same as [`is_in_front`], for one who does not want to hear when that changes.
fn is_looked_at(desk: Desk, run: &str) -> bool {
    let stack = desk.stack.peek();
    let mut open = stack.iter().rev().filter_map(|id| desk.window(*id));
    open.find(|w| w.mode != WindowMode::Minimized).is_some_and(|w| shows(&w, run))
}

fn shows(window: &Window, run: &str) -> bool {
    &*window.app == "runs" && window.shows.as_deref() == Some(run)
}

/// Whether the front window shows a run.
pub(crate) fn is_in_front(desk: Desk, run: &str) -> bool {
    let front = desk.front().and_then(|id| desk.window(id));
    front.is_some_and(|w| shows(&w, run))
}

/// Shows a run.
pub(crate) fn open(desk: Desk, run: &str) {
    if let Some(app) = apps::find("runs") {
        desk.open(app, Some(run));
    }
}

/// Takes a whole run back, after a look at what that does.
pub(crate) fn undo(desk: Desk, run: &str) {
    let title = desk.choir.line(run).map(|line| text(&line, "title").to_owned()).unwrap_or_default();
    if let Ok(run) = run.parse() {
        undo::ask(desk, Plan::Revert { way: Way::Undo, target: Target::Run(run), label: title });
    }
}

/// Shows where models are set up.
pub(crate) fn open_models(desk: Desk) {
    if let Some(app) = apps::find("settings") {
        desk.open(app, Some("models"));
    }
}

/// Starts a run: it is shown at once, and the server hears of it meanwhile.
pub(crate) fn start(desk: Desk, objective: &str, attached: Vec<Value>, model: Value, budget: Value) {
    let run = ids::run().to_string();
    let mut choir = desk.choir;
    let title: String = objective.lines().next().unwrap_or_default().chars().take(120).collect();
    let line = object(&[
        ("run", run.as_str().into()),
        ("title", title.into()),
        ("state", "running".into()),
        ("seq", 0.into()),
        ("started", ids::now().millis().into()),
    ]);
    if !choir.runs.peek().is_array() {
        choir.runs.set(Value::Array(Vec::new()));
    }
    if let Some(lines) = choir.runs.write().as_array_mut() {
        lines.insert(0, line);
    }
    open(desk, &run);
    let body = object(&[
        ("command", ids::command().to_string().into()),
        ("run", run.as_str().into()),
        ("objective", objective.into()),
        ("attached", attached.into()),
        ("model", model),
        ("budget", budget),
    ]);
    api::run(async move {
        let mut was_told = false;
        desk.caught_up().await;
        let answer: Answer<Value> = loop {
            if choir.is_called_off(&run) {
                return;
            }
            match api::call(api::Method::Post, "/runs".to_owned(), body.clone()).await {
                // What was asked for is not lost. Should it have arrived, it is known by its command.
                Err(Failure::Unreachable) => {
                    if !std::mem::replace(&mut was_told, true) {
                        desk.toast(
                            "The computer does not answer. This is sent when it does.",
                            true,
                            Offer::Nothing,
                        );
                    }
                    TimeoutFuture::new(AGAIN).await;
                }
                answer => break answer,
            }
        };
        // It was called off on its way.
        if choir.is_called_off(&run) && answer.is_ok() {
            let path = format!("/runs/{run}/gestures");
            if let Err(failure) = api::call(api::Method::Post, path, doing("stop".into())).await {
                desk.fail(&failure);
            }
        }
        let new = match answer {
            Ok(line) => line,
            Err(failure) => {
                desk.fail(&failure);
                object(&[("state", "failed".into()), ("reason", failure.text().into())])
            }
        };
        let mut runs = choir.runs.write();
        let line = runs.as_array_mut().into_iter().flatten().find(|line| text(line, "run") == run);
        // What the lists have said meanwhile is newer.
        if let (Some(line), Some(new)) =
            (line.filter(|line| number(line, "seq") == 0).and_then(Value::as_object_mut), new.as_object())
        {
            line.extend(new.clone());
        }
    });
}

/// Does something to a run.
pub(crate) fn gesture(run: &str, gesture: Value) {
    // One that nobody has heard of yet is stopped here.
    let mut runs = desk().choir.runs;
    if gesture == "stop"
        && let Some(lines) = runs.write().as_array_mut()
        && let Some(line) = lines.iter_mut().find(|line| text(line, "run") == run && number(line, "seq") == 0)
        && line["state"] == "running"
    {
        line["state"] = "cancelled".into();
        return;
    }
    send(api::Method::Post, format!("/runs/{run}/gestures"), doing(gesture));
}

/// A gesture as it is sent.
fn doing(gesture: Value) -> Value {
    object(&[("command", ids::command().to_string().into()), ("gesture", gesture)])
}

/// Sends something whose answer only matters if it is a refusal.
pub(crate) fn send(method: api::Method, path: String, body: Value) {
    let desk = desk();
    api::run(async move {
        if let Err(failure) = api::call(method, path, body).await {
            desk.fail(&failure);
            // What was taken from the screen may have to be there again.
            desk.choir.missed();
        }
    });
}

/// Answers a question, which is then no longer shown.
pub(crate) fn answer(question: &Value, reply: Value) {
    let mut choir = desk().choir;
    let ask = question["ask"].clone();
    // What leaves by itself is shown until it is known to be called off or gone.
    if !read::is_outgoing(question)
        && let Some(questions) = choir.questions.write().as_array_mut()
    {
        questions.retain(|other| other["ask"] != ask);
    }
    gesture(text(question, "run"), object(&[("answer", object(&[("ask", ask), ("reply", reply)]))]));
    dom::focus_soon("waiting");
}
