//! Settings, Models: keys of providers, which model each role gets, what runs may take, the model that runs here, and
//! what was allowed for more than once.

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use serde_json::Value;

pub(crate) use super::budgets::Budget;
use super::budgets::budgets;
use super::keys::{Key, brand, known};
use super::reading::{act, list_of, use_read};
use crate::api::{self, Method};
use crate::choir::read::{is, items, money, name, number, object, price, text};
use crate::clock;
use crate::desk::desk;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{IconButton, Trouble, Waiting, press};

#[component]
pub(crate) fn Models() -> Element {
    let turn = use_signal(|| 0u32);
    let models = use_read("/models", turn);
    let keys = use_read("/keys", turn);
    let grants = use_read("/grants", turn);
    // Nothing tells how far a download is: it is looked at while somebody looks on.
    use_effect(move || {
        let mut turn = turn;
        if matches!(&*models.read(), Some(Ok(list)) if is(&list["local"], "fetching")) {
            spawn(async move {
                TimeoutFuture::new(1000).await;
                *turn.write() += 1;
            });
        }
    });
    let list = match &*models.read() {
        None => return rsx! { Waiting {} },
        Some(Err(failure)) => return rsx! { Trouble { failure: failure.clone() } },
        Some(Ok(list)) => list.clone(),
    };
    let keys = list_of(&keys);
    let grants = match &*grants.read() {
        Some(Ok(grants)) => items(grants, "grants").to_vec(),
        _ => Vec::new(),
    };
    let mut providers: Vec<String> =
        items(&list, "models").iter().map(|model| text(model, "provider").to_owned()).collect();
    providers.extend(keys.iter().map(|key| text(key, "provider").to_owned()));
    let all = std::mem::take(&mut providers);
    // What runs here needs no key.
    for provider in all {
        if !["local", "ollama"].contains(&provider.as_str()) && !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    rsx! {
        p { class: "quiet", "Which models answer, with whose keys, and what they may spend. A key is kept encrypted on this computer; no agent, cell or log ever sees it." }
        h2 { "Keys" }
        ul { class: "things",
            for provider in providers {
                Key { key: "{provider}", known: known(&keys, &provider), provider, turn }
            }
        }
        {local(&list["local"], turn)}
        h2 { "Roles" }
        {roles(&list)}
        h2 { "Models" }
        ul { class: "things",
            for model in items(&list, "models") { Tried { key: "{text(model, \"name\")}", model: model.clone() } }
        }
        h2 { "Budgets" }
        {budgets(&list)}
        h2 { "Permissions" }
        {permissions(&grants, turn)}
    }
}

/// The model that runs on this machine: what it would take to have it, how far that is, and how fast it answers.
fn local(model: &Value, turn: Signal<u32>) -> Element {
    if model.is_null() {
        return rsx! {};
    }
    let (bytes, here) = (number(model, "bytes"), number(model, "here"));
    let fetching = is(model, "fetching");
    let about = match (is(model, "ready"), fetching) {
        (true, _) => pace(model),
        (false, true) => format!("{} of {}", clock::size(here), clock::size(bytes)),
        (false, false) => format!(
            "Runs on this machine, needs no key and costs nothing; it is slow and works alone. To have it, {} are downloaded once and checked.",
            clock::size(bytes - here.min(bytes))
        ),
    };
    let obstacle = said_here(text(model, "obstacle"));
    let go = |what: &str| {
        let path = format!("/models/local/{what}");
        move || act(Method::Post, path.clone(), object(&[]), "", turn)
    };
    rsx! {
        h2 { "On this machine" }
        div { class: "local",
            Icon { name: "hard-drive" }
            div { class: "two", b { {text(model, "name")} } small { "{about}" } }
            if fetching {
                progress { max: "{bytes}", value: "{here}", "aria-label": "Download" }
                {press("btn", "square", "Stop", go("stop"))}
            } else if !is(model, "ready") {
                if !is(model, "declined") { {press("btn", "x", "Decline", go("decline"))} }
                {press("btn pri", "download", format!("Fetch {}", clock::size(bytes - here.min(bytes))), go("fetch"))}
            }
        }
        if !obstacle.is_empty() { p { class: "note-line warn", Icon { name: "triangle-alert" } span { "{obstacle}" } } }
    }
}

/// How fast the model of this machine is.
pub(crate) fn pace(model: &Value) -> String {
    let per_second = |at: usize| model["speed"][at].as_u64().unwrap_or_default() / 100;
    if model["speed"].is_null() {
        return "Not timed on this machine yet.".into();
    }
    format!("Measured here: reads {} and writes {} tokens in a second.", per_second(0), per_second(1))
}

/// What is said of a model, without where to go: the person is there.
fn said_here(said: &str) -> String {
    said.split_inclusive(". ").filter(|sentence| !sentence.contains("Settings, Models")).collect()
}

/// Which model each role gets.
fn roles(list: &Value) -> Element {
    let desk = desk();
    let models = items(list, "models");
    rsx! {
        ul { class: "things",
            for line in items(list, "roles") {
                li {
                    Icon { name: crate::choir::read::sign(text(line, "role")) }
                    div { class: "two",
                        b { {name(text(line, "role"))} }
                        small {
                            {match (text(line, "gets"), text(line, "model")) {
                                ("", _) => "no model can answer for it now".to_owned(),
                                (gets, wanted) if gets == wanted => models.iter().find(|m| text(m, "name") == gets).map(price).unwrap_or_default(),
                                (gets, _) => format!("gets {gets} for now"),
                            }}
                        }
                    }
                    select {
                        "aria-label": "Model for the {text(line, \"role\")}",
                        onchange: {
                            let key = format!("models.role.{}", text(line, "role"));
                            move |e: FormEvent| desk.set(&key, e.value().into())
                        },
                        {options(models, text(line, "model"))}
                    }
                }
            }
        }
    }
}

/// The models to choose from, with what stands in the way of each.
pub(crate) fn options(models: &[Value], chosen: &str) -> Element {
    rsx! {
        if !models.iter().any(|model| text(model, "name") == chosen) && !chosen.is_empty() {
            option { value: chosen, selected: true, {chosen} }
        }
        for model in models {
            option {
                value: text(model, "name"),
                selected: text(model, "name") == chosen,
                disabled: !is(model, "usable") && text(model, "name") != chosen,
                {text(model, "name")}
                if !is(model, "usable") { " (not ready)" }
            }
        }
    }
}

/// A model with a button that tries it.
#[component]
fn Tried(model: Value) -> Element {
    let mut said = use_signal(String::new);
    let path = format!("/models/{}/test", dom::encode(text(&model, "name")));
    let test = move || {
        said.set("Asking…".into());
        let path = path.clone();
        api::run(async move {
            let answer = api::call(Method::Post, path, object(&[])).await;
            let words = match answer {
                Ok(tried) => {
                    let word = if is(&tried, "ok") { "Answered" } else { "Did not answer" };
                    let paid = tried.get("micros").and_then(Value::as_u64).map(money).unwrap_or_default();
                    format!(
                        "{word} in {} ms. {} {paid}",
                        number(&tried, "millis"),
                        said_here(text(&tried, "words"))
                    )
                }
                Err(failure) => failure.text(),
            };
            api::put(said, |said| *said = words);
        });
    };
    let obstacle = said_here(text(&model, "obstacle"));
    rsx! {
        li {
            i { class: if is(&model, "usable") { "dot ready" } else { "dot s" } }
            div { class: "two",
                b { {text(&model, "name")} }
                small { {brand(text(&model, "provider"))} " · " {price(&model)} " · {crate::choir::read::short(number(&model, \"context\"))} context" }
                if !obstacle.is_empty() { small { "{obstacle}" } }
                if !said.read().is_empty() { small { class: "tried", role: "status", "{said}" } }
            }
            {press("btn", "", "Test", move || test.clone()())}
        }
    }
}

/// What was allowed for more than once.
fn permissions(grants: &[Value], turn: Signal<u32>) -> Element {
    rsx! {
        p { class: "quiet", "What you allowed for a run or always. Everything else is asked about again." }
        ul { class: "things",
            for grant in grants {
                li {
                    Icon { name: "shield-check" }
                    div { class: "two",
                        b { code { {text(grant, "pattern")} } }
                        small { {text(grant, "tool")} if text(grant, "run").is_empty() { " · always" } else { " · in one run" } }
                    }
                    IconButton { icon: "trash-2", label: "Revoke {text(grant, \"pattern\")}", onclick: {
                        let path = format!("/grants/{}", text(grant, "grant"));
                        move |_| act(Method::Delete, path.clone(), Value::Null, "Permission revoked", turn)
                    } }
                }
            }
        }
        if grants.is_empty() { p { class: "quiet", "There is none." } }
    }
}
