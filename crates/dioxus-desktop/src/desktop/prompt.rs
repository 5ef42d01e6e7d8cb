//! The prompt bar: opens and finds things, and runs commands that begin with `>`. It does not take objectives.

use dioxus::prelude::*;
use shared_types::wire::{Found, Matched};

use super::prompt_commands::{self, Command};
use crate::api::{self, Answer};
use crate::apps::{self, AppInfo};
use crate::desk::desk;
use crate::icons::Icon;
use crate::{clock, dom};

/// One line of the results.
#[derive(Clone, PartialEq)]
pub(crate) enum Hit {
    App(&'static AppInfo),
    File(Found),
    Page { title: &'static str, page: &'static str },
    Command(Command),
}

const PAGES: &[(&str, &str, &str)] = &[
    ("Theme", "appearance", "dark light colour appearance theme"),
    ("Passkeys", "passkeys", "passkey security key sign in"),
    ("Sessions", "sessions", "session devices sign out browsers"),
    ("Tokens", "tokens", "token api script access"),
    ("Recovery codes", "recovery", "recovery code backup"),
    ("People", "people", "people invite invitation account user"),
    ("Storage, export and import", "storage", "storage disk space export import backup zip"),
];

/// Moves the focus to the prompt bar from anywhere.
pub(crate) fn open() {
    dom::focus("prompt");
    if let Some(input) = dom::by_id("prompt") {
        use wasm_bindgen::JsCast;
        if let Some(input) = input.dyn_ref::<web_sys::HtmlInputElement>() {
            input.select();
        }
    }
}

fn local_hits(text: &str) -> Vec<Hit> {
    if let Some(rest) = text.strip_prefix('>') {
        return prompt_commands::matching(rest).into_iter().map(Hit::Command).collect();
    }
    let words = text.trim().to_lowercase();
    let fits = |hay: &str| words.split_whitespace().all(|word| hay.to_lowercase().contains(word));
    let starts = |title: &str| !words.is_empty() && title.to_lowercase().starts_with(&words);
    // What begins with the words comes first, then what is about them.
    let mut hits: Vec<(bool, Hit)> = apps::APPS
        .iter()
        .filter(|app| fits(&format!("{} {}", app.title, app.about)))
        .map(|app| (!starts(app.title), Hit::App(app)))
        .collect();
    if !words.is_empty() {
        let pages = PAGES.iter().filter(|(title, _, more)| fits(&format!("{title} {more}")));
        hits.extend(pages.map(|(title, page, _)| (!starts(title), Hit::Page { title, page })));
    }
    let (later, first): (Vec<_>, Vec<_>) = hits.into_iter().partition(|(later, _)| *later);
    first.into_iter().chain(later).map(|(_, hit)| hit).take(8).collect()
}

fn choose(hit: &Hit, text: &str) {
    let desk = desk();
    match hit {
        Hit::App(app) => desk.open(app, None),
        Hit::File(found) => apps::files::open_path(desk, found.path.as_str()),
        Hit::Page { page, .. } => {
            if let Some(app) = apps::find("settings") {
                desk.open(app, Some(page));
            }
        }
        Hit::Command(command) => prompt_commands::run(desk, command, text),
    }
}

#[component]
pub(crate) fn Prompt() -> Element {
    let mut text = use_signal(String::new);
    let mut focused = use_signal(|| false);
    let mut at = use_signal(|| 0usize);
    let mut found = use_signal(Vec::<Found>::new);
    use_effect(move || {
        let words = text.read().trim().to_owned();
        at.set(0);
        if words.is_empty() || words.starts_with('>') {
            found.set(Vec::new());
            return;
        }
        spawn(async move {
            gloo_timers::future::TimeoutFuture::new(90).await;
            if text.peek().trim() != words {
                return;
            }
            let path = api::query("/search", &[("q", &words), ("limit", "8")]);
            let answer: Answer<Vec<Found>> = api::get(&path).await;
            if text.peek().trim() == words {
                found.set(answer.unwrap_or_default());
            }
        });
    });
    let hits = use_memo(move || {
        let mut hits = local_hits(&text.read());
        hits.extend(found.read().iter().cloned().map(Hit::File));
        hits
    });
    let mut finish = move || {
        text.set(String::new());
        focused.set(false);
        if let Some(input) = dom::by_id("prompt") {
            let _ = input.blur();
        }
    };
    let mut take = move |index: usize| {
        let hit = hits.peek().get(index).cloned();
        let typed = text.peek().clone();
        if let Some(hit) = hit {
            // A command that wants words is completed first.
            if let Hit::Command(command) = &hit
                && let Some(more) = prompt_commands::completion(command, &typed)
            {
                text.set(more);
                dom::focus_soon("prompt");
                return;
            }
            choose(&hit, &typed);
            finish();
        }
    };
    let open = focused();
    let list = hits.read().clone();
    rsx! {
        div { class: if open { "prompt-wrap open" } else { "prompt-wrap" }, role: "search",
            if open {
                div { class: "scrim clear phone-dim", onpointerdown: move |_| finish() }
                div { class: "hits", id: "hits", role: "listbox", "aria-label": "Results",
                    if list.is_empty() {
                        p { class: "quiet pad", "Nothing is called that. Try fewer letters, or > for a command." }
                    }
                    for (i, hit) in list.into_iter().enumerate() {
                        HitRow { key: "{i}", hit, index: i, on: i == at(), onpick: take, onover: move |i| at.set(i) }
                    }
                }
            }
            div { class: "prompt",
                Icon { name: "search" }
                input {
                    id: "prompt",
                    r#type: "text",
                    role: "combobox",
                    placeholder: "Open, find, or type > for a command",
                    "aria-label": "Open, find, or type > for a command",
                    "aria-expanded": open.to_string(),
                    "aria-controls": "hits",
                    "aria-activedescendant": if open { format!("hit-{}", at()) } else { String::new() },
                    autocomplete: "off",
                    spellcheck: "false",
                    value: "{text}",
                    onfocus: move |_| focused.set(true),
                    oninput: move |event| {
                        text.set(event.value());
                        focused.set(true);
                    },
                    onkeydown: move |event| {
                        let count = hits.peek().len().max(1);
                        let now = *at.peek();
                        match dom::key(&event).as_str() {
                            "ArrowDown" => at.set((now + 1) % count),
                            "ArrowUp" => at.set((now + count - 1) % count),
                            "Enter" => take(now),
                            "Escape" => {
                                event.stop_propagation();
                                finish();
                            }
                            _ => return,
                        }
                        event.prevent_default();
                    },
                    onblur: move |_| focused.set(false),
                }
                kbd { class: "wide-only", "Ctrl K" }
            }
        }
    }
}

#[component]
fn HitRow(
    hit: Hit,
    index: usize,
    on: bool,
    onpick: EventHandler<usize>,
    onover: EventHandler<usize>,
) -> Element {
    let (icon, title, sub) = match &hit {
        Hit::App(app) => (app.icon, app.title.to_owned(), app.about.to_owned()),
        Hit::File(found) => {
            let place = match found.matched {
                Matched::Name => clock::size(found.size),
                Matched::Text => "in its text".to_owned(),
            };
            (
                apps::files::icon_for(found.path.name()),
                found.path.name().to_owned(),
                format!("{} · {place}", found.path),
            )
        }
        Hit::Page { title, .. } => ("settings", (*title).to_owned(), "Settings".to_owned()),
        Hit::Command(command) => ("chevron-right", command.usage.to_owned(), command.about.to_owned()),
    };
    rsx! {
        div {
            id: "hit-{index}",
            class: if on { "hit on" } else { "hit" },
            role: "option",
            "aria-selected": on.to_string(),
            // Before the input loses the focus, so that the list is still there.
            onpointerdown: move |event| {
                event.prevent_default();
                onpick.call(index);
            },
            onpointerenter: move |_| onover.call(index),
            Icon { name: icon }
            b { "{title}" }
            small { "{sub}" }
        }
    }
}
