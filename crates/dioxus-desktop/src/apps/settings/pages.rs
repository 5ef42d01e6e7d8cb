//! Pages about the profile, the appearance and storage.

use dioxus::prelude::*;
use shared_types::wire::Storage;
use wasm_bindgen::JsCast;

use crate::api;
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::state::app_state;
use crate::state::use_changes;
use crate::widgets::{LoadError, Loading};
use crate::words;

#[component]
pub(crate) fn Profile() -> Element {
    let app_state = app_state();
    let Some(me) = app_state.me.read().clone() else { return rsx! {} };
    let kind = if me.owner { words::settings::OWNER } else { words::settings::USER };
    let initial = me.name.chars().next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    rsx! {
        div { class: "card-row",
            div { class: "avatar", "aria-hidden": "true", "{initial}" }
            div { class: "two", b { "{me.name}" } small { "{kind} · {me.user}" } }
        }
        dl { class: "facts",
            dt { {words::settings::TERMINAL} } dd { if me.shell { {words::settings::OFFERED} } else { {words::settings::NOT_OFFERED} } }
            dt { {words::settings::VERSION} } dd { "{me.version}" }
        }
        button { class: "btn", onclick: move |_| app_state.sign_out(), Icon { name: "log-out" } {words::settings::SIGN_OUT} }
    }
}

#[component]
pub(crate) fn Appearance() -> Element {
    let app_state = app_state();
    let current = app_state.setting_as("theme").unwrap_or_else(|| "system".to_owned());
    rsx! {
        p { class: "quiet", {words::settings::THEMES_ABOUT} }
        div { class: "themes", role: "radiogroup", "aria-label": words::settings::THEME,
            for (id, title, icon) in [("system", words::settings::SYSTEM, "sun-moon"), ("light", words::settings::LIGHT, "sun"), ("dark", words::settings::DARK, "moon")] {
                button {
                    key: "{id}",
                    class: if current == id { "theme on" } else { "theme" },
                    role: "radio",
                    "aria-checked": (current == id).to_string(),
                    onclick: move |_| app_state.set("theme", id.into()),
                    div { class: "swatch {id}", i {} i {} }
                    span { Icon { name: icon } "{title}" }
                }
            }
        }
    }
}

#[component]
pub(crate) fn StorageUse() -> Element {
    let app_state = app_state();
    // Every event takes space.
    let changes = use_changes(|_| true);
    let storage = api::use_fetched::<Storage>(move || {
        drop(changes.read());
        "/storage".to_owned()
    });
    let mut busy = use_signal(|| false);
    let mut folder = use_signal(String::new);
    let body = match &*storage.read() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
        Some(Ok(use_)) => {
            let parts = [
                (words::settings::LOG, use_.log, "a"),
                (words::settings::LARGE_CONTENTS, use_.blobs, "p"),
                (words::settings::CHECKPOINTS, use_.checkpoints, "i"),
                (words::settings::LISTS_AND_SEARCH, use_.views, "s"),
            ];
            let total = parts.iter().map(|(_, bytes, _)| bytes).sum::<u64>().max(1);
            rsx! {
                p { {words::settings::storage_use(use_.files, use_.workspace, use_.operations, use_.events, total)} }
                div { class: "meter", role: "img", "aria-label": words::settings::DISK_SPACE,
                    for (name, bytes, class) in parts {
                        i { key: "{name}", class, width: "{bytes as f64 * 100.0 / total as f64}%" }
                    }
                }
                dl { class: "facts",
                    for (name, bytes, class) in parts {
                        dt { i { class: "dot {class}" } "{name}" }
                        dd { "{clock::size(bytes)}" }
                    }
                }
            }
        }
    };
    rsx! {
        {body}
        h2 { {words::settings::EXPORT_AND_IMPORT} }
        p { class: "quiet", {words::settings::EXPORT_AND_IMPORT_ABOUT} }
        div { class: "line",
            button { class: "btn", onclick: move |_| dom::download(&api::url("/export"), "choir-export.zip"), Icon { name: "download" } {words::settings::EXPORT} }
            input { class: "field", placeholder: words::settings::IMPORT_FOLDER_EXAMPLE, "aria-label": words::settings::IMPORT_FOLDER, value: "{folder}", oninput: move |e| folder.set(e.value()) }
            button { class: "btn", disabled: busy(), onclick: move |_| if let Some(input) = dom::by_id("import-file") { input.click() }, Icon { name: "upload" } if busy() { {words::settings::IMPORTING} } else { {words::settings::IMPORT} } }
            input {
                id: "import-file",
                class: "away",
                r#type: "file",
                accept: ".zip",
                tabindex: "-1",
                "aria-hidden": "true",
                onchange: move |_| {
                    let Some(input) = dom::by_id("import-file").and_then(|e| e.dyn_into::<web_sys::HtmlInputElement>().ok()) else { return };
                    let Some(file) = input.files().and_then(|f| f.get(0)) else { return };
                    // Otherwise the same file could not be chosen again.
                    input.set_value("");
                    busy.set(true);
                    spawn(async move {
                        let route = api::query("/import", &[("into", folder.peek().trim().trim_matches('/'))]);
                        let answer = api::post_file(&route, "application/zip", file).await;
                        busy.set(false);
                        app_state.report_operation(words::settings::IMPORTED, &answer);
                    });
                },
            }
        }
    }
}
