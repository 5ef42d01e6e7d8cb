//! Help: searchable topics, the shortcuts, and the health of the server.

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::wire::{Health, PartKind, PartState, PartsReport};

use crate::api;
use crate::icons::Icon;
use crate::state::{Overlay, app_state};
use crate::widgets::ShortcutTable;
use crate::words;

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let _ = (window, shows);
    let mut app_state = app_state();
    let mut words = use_signal(String::new);
    let health = use_resource(|| async { api::plain("/health").await });
    let needle = words.read().trim().to_lowercase();
    let fits = |title: &str, text: &str| {
        let hay = format!("{title} {text}").to_lowercase();
        needle.split_whitespace().all(|word| hay.contains(word))
    };
    let found: Vec<_> = words::help::SECTIONS.iter().filter(|(title, text)| fits(title, text)).collect();
    let version = app_state.me.read().as_ref().map(|me| me.version.clone()).unwrap_or_default();
    let state = match &*health.read() {
        None => words::help::ASKING.to_owned(),
        Some(Err(failure)) => failure.text(),
        Some(Ok(text)) => match api::read::<Health>(text) {
            Ok(health) => health.status.into_owned(),
            Err(failure) => failure.text(),
        },
    };
    rsx! {
        div { class: "help scroll",
            div { class: "help-top",
                h1 { {words::help::HELP} }
                div { class: "search wide",
                    Icon { name: "search" }
                    input { r#type: "search", placeholder: words::help::SEARCH, "aria-label": words::help::SEARCH, oninput: move |e| words.set(e.value()) }
                }
                button { class: "btn", onclick: move |_| app_state.overlay.set(Overlay::Tour), {words::help::TAKE_THE_TOUR} }
            }
            if found.is_empty() {
                p { class: "quiet", {words::help::NOTHING_FOUND} }
            }
            div { class: "help-sections",
                for (title, text) in found {
                    section { key: "{title}", h3 { "{title}" } p { "{text}" } }
                }
            }
            if needle.is_empty() {
                h2 { {words::help::KEYBOARD_SHORTCUTS} }
                ShortcutTable {}
                h2 { {words::help::HEALTH} }
                Parts {}
                h2 { {words::help::ABOUT} }
                dl { class: "facts",
                    dt { {words::help::VERSION} } dd { "{version}" }
                    dt { {words::help::COMPUTER} } dd { "{state}" }
                    dt { {words::help::ICONS} } dd { {words::help::ICONS_BY} }
                    dt { {words::help::TYPE} } dd { {words::help::TYPE_BY} }
                }
            }
        }
    }
}

/// The supervised parts of the computer, a row for each kind.
#[component]
fn Parts() -> Element {
    let report = use_resource(|| async { api::get::<PartsReport>("/parts").await });
    let report = match &*report.read() {
        None => return rsx! { p { class: "quiet", {words::help::ASKING} } },
        Some(Err(failure)) => return rsx! { p { class: "quiet", {failure.text()} } },
        Some(Ok(report)) => report.clone(),
    };
    rsx! {
        p { class: "quiet", {words::help::HEALTH_INTRO} }
        table { class: "parts",
            thead {
                tr { th { {words::help::PART} } th { {words::help::STATE} } th { {words::help::IF_IT_FAILS} } }
            }
            tbody {
                for rule in &report.rules {
                    tr { key: "{rule.name}",
                        td { "{rule.name}" }
                        td { {state_of(&report, rule.kind)} }
                        td { "{rule.restart}; {rule.work}" }
                    }
                }
            }
        }
    }
}

/// How all parts of a kind are doing, in a few words.
fn state_of(report: &PartsReport, kind: PartKind) -> String {
    let parts = || report.parts.iter().filter(|part| part.kind == kind);
    let failed = parts().find(|part| part.state == PartState::Restarting);
    if let Some(failure) = failed.and_then(|part| part.last_failure.as_deref()) {
        return words::help::restarting(failure);
    }
    let restarts: u32 = parts().map(|part| part.restarts).sum();
    let running = words::help::running(parts().count());
    if restarts == 0 { running } else { format!("{running}, {}", words::help::restarts(restarts)) }
}
