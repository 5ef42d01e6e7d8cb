//! A key of the vault, of which only a hint is ever shown, with a form to set it.

use dioxus::prelude::*;
use serde_json::Value;

use super::reading::act;
use crate::api::{self, Method};
use crate::choir::read::{moment, name, object, text};
use crate::clock;
use crate::desk::desk;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{IconButton, SOME_WORDS, either, press};

/// The key of that name, if the vault has one.
pub(super) fn known(keys: &[Value], name: &str) -> Value {
    keys.iter().find(|key| text(key, "provider") == name).cloned().unwrap_or_default()
}

/// A provider by the name that it gives itself.
pub(super) fn brand(provider: &str) -> String {
    match provider {
        "openai" => "OpenAI".into(),
        "zai" => "Z.ai".into(),
        "bedrock" => "Amazon Bedrock".into(),
        "moonshot" => "Kimi (Moonshot)".into(),
        "searxng" => "SearXNG".into(),
        "local" => "This machine".into(),
        other => name(other),
    }
}

/// The key of a provider: only a hint of it is ever shown.
#[component]
pub(super) fn Key(provider: String, known: Value, turn: Signal<u32>) -> Element {
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
                input { class: "field mono", r#type: "password", autocomplete: "off", placeholder: "Key", "aria-label": "Key of {provider}", required: true, pattern: SOME_WORDS, value: "{secret}", oninput: move |e| secret.set(e.value()) }
                if owner {
                    label { class: "check", input { r#type: "checkbox", checked: shared(), onchange: move |e| shared.set(e.checked()) } "for everybody on this computer" }
                }
                button { class: "btn pri", r#type: "submit", "Keep" }
            }
        }
    }
}
