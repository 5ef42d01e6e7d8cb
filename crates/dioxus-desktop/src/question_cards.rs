//! Questions that wait for the person, in a corner over every app, one at a time. They do not block anything and do not
//! take the focus. The page of a run shows the same cards.

use dioxus::prelude::*;
use shared_types::payload::run::{ApprovalScope, AskKind, Reply};
use shared_types::wire::RunQuestion;

use crate::dom;
use crate::format::{duration, origins, role_icon, role_name};
use crate::icons::Icon;
use crate::runs::{self, is_in_front};
use crate::state::app_state;
use crate::widgets::{Diff, IconButton, button};
use crate::words;

#[component]
pub(crate) fn Cards() -> Element {
    let app_state = app_state();
    let questions = app_state.runs.questions.read();
    let open = questions.iter().filter(|question| !is_in_front(app_state, question.run));
    // Calls in the outbox are shown at once, all of them: they leave by themselves.
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

/// One question, with everything needed to answer it.
#[component]
pub(crate) fn Card(question: RunQuestion, #[props(default)] corner: bool) -> Element {
    let app_state = app_state();
    let words = use_signal(String::new);
    let denying = use_signal(|| false);
    let run = question.run;
    let from = origins(&question.taint);
    let (wants, is_final) = match &question.about {
        AskKind::Approval { tool, is_final, .. } => (tool_phrase(tool), *is_final),
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
        AskKind::Outgoing { .. } => outbox_buttons(&question),
        AskKind::Approval { pattern, .. } => approval_buttons(&question, Some(pattern), words, denying),
        AskKind::Interrupted { .. } => approval_buttons(&question, None, words, denying),
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

/// What an agent wants when it calls a tool. These are the names of `agents::ToolKind`; tools of MCP servers have others.
fn tool_phrase(tool: &str) -> &'static str {
    match tool {
        "exec" => words::cards::RUN_COMMAND,
        "fetch" | "web_search" => words::cards::REACH_WEB,
        "read" | "list" => words::cards::READ_FILE,
        "search" => words::cards::SEARCH_WORKSPACE,
        "write" | "edit" => words::cards::CHANGE_FILE,
        _ => words::cards::USE_TOOL,
    }
}

fn answer(question: &RunQuestion, reply: Reply) -> impl Fn() + 'static {
    let question = question.clone();
    move || runs::answer(&question, reply.clone())
}

/// The choices that the agent offered, and a field for another answer.
fn choose(question: &RunQuestion, choices: &[Box<str>], words: Signal<String>) -> Element {
    rsx! {
        div { class: "acts",
            for choice in choices {
                {button("btn", "", &**choice, answer(question, Reply::Words(choice.clone())))}
            }
        }
        {line(question, Reply::Words, words::cards::YOUR_ANSWER, words::cards::ANSWER, words)}
    }
}

/// Cancels a call in the outbox, or sends it now.
fn outbox_buttons(question: &RunQuestion) -> Element {
    let no = Reply::Deny(words::cards::CALLED_OFF.into());
    rsx! {
        div { class: "acts",
            {button("btn pri", "undo-2", words::cards::CALL_OFF, answer(question, no))}
            {button("btn", "", words::cards::LET_GO, answer(question, Reply::Allow(ApprovalScope::Once)))}
        }
    }
}

/// How long a call stays in the outbox: as text, as of the fetch, and as a shrinking bar.
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

/// Allow once, for the run or always, or deny. A call that was interrupted has no pattern and can be allowed once only.
fn approval_buttons(
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
            {button("btn pri", "check", yes, answer(question, Reply::Allow(ApprovalScope::Once)))}
            if pattern.is_some() {
                {button("btn", "", words::cards::ALLOW_IN_RUN, answer(question, Reply::Allow(ApprovalScope::Run)))}
                {button("btn", "", words::cards::ALLOW_ALWAYS, answer(question, Reply::Allow(ApprovalScope::Always)))}
            }
            {button("btn ghost", "", no, deny)}
        }
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) {
            p { class: "quiet", {words::cards::ALLOWS_MORE} code { "{pattern}" } }
        }
    }
}

/// A form with one text field for an answer.
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
