//! A key of the vault, of which only a hint is ever shown, with a form to set it.

use dioxus::prelude::*;
use shared_types::wire::{KeyEntry, KeyScope, NewKey};

use super::reading::act;
use crate::api::{self, Method};
use crate::clock;
use crate::dom;
use crate::format::role_name;
use crate::icons::Icon;
use crate::state::app_state;
use crate::widgets::{IconButton, SOME_WORDS, button, choose_text};
use crate::words;

/// The key of that name, if the vault has one.
pub(super) fn known(keys: &[KeyEntry], name: &str) -> Option<KeyEntry> {
    keys.iter().find(|key| key.provider == name).cloned()
}

/// A provider by the name that it gives itself.
pub(super) fn brand(provider: &str) -> String {
    match provider {
        "openai" => words::settings::models::OPENAI.into(),
        "zai" => words::settings::models::ZAI.into(),
        "bedrock" => words::settings::models::BEDROCK.into(),
        "moonshot" => words::settings::models::MOONSHOT.into(),
        "searxng" => words::settings::models::SEARXNG.into(),
        "local" => words::settings::models::THIS_MACHINE.into(),
        other => role_name(other),
    }
}

/// The key of a provider: only a hint of it is ever shown.
#[component]
pub(super) fn Key(provider: String, known: Option<KeyEntry>, refresh: Signal<u32>) -> Element {
    let mut open = use_signal(|| false);
    let mut secret = use_signal(String::new);
    let mut shared = use_signal(|| false);
    let owner = app_state().me.read().as_ref().is_some_and(|me| me.owner);
    let has = known.is_some();
    let path = format!("/keys/{}", dom::encode(&provider));
    let everybody = known.as_ref().is_some_and(|key| key.scope == KeyScope::Shared);
    let remove = api::query(&path, &[("shared", choose_text(everybody, "true", ""))]);
    let about = match &known {
        None => words::settings::models::NO_KEY.to_owned(),
        Some(key) if !key.readable => words::settings::models::KEY_UNREADABLE.to_owned(),
        Some(key) => {
            let hint = key.hint.as_ref().map(|hint| hint.trim_start_matches('…'));
            words::settings::models::key_set(hint, &clock::when(key.set), everybody)
        }
    };
    rsx! {
        li {
            Icon { name: "key-round" }
            div { class: "two", b { {brand(&provider)} } small { "{about}" } }
            {button("btn", "", if has { {words::settings::models::REPLACE_KEY} } else { {words::settings::models::SET_KEY} }, move || open.clone().toggle())}
            if has && (owner || !everybody) {
                IconButton { icon: "trash-2", label: words::settings::models::clear_key(&provider), onclick: move |_| act(api::delete(&remove), words::settings::models::KEY_CLEARED, refresh) }
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
                    act(api::send_json(Method::Put, &path, &body), words::settings::models::KEY_KEPT, refresh);
                },
                input { class: "field mono", r#type: "password", autocomplete: "off", placeholder: words::settings::models::KEY, "aria-label": words::settings::models::key_of(&provider), required: true, pattern: SOME_WORDS, value: "{secret}", oninput: move |e| secret.set(e.value()) }
                if owner {
                    label { class: "check", input { r#type: "checkbox", checked: shared(), onchange: move |e| shared.set(e.checked()) } {words::settings::models::FOR_EVERYBODY} }
                }
                button { class: "btn pri", r#type: "submit", "Keep" }
            }
        }
    }
}
