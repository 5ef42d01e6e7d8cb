//! Questions that wait for the person, in a corner over every app: they block nothing, take no focus, and come one
//! after another. The same cards stand inside their run.

use dioxus::prelude::*;
use shared_types::payload::run::{AskKind, Reply, Scope};
use shared_types::wire::RunQuestion;

use crate::dom;
use crate::format::{duration, origins, role_icon, role_name};
use crate::icons::Icon;
use crate::parts::{Diff, IconButton, press};
use crate::runs::{self, is_in_front};
use crate::state::app_state;
use crate::words;

#[component]
pub(crate) fn Cards() -> Element {
    let app_state = app_state();
    let questions = app_state.runs.questions.read();
    let open = questions.iter().filter(|question| !is_in_front(app_state, question.run));
    // A call in the outbox does not wait for its turn to be seen.
    let (waiting, leaving): (Vec<&RunQuestion>, Vec<_>) = open.partition(|q| q.about.needs_answer());
    let more = waiting.len().saturating_sub(1) as u64;
    rsx! {
        section { class: "cards", id: "waiting", tabindex: "-1", role: "region", "aria-label": words::cards::WAITING_FOR_YOU, "aria-live": "polite",
            for question in leaving {
                Card { key: "{question.id}", question: question.clone(), corner: true }
            }
            if let Some(question) = waiting.first() {
                Card { key: "{question.id}", question: (*question).clone(), corner: true }
                if more > 0 {
                    p { class: "quiet", {words::cards::more_questions(more)} }
                }
            }
        }
    }
}

/// One question, with all that is needed to answer it.
#[component]
pub(crate) fn Card(question: RunQuestion, #[props(default)] corner: bool) -> Element {
    let app_state = app_state();
    let words = use_signal(String::new);
    let denying = use_signal(|| false);
    let run = question.run;
    let from = origins(&question.taint);
    let (wants, is_final) = match &question.about {
        AskKind::Approval { tool, is_final, .. } => (wish(tool), *is_final),
        AskKind::Question { .. } => (words::cards::ASKS, false),
        AskKind::Outgoing { .. } => (words::cards::ACTS_OUTSIDE, true),
        AskKind::Interrupted { .. } => (words::cards::WAS_INTERRUPTED, false),
    };
    let title = words::cards::title(&role_name(&question.role), wants);
    let body = match &question.about {
        AskKind::Question { text, .. } => rsx! { p { "{text}" } },
        AskKind::Approval { title, why, .. } => rsx! {
            code { class: "exact", "{title}" }
            if !why.is_empty() { p { class: "quiet", "{why}" } }
        },
        AskKind::Interrupted { title, .. } => rsx! {
            code { class: "exact", "{title}" }
            p { class: "quiet", {words::cards::INTERRUPTED} }
        },
        AskKind::Outgoing { title, .. } => rsx! {
            code { class: "exact", "{title}" }
            {countdown(question.leaves_in)}
        },
    };
    let answers = match &question.about {
        AskKind::Question { choices, .. } => choose(&question, choices, words),
        AskKind::Outgoing { .. } => recall(&question),
        AskKind::Approval { pattern, .. } => verdicts(&question, Some(pattern), words, denying),
        AskKind::Interrupted { .. } => verdicts(&question, None, words, denying),
    };
    rsx! {
        article { class: "ask-card", role: "group", "aria-label": "{title}",
            header {
                Icon { name: role_icon(&question.role) }
                b { "{title}" }
                if is_final { span { class: "chip bad", {words::cards::CANNOT_BE_UNDONE} } }
                if corner {
                    IconButton { icon: "eye", label: words::cards::SEE_RUN, onclick: move |_| runs::open(app_state, run) }
                }
            }
            {body}
            if !from.is_empty() {
                p { class: "note-line warn", Icon { name: "triangle-alert" } span { {words::cards::has_read(&from)} } }
            }
            if let Some(diff) = question.diff.clone() { Diff { text: diff } }
            if let Some(input) = &question.input {
                details { class: "opens", summary { {words::cards::ARGUMENTS} } pre { class: "output scroll", tabindex: "0", "{input}" } }
            }
            {answers}
        }
    }
}

/// What a tool is used for.
fn wish(tool: &str) -> &'static str {
    match tool {
        "exec" => words::cards::RUN_COMMAND,
        "fetch" | "web_fetch" | "search" | "web_search" => words::cards::REACH_WEB,
        "write" | "edit" => words::cards::CHANGE_FILE,
        _ => words::cards::USE_TOOL,
    }
}

fn say(question: &RunQuestion, reply: Reply) -> impl Fn() + 'static {
    let question = question.clone();
    move || runs::answer(&question, reply.clone())
}

/// An answer in words, or one of those that were offered.
fn choose(question: &RunQuestion, choices: &[Box<str>], words: Signal<String>) -> Element {
    rsx! {
        div { class: "acts",
            for choice in choices {
                {press("btn", "", &**choice, say(question, Reply::Words(choice.clone())))}
            }
        }
        {line(question, Reply::Words, words::cards::YOUR_ANSWER, words::cards::ANSWER, words)}
    }
}

/// A call in the outbox goes now, or not at all.
fn recall(question: &RunQuestion) -> Element {
    let no = Reply::Deny(words::cards::CALLED_OFF.into());
    rsx! {
        div { class: "acts",
            {press("btn pri", "undo-2", words::cards::CALL_OFF, say(question, no))}
            {press("btn", "", words::cards::LET_GO, say(question, Reply::Allow(Scope::Once)))}
        }
    }
}

/// How long a call still lies in the outbox: in words as of when it was fetched, and as a bar that grows shorter.
fn countdown(left: Option<u64>) -> Element {
    let when = match left {
        None => words::cards::GOES_WITH_RUN.to_owned(),
        Some(left) => words::cards::goes_in(&duration(left)),
    };
    rsx! {
        p { class: "note-line warn", Icon { name: "history" } span { "{when}" } }
        if let Some(left) = left { i { class: "leaving", style: "animation-duration:{left}ms" } }
    }
}

/// Yes for how long, or no. A call that was interrupted has no pattern, and is allowed once at most.
fn verdicts(
    question: &RunQuestion,
    pattern: Option<&str>,
    words: Signal<String>,
    denying: Signal<bool>,
) -> Element {
    if *denying.read() {
        return line(question, Reply::Deny, words::cards::WHY_NOT, words::cards::DENY, words);
    }
    let ask = question.id;
    let deny = move || {
        let mut denying = denying;
        denying.set(true);
        dom::focus_soon(format!("card-{ask}"));
    };
    let (yes, no) = if pattern.is_some() {
        (words::cards::ALLOW_ONCE, words::cards::DENY)
    } else {
        (words::cards::DO_AGAIN, words::cards::LEAVE_IT)
    };
    rsx! {
        div { class: "acts",
            {press("btn pri", "check", yes, say(question, Reply::Allow(Scope::Once)))}
            if pattern.is_some() {
                {press("btn", "", words::cards::ALLOW_IN_RUN, say(question, Reply::Allow(Scope::Run)))}
                {press("btn", "", words::cards::ALLOW_ALWAYS, say(question, Reply::Allow(Scope::Always)))}
            }
            {press("btn ghost", "", no, deny)}
        }
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) {
            p { class: "quiet", {words::cards::ALLOWS_MORE} code { "{pattern}" } }
        }
    }
}

/// A line to write an answer in.
fn line(
    question: &RunQuestion,
    reply: fn(Box<str>) -> Reply,
    hint: &'static str,
    verb: &'static str,
    mut words: Signal<String>,
) -> Element {
    let id = format!("card-{}", question.id);
    let question = question.clone();
    rsx! {
        form {
            class: "line",
            onsubmit: move |event| {
                event.prevent_default();
                runs::answer(&question, reply(words.peek().trim().into()));
            },
            input { class: "field", id: "{id}", placeholder: hint, "aria-label": hint, value: "{words}", oninput: move |e| words.set(e.value()) }
            button { class: "btn", r#type: "submit", "{verb}" }
        }
    }
}
