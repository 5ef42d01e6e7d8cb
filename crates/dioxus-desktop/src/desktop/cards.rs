//! What waits for the person, in a corner over every app: it blocks nothing, takes no focus, and one comes after
//! another. The same cards stand inside their run.

use dioxus::prelude::*;
use serde_json::Value;

use crate::choir::read::{is, is_outgoing, items, lasted, name, object, origins, sign, text};
use crate::choir::{self, is_in_front};
use crate::clock;
use crate::desk::desk;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{Diff, IconButton, press};

#[component]
pub(crate) fn Cards() -> Element {
    let desk = desk();
    let questions = desk.choir.questions.read();
    let elsewhere = |question: &&Value| !is_in_front(desk, text(question, "run"));
    let open = questions.as_array().into_iter().flatten().filter(elsewhere);
    // What leaves by itself does not wait for its turn to be seen.
    let (leaving, waiting): (Vec<&Value>, Vec<&Value>) = open.partition(|question| is_outgoing(question));
    let more = waiting.len().saturating_sub(1) as u64;
    rsx! {
        section { class: "cards", id: "waiting", tabindex: "-1", role: "region", "aria-label": "Waiting for you", "aria-live": "polite",
            for question in leaving {
                Card { key: "{text(question, \"ask\")}", question: question.clone(), corner: true }
            }
            if let Some(question) = waiting.first() {
                Card { key: "{text(question, \"ask\")}", question: (*question).clone(), corner: true }
                if more > 0 {
                    p { class: "quiet", {clock::plural(more, "more question")} " after this" }
                }
            }
        }
    }
}

/// One question, with all that is needed to answer it.
#[component]
pub(crate) fn Card(question: Value, #[props(default)] corner: bool) -> Element {
    let desk = desk();
    let words = use_signal(String::new);
    let denying = use_signal(|| false);
    let about = &question["about"];
    let role = name(text(&question, "role"));
    let run = text(&question, "run").to_owned();
    let from = origins(&question);
    let (wants, of) = match about.as_object().and_then(|kinds| kinds.iter().next()) {
        Some((kind, of)) if kind == "approval" => (wish(text(of, "tool")), of),
        Some((kind, of)) if kind == "question" => ("asks", of),
        Some((kind, of)) if kind == "outgoing" => ("is about to act outside", of),
        Some((_, of)) => ("was interrupted", of),
        None => return rsx! {},
    };
    let asks = about.get("question").is_some();
    let cut = about.get("interrupted").is_some();
    let leaves = about.get("outgoing").is_some();
    let input = text(&question, "input").to_owned();
    let diff = text(&question, "diff").to_owned();
    rsx! {
        article { class: "ask-card", role: "group", "aria-label": "{role} {wants}",
            header {
                Icon { name: sign(text(&question, "role")) }
                b { "{role} {wants}" }
                if leaves || is(of, "is_final") { span { class: "chip bad", "cannot be undone" } }
                if corner {
                    IconButton { icon: "eye", label: "See the run", onclick: move |_| choir::open(desk, &run) }
                }
            }
            if asks {
                p { {text(of, "text")} }
            } else {
                code { class: "exact", {text(of, "title")} }
            }
            if cut {
                p { class: "quiet", "The computer stopped while this ran. It may have reached the outside. Should it be done again?" }
            }
            if leaves { {countdown(&question)} }
            if !text(of, "why").is_empty() { p { class: "quiet", {text(of, "why")} } }
            if !from.is_empty() {
                p { class: "note-line warn", Icon { name: "triangle-alert" } span { "It has read words from {from}. Make sure that this is what you want." } }
            }
            if !diff.is_empty() { Diff { text: diff } }
            if !input.is_empty() {
                details { class: "opens", summary { "Arguments" } pre { class: "output scroll", tabindex: "0", "{input}" } }
            }
            if asks {
                {choices(&question, of, words)}
            } else if leaves {
                {recall(&question)}
            } else {
                {verdicts(&question, of, cut, words, denying)}
            }
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

/// An answer in words, or one of those that were offered.
fn choices(question: &Value, of: &Value, words: Signal<String>) -> Element {
    let say = |words: String| {
        let question = question.clone();
        move || choir::answer(&question, object(&[("words", words.as_str().into())]))
    };
    rsx! {
        div { class: "acts",
            for choice in items(of, "choices").iter().filter_map(Value::as_str) {
                {press("btn", "", choice, say(choice.to_owned()))}
            }
        }
        {line(question, "words", "Your answer", "Answer", words)}
    }
}

/// A call in the outbox goes now, or not at all.
fn recall(question: &Value) -> Element {
    let say = |reply: Value| {
        let question = question.clone();
        move || choir::answer(&question, reply.clone())
    };
    let no = object(&[("deny", "the person called it off".into())]);
    rsx! {
        div { class: "acts",
            {press("btn pri", "undo-2", "Call it off", say(no))}
            {press("btn", "", "Let it go now", say(object(&[("allow", "once".into())])))}
        }
    }
}

/// How long a call still lies in the outbox: in words as of when it was read, and as a bar that grows shorter.
fn countdown(question: &Value) -> Element {
    let left = question.get("leaves_in").and_then(Value::as_u64);
    let when = match left {
        None => "after the run goes on".to_owned(),
        Some(left) => format!("in {}", lasted(left)),
    };
    rsx! {
        p { class: "note-line warn", Icon { name: "history" } span { "It goes out {when}." } }
        if let Some(left) = left { i { class: "leaving", style: "animation-duration:{left}ms" } }
    }
}

/// Yes for how long, or no.
fn verdicts(
    question: &Value,
    of: &Value,
    cut: bool,
    words: Signal<String>,
    denying: Signal<bool>,
) -> Element {
    let allow = |scope: &'static str| {
        let question = question.clone();
        move || choir::answer(&question, object(&[("allow", scope.into())]))
    };
    if *denying.read() {
        return line(question, "deny", "Why not, if you want to say", "Deny", words);
    }
    let ask = text(question, "ask").to_owned();
    let deny = move || {
        let mut denying = denying;
        denying.set(true);
        dom::focus_soon(format!("card-{ask}"));
    };
    rsx! {
        div { class: "acts",
            {press("btn pri", "check", if cut { "Do it again" } else { "Allow once" }, allow("once"))}
            if !cut {
                {press("btn", "", "This run", allow("run"))}
                {press("btn", "", "Always", allow("always"))}
            }
            {press("btn ghost", "", if cut { "Leave it" } else { "Deny" }, deny)}
        }
        if !text(of, "pattern").is_empty() {
            p { class: "quiet", "For more than once it allows " code { {text(of, "pattern")} } }
        }
    }
}

/// A line to write in.
fn line(
    question: &Value,
    kind: &'static str,
    hint: &'static str,
    verb: &'static str,
    mut words: Signal<String>,
) -> Element {
    let id = format!("card-{}", text(question, "ask"));
    let question = question.clone();
    rsx! {
        form {
            class: "line",
            onsubmit: move |event| {
                event.prevent_default();
                choir::answer(&question, object(&[(kind, words.peek().trim().into())]));
            },
            input { class: "field", id: "{id}", placeholder: hint, "aria-label": hint, value: "{words}", oninput: move |e| words.set(e.value()) }
            button { class: "btn", r#type: "submit", "{verb}" }
        }
    }
}
