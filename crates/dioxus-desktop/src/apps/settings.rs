//! Settings: profile, appearance, sign-in, models, services and storage. Each page is one component.

mod account;
mod budgets;
mod keys;
pub(crate) mod models;
mod pages;
mod people;
mod reading;
mod services;
pub(crate) mod webauthn;

use dioxus::prelude::*;
use shared_types::WindowId;

use crate::icons::Icon;
use crate::state::app_state;
use crate::words;

const PAGES: &[(&str, &str, &str)] = &[
    ("profile", words::settings::PROFILE, "user"),
    ("appearance", words::settings::APPEARANCE, "sun-moon"),
    ("models", words::settings::MODELS, "sparkles"),
    ("services", words::settings::SERVICES, "plug"),
    ("passkeys", words::settings::PASSKEYS, "key-round"),
    ("sessions", words::settings::SESSIONS, "monitor"),
    ("tokens", words::settings::TOKENS, "ticket"),
    ("recovery", words::settings::RECOVERY_CODES, "shield-check"),
    (PEOPLE, words::settings::PEOPLE, "users"),
    ("storage", words::settings::STORAGE, "hard-drive"),
];
/// Only the owner can invite people.
const PEOPLE: &str = "people";

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let mut page = use_signal(|| "profile".to_owned());
    let mut seen = use_signal(|| None::<String>);
    let owner = app_state().me.read().as_ref().is_some_and(|me| me.owner);
    let pages = || PAGES.iter().filter(move |(id, ..)| owner || *id != PEOPLE);
    // Asked for again with another page, the same window turns to it.
    if shows.is_some() && *seen.peek() != shows {
        seen.set(shows.clone());
        if let Some(name) = shows.filter(|name| pages().any(|(id, ..)| id == name)) {
            page.set(name);
        }
    }
    let title =
        PAGES.iter().find(|(id, ..)| *id == *page.read()).map(|(_, title, _)| *title).unwrap_or_default();
    rsx! {
        div { class: "settings",
            nav { class: "rail", "aria-label": words::settings::PAGES,
                for (id, title, icon) in pages() {
                    button {
                        key: "{id}",
                        class: if *page.read() == *id { "branch on" } else { "branch" },
                        "aria-current": (*page.read() == *id).then_some("page"),
                        onclick: move |_| page.set((*id).to_owned()),
                        Icon { name: icon }
                        span { "{title}" }
                    }
                }
            }
            div { class: "page scroll", id: "settings-{window}",
                h1 { "{title}" }
                match page.read().as_str() {
                    "appearance" => rsx! { pages::Appearance {} },
                    "models" => rsx! { models::Models {} },
                    "services" => rsx! { services::Services {} },
                    "passkeys" => rsx! { account::Passkeys {} },
                    "sessions" => rsx! { account::Sessions {} },
                    "tokens" => rsx! { account::Tokens {} },
                    "recovery" => rsx! { account::Recovery {} },
                    PEOPLE => rsx! { people::People {} },
                    "storage" => rsx! { pages::StorageUse {} },
                    _ => rsx! { pages::Profile {} },
                }
            }
        }
    }
}
