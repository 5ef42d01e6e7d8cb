//! A key of the vault, of which only a hint is ever shown, with a form to set it.

use dioxus::prelude::*;
use shared_types::wire::{KeyEntry, KeyScope, NewKey};

use super::reading::act;
use crate::api::{self, Method};
use crate::clock;
use crate::dom;
use crate::format::role_name;
use crate::icons::Icon;
use crate::parts::{IconButton, SOME_WORDS, either, press};
use crate::state::app_state;

/// The key of that name, if the vault has one.
pub(super) fn known(keys: &[KeyEntry], name: &str) -> Option<KeyEntry> {
    keys.iter().find(|key| key.provider == name).cloned()
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
        other => role_name(other),
    }
}

/// The key of a provider: only a hint of it is ever shown.
#[component]
pub(super) fn Key(provider: String, known: Option<KeyEntry>, turn: Signal<u32>) -> Element {
    let mut open = use_signal(|| false);
    let mut secret = use_signal(String::new);
    let mut shared = use_signal(|| false);
    let owner = app_state().me.read().as_ref().is_some_and(|me| me.owner);
    let has = known.is_some();
    let path = format!("/keys/{}", dom::encode(&provider));
    let everybody = known.as_ref().is_some_and(|key| key.scope == KeyScope::Shared);
    let remove = api::query(&path, &[("shared", either(everybody, "true", ""))]);
    let about = match &known {
        None => "no key".to_owned(),
        Some(key) if !key.readable => "it can no longer be opened: set it again".to_owned(),
        Some(key) => {
            let hint = key.hint.as_ref().map(|hint| format!("…{} · ", hint.trim_start_matches('…')));
            let shared = either(everybody, " · for everybody here", "");
            format!("{}set {}{shared}", hint.unwrap_or_default(), clock::when(key.set))
        }
    };
    rsx! {
        li {
            Icon { name: "key-round" }
            div { class: "two", b { {brand(&provider)} } small { "{about}" } }
            {press("btn", "", if has { "Replace" } else { "Set a key" }, move || open.clone().toggle())}
            if has && (owner || !everybody) {
                IconButton { icon: "trash-2", label: "Clear the key of {provider}", onclick: move |_| act(api::delete(&remove), "Key cleared", turn) }
            }
        }
        if open() {
            form {
                class: "line inset",
                onsubmit: move |event| {
                    event.prevent_default();
                    let body = NewKey { secret: secret.peek().trim().to_owned(), shared: owner && *shared.peek() };
                    secret.set(String::new());
                    open.set(false);
                    act(api::send_json(Method::Put, &path, &body), "Key kept", turn);
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
