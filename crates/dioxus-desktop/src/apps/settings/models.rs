//! Settings, Models: keys of providers, which model each role gets, what runs may take, the model that runs here, and
//! what was allowed for more than once.

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use serde_json::Value;

use crate::api::{self, Method};
use crate::apps::runs::share;
use crate::choir::read::{allows, cost, is, items, moment, money, name, number, object, price, text};
use crate::clock;
use crate::desk::{Offer, desk};
use crate::dom;
use crate::icons::Icon;
use crate::parts::{IconButton, Trouble, Waiting, either, press};

/// Reads something again when it may have changed, and at a press on this page.
fn use_read(path: &'static str, turn: Signal<u32>) -> Signal<Option<api::Answer<Value>>> {
    let desk = desk();
    api::use_fetched::<Value>(move || {
        let _ = (desk.projected.read(), turn.read());
        path.to_owned()
    })
}

/// Does something, says so, and reads the page again.
fn act(method: Method, path: String, body: Value, said: &'static str, mut turn: Signal<u32>) {
    let desk = desk();
    api::run(async move {
        match api::call(method, path, body).await {
            Ok(_) if said.is_empty() => {}
            Ok(_) => desk.toast(said, false, Offer::Nothing),
            Err(failure) => desk.fail(&failure),
        }
        *turn.write() += 1;
    });
}

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
    let keys = match &*keys.read() {
        Some(Ok(Value::Array(keys))) => keys.clone(),
        _ => Vec::new(),
    };
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
                Key { key: "{provider}", known: keys.iter().find(|key| text(key, "provider") == provider).cloned().unwrap_or_default(), provider, turn }
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

/// A provider by the name that it gives itself.
fn brand(provider: &str) -> String {
    match provider {
        "openai" => "OpenAI".into(),
        "zai" => "Z.ai".into(),
        "bedrock" => "Amazon Bedrock".into(),
        "moonshot" => "Kimi (Moonshot)".into(),
        "local" => "This machine".into(),
        other => name(other),
    }
}

/// The key of a provider: only a hint of it is ever shown.
#[component]
fn Key(provider: String, known: Value, turn: Signal<u32>) -> Element {
    let mut open = use_signal(|| false);
    let mut secret = use_signal(String::new);
    let mut shared = use_signal(|| false);
    let owner = desk().me.read().as_ref().is_some_and(|me| me.owner);
    let has = !known.is_null();
    let path = format!("/keys/{}", dom::encode(&provider));
    let everybody = text(&known, "scope") == "shared";
    let remove = api::query(&path, &[("shared", either(everybody, "true", ""))]);
    let about = if known.get("readable").and_then(Value::as_bool) == Some(false) {
        "it can no longer be opened: set it again".to_owned()
    } else if has {
        let when = moment(&known, either(known.get("set").is_some(), "set", "set_at"));
        let hint = Some(text(&known, "hint"))
            .filter(|hint| !hint.is_empty())
            .map(|hint| format!("…{} · ", hint.trim_start_matches('…')));
        format!(
            "{}set {}{}",
            hint.unwrap_or_default(),
            clock::when(when),
            either(everybody, " · for everybody here", "")
        )
    } else {
        "no key".to_owned()
    };
    rsx! {
        li {
            Icon { name: "key-round" }
            div { class: "two", b { {brand(&provider)} } small { "{about}" } }
            {press("btn", "", if has { "Replace" } else { "Set a key" }, move || open.clone().toggle())}
            if has && (owner || !everybody) {
                IconButton { icon: "trash-2", label: "Clear the key of {provider}", onclick: move |_| act(Method::Delete, remove.clone(), Value::Null, "Key cleared", turn) }
            }
        }
        if open() {
            form {
                class: "line inset",
                onsubmit: move |event| {
                    event.prevent_default();
                    let body = object(&[("secret", secret.peek().trim().into()), ("shared", (owner && *shared.peek()).into())]);
                    secret.set(String::new());
                    open.set(false);
                    act(Method::Put, path.clone(), body, "Key kept", turn);
                },
                input { class: "field mono", r#type: "password", autocomplete: "off", placeholder: "Key", "aria-label": "Key of {provider}", value: "{secret}", oninput: move |e| secret.set(e.value()) }
                if owner {
                    label { class: "check", input { r#type: "checkbox", checked: shared(), onchange: move |e| shared.set(e.checked()) } "for everybody on this computer" }
                }
                button { class: "btn pri", r#type: "submit", disabled: secret.read().trim().is_empty(), "Keep" }
            }
        }
    }
}

/// The model that runs on this machine: what it would take to have it, how far that is, and how fast it answers.
fn local(model: &Value, turn: Signal<u32>) -> Element {
    if model.is_null() {
        return rsx! {};
    }
    let (bytes, here) = (number(model, "bytes"), number(model, "here"));
    let fetching = is(model, "fetching");
    let speed = model.get("speed").and_then(Value::as_array).map(|pair| {
        let per_second = |at: usize| pair.get(at).and_then(Value::as_u64).unwrap_or_default() / 100;
        format!("Measured here: reads {} and writes {} tokens in a second.", per_second(0), per_second(1))
    });
    let about = match (is(model, "ready"), fetching) {
        (true, _) => speed.unwrap_or_else(|| "Ready. It has not been timed on this machine yet.".into()),
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
                {press("btn pri", "download", format!("Fetch {}", clock::size(bytes - here.min(bytes))), go("fetch"))}
            }
        }
        if !obstacle.is_empty() { p { class: "note-line warn", Icon { name: "triangle-alert" } span { "{obstacle}" } } }
    }
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
            said.set(match answer {
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
            });
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

/// What a run may take, and all of a day.
fn budgets(list: &Value) -> Element {
    let desk = desk();
    let (most, today) = (number(&list["daily"], "micros"), number(&list["today"], "micros"));
    let full = share(today, most);
    rsx! {
        p { "Today: " {cost(&list["today"])} if number(&list["today"], "tokens") == 0 { "nothing yet" } }
        if most > 0 {
            div { class: "meter", role: "meter", "aria-label": "Spent today", "aria-valuenow": "{full}", i { class: if full >= 90 { "w" } else { "a" }, width: "{full}%" } }
        }
        h3 { "For each run" }
        Budget { value: list["budget"].clone(), verb: "Keep", onset: move |value| desk.set("runs.budget", value) }
        h3 { "For a day" }
        Budget { value: list["daily"].clone(), verb: "Keep", onset: move |value| desk.set("runs.daily", value) }
    }
}

/// The bounds of a budget: name, field, and how many of what is stored make one of what is shown.
const BOUNDS: [(&str, &str, u64); 4] = [
    ("Dollars", "micros", 10_000),
    ("Minutes", "seconds", 60),
    ("Thousand tokens", "tokens", 1000),
    ("Steps", "steps", 1),
];

/// Four bounds to fill in; what is left empty is not bounded.
#[component]
pub(crate) fn Budget(value: Value, verb: &'static str, onset: EventHandler<Value>) -> Element {
    // As it is typed, by field.
    let mut typed = use_signal(|| object(&[]));
    let shown =
        |key: &str, unit: u64| match (typed.read().get(key).and_then(Value::as_str), number(&value, key)) {
            (Some(text), _) => text.to_owned(),
            (None, 0) => String::new(),
            (None, n) if key == "micros" => format!("{}.{:02}", n / unit / 100, n / unit % 100),
            (None, n) => n.div_ceil(unit).to_string(),
        };
    let current = value.clone();
    let keep = move |event: FormEvent| {
        event.prevent_default();
        let mut next = current.clone();
        if !next.is_object() {
            next = object(&[]);
        }
        for (_, key, unit) in BOUNDS {
            let Some(text) = typed.peek().get(key).and_then(Value::as_str).map(str::to_owned) else {
                continue;
            };
            let n = if key == "micros" { cents(&text) } else { text.trim().parse::<u64>().ok() };
            let Some(fields) = next.as_object_mut() else { continue };
            match n {
                Some(n) => drop(fields.insert(key.to_owned(), n.saturating_mul(unit).into())),
                None => drop(fields.remove(key)),
            }
        }
        typed.set(object(&[]));
        onset.call(next);
    };
    rsx! {
        form { class: "line budget", onsubmit: keep,
            for (label, key, unit) in BOUNDS {
                label { "{label}"
                    input { class: "field", inputmode: "decimal", placeholder: "no limit", value: shown(key, unit),
                        oninput: move |e| if let Some(fields) = typed.write().as_object_mut() { fields.insert(key.to_owned(), e.value().into()); },
                    }
                }
            }
            button { class: if verb == "Keep" { "btn" } else { "btn pri" }, r#type: "submit", "{verb}" }
            small { class: "quiet", "Now: " {allows(&value)} }
        }
    }
}

/// `1.5` as 150.
fn cents(text: &str) -> Option<u64> {
    let (whole, part) = text.trim().split_once(['.', ',']).unwrap_or((text.trim(), ""));
    let part: String = part.chars().chain("00".chars()).take(2).collect();
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    whole.checked_mul(100)?.checked_add(part.parse().ok()?).filter(|_| !text.trim().is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_as_people_write_them() {
        assert_eq!(cents("1.5"), Some(150));
        assert_eq!(cents("1,25"), Some(125));
        assert_eq!(cents(".5"), Some(50));
        assert_eq!(cents("20"), Some(2000));
        assert_eq!(cents(" "), None);
        assert_eq!(cents("x"), None);
    }
}
