//! Pages about the person, the look and what is kept.

use dioxus::prelude::*;
use shared_types::wire::Storage;
use wasm_bindgen::JsCast;

use crate::api;
use crate::changes::use_changes;
use crate::clock;
use crate::desktop::prompt_commands::sign_out;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{LoadError, Loading};
use crate::state::app_state;

#[component]
pub(crate) fn Profile() -> Element {
    let app_state = app_state();
    let Some(me) = app_state.me.read().clone() else { return rsx! {} };
    let kind = if me.owner { "Owner of this computer" } else { "User of this computer" };
    let initial = me.name.chars().next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    rsx! {
        div { class: "card-row",
            div { class: "avatar", "aria-hidden": "true", "{initial}" }
            div { class: "two", b { "{me.name}" } small { "{kind} · {me.user}" } }
        }
        dl { class: "facts",
            dt { "Terminal" } dd { if me.shell { "offered" } else { "not offered to this account" } }
            dt { "Version" } dd { "{me.version}" }
        }
        button { class: "btn", onclick: move |_| sign_out(app_state), Icon { name: "log-out" } "Sign out" }
    }
}

#[component]
pub(crate) fn Appearance() -> Element {
    let app_state = app_state();
    let current = app_state.setting_as("theme").unwrap_or_else(|| "system".to_owned());
    rsx! {
        p { class: "quiet", "Light and dark are the same desktop; system follows this machine." }
        div { class: "themes", role: "radiogroup", "aria-label": "Theme",
            for (id, title, icon) in [("system", "System", "sun-moon"), ("light", "Light", "sun"), ("dark", "Dark", "moon")] {
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
                ("Log", use_.log, "a"),
                ("Large contents", use_.blobs, "p"),
                ("Checkpoints", use_.checkpoints, "i"),
                ("Lists and search", use_.views, "s"),
            ];
            let total = parts.iter().map(|(_, bytes, _)| bytes).sum::<u64>().max(1);
            rsx! {
                p { "The workspace holds {clock::plural(use_.files, \"file\")}, {clock::size(use_.workspace)}. Its history is {clock::plural(use_.operations, \"operation\")} in {clock::plural(use_.events, \"event\")}, and takes {clock::size(total)} on disk." }
                div { class: "meter", role: "img", "aria-label": "How the disk space is used",
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
        h2 { "Export and import" }
        p { class: "quiet", "An export is one file with everything: the log, the contents, the files. An import adds the files of another export to this workspace or to a folder in it, as one operation that can be undone." }
        div { class: "line",
            button { class: "btn", onclick: move |_| dom::download(&api::url("/export"), "choir-export.zip"), Icon { name: "download" } "Export everything" }
            input { class: "field", placeholder: "Folder to import into, if any", "aria-label": "Folder to import into", value: "{folder}", oninput: move |e| folder.set(e.value()) }
            button { class: "btn", disabled: busy(), onclick: move |_| if let Some(input) = dom::by_id("import-file") { input.click() }, Icon { name: "upload" } if busy() { "Importing…" } else { "Import…" } }
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
                        app_state.report_operation("Imported", &answer);
                    });
                },
            }
        }
    }
}
