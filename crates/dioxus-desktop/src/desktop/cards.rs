//! Questions that wait for the person, in a corner over every app: they block nothing, take no focus, and come one
//! after another. The same cards stand inside their run.

use dioxus::prelude::*;
use shared_types::payload::run::{AskKind, Reply, Scope};
use shared_types::wire::RunQuestion;

use crate::clock;
use crate::dom;
use crate::format::{duration, origins, role_icon, role_name};
use crate::icons::Icon;
use crate::parts::{Diff, IconButton, press};
use crate::runs::{self, is_in_front};
use crate::state::app_state;

#[component]
pub(crate) fn Cards() -> Element {
    let app_state = app_state();
    let questions = app_state.runs.questions.read();
    let open = questions.iter().filter(|question| !is_in_front(app_state, question.run));
    // A call in the outbox does not wait for its turn to be seen.
    let (waiting, leaving): (Vec<&RunQuestion>, Vec<_>) = open.partition(|q| q.about.needs_answer());
    let more = waiting.len().saturating_sub(1) as u64;
    rsx! {
        section { class: "cards", id: "waiting", tabindex: "-1", role: "region", "aria-label": "Waiting for you", "aria-live": "polite",
            for question in leaving {
                Card { key: "{question.ask}", question: question.clone(), corner: true }
            }
            if let Some(question) = waiting.first() {
                Card { key: "{question.ask}", question: (*question).clone(), corner: true }
                if more > 0 {
                    p { class: "quiet", {clock::plural(more, "more question")} " after this" }
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
    let role = role_name(&question.role);
    let run = question.run;
    let from = origins(&question.taint);
    let (wants, is_final) = match &question.about {
        AskKind::Approval { tool, is_final, .. } => (wish(tool), *is_final),
        AskKind::Question { .. } => ("asks", false),
        AskKind::Outgoing { .. } => ("is about to act outside", true),
        AskKind::Interrupted { .. } => ("was interrupted", false),
    };
    let body = match &question.about {
        AskKind::Question { text, .. } => rsx! { p { "{text}" } },
        AskKind::Approval { title, why, .. } => rsx! {
            code { class: "exact", "{title}" }
            if !why.is_empty() { p { class: "quiet", "{why}" } }
        },
        AskKind::Interrupted { title, .. } => rsx! {
            code { class: "exact", "{title}" }
            p { class: "quiet", "The computer stopped while this ran. It may have reached the outside. Should it be done again?" }
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
        article { class: "ask-card", role: "group", "aria-label": "{role} {wants}",
            header {
                Icon { name: role_icon(&question.role) }
                b { "{role} {wants}" }
                if is_final { span { class: "chip bad", "cannot be undone" } }
                if corner {
                    IconButton { icon: "eye", label: "See the run", onclick: move |_| runs::open(app_state, run) }
                }
            }
            {body}
            if !from.is_empty() {
                p { class: "note-line warn", Icon { name: "triangle-alert" } span { "It has read words from {from}. Make sure that this is what you want." } }
            }
            if let Some(diff) = question.diff.clone() { Diff { text: diff } }
            if let Some(input) = &question.input {
                details { class: "opens", summary { "Arguments" } pre { class: "output scroll", tabindex: "0", "{input}" } }
            }
            {answers}
        }
    }
}

/// What a tool is used for.
fn wish(tool: &str) -> &'static str {
    match tool {
        "exec" => "wants to run a command",
        "fetch" | "web_fetch" | "search" | "web_search" => "wants to reach the web",
        "write" | "edit" => "wants to change a file",
        _ => "wants to use a tool",
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
        {line(question, Reply::Words, "Your answer", "Answer", words)}
    }
}

/// A call in the outbox goes now, or not at all.
fn recall(question: &RunQuestion) -> Element {
    let no = Reply::Deny("the person called it off".into());
    rsx! {
        div { class: "acts",
            {press("btn pri", "undo-2", "Call it off", say(question, no))}
            {press("btn", "", "Let it go now", say(question, Reply::Allow(Scope::Once)))}
        }
    }
}

/// How long a call still lies in the outbox: in words as of when it was fetched, and as a bar that grows shorter.
fn countdown(left: Option<u64>) -> Element {
    let when = match left {
        None => "after the run goes on".to_owned(),
        Some(left) => format!("in {}", duration(left)),
    };
    rsx! {
        p { class: "note-line warn", Icon { name: "history" } span { "It goes out {when}." } }
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
        return line(question, Reply::Deny, "Why not, if you want to say", "Deny", words);
    }
    let ask = question.ask;
    let deny = move || {
        let mut denying = denying;
        denying.set(true);
        dom::focus_soon(format!("card-{ask}"));
    };
    let (yes, no) = if pattern.is_some() { ("Allow once", "Deny") } else { ("Do it again", "Leave it") };
    rsx! {
        div { class: "acts",
            {press("btn pri", "check", yes, say(question, Reply::Allow(Scope::Once)))}
            if pattern.is_some() {
                {press("btn", "", "This run", say(question, Reply::Allow(Scope::Run)))}
                {press("btn", "", "Always", say(question, Reply::Allow(Scope::Always)))}
            }
            {press("btn ghost", "", no, deny)}
        }
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) {
            p { class: "quiet", "For more than once it allows " code { "{pattern}" } }
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
    let id = format!("card-{}", question.ask);
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
