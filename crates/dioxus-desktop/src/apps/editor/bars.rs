//! The bars above the text: one reports that the file changed elsewhere, the other asks for the name of an untitled text.

use dioxus::prelude::*;

use super::document::Document;
use super::file::SavedVersion;
use crate::api;
use crate::dom;
use crate::icons::Icon;
use crate::state::app_state;
use crate::widgets::SOME_WORDS;
use crate::words;

/// The file changed elsewhere, and the person has changes of their own.
#[component]
pub(super) fn Stale(document: Document, on_disk: SavedVersion, onmerge: EventHandler<()>) -> Element {
    let app_state = app_state();
    let deleted = on_disk == SavedVersion::Absent;
    let words = if deleted { words::editor::FILE_DELETED } else { words::editor::FILE_CHANGED };
    let keep = move |_| {
        document.build_on(on_disk.clone());
        api::run(async move {
            document.save(app_state).await;
        });
    };
    rsx! {
        div { class: "bar warn", role: "alert",
            Icon { name: "triangle-alert" }
            span { "{words}" }
            if deleted {
                button { class: "btn pri", r#type: "button", onclick: keep, {words::editor::SAVE_AGAIN} }
            } else {
                button { class: "btn pri", r#type: "button", onclick: move |_| onmerge.call(()), {words::editor::MERGE} }
                button { class: "btn", r#type: "button", onclick: move |_| api::run(document.reload()), {words::editor::RELOAD} }
                button { class: "btn", r#type: "button", onclick: keep, {words::editor::OVERWRITE} }
            }
        }
    }
}

/// Asks for the path of a text that has none.
#[component]
pub(super) fn Naming(document: Document, onclose: EventHandler<()>) -> Element {
    let app_state = app_state();
    let mut name = use_signal(|| "untitled.md".to_owned());
    let mut refused = use_signal(|| None::<String>);
    let mut busy = use_signal(|| false);
    let field = format!("name-{}", document.window);
    let focused = field.clone();
    use_effect(move || dom::focus_soon(focused.clone()));
    rsx! {
        form {
            class: "bar",
            "aria-label": words::editor::SAVE_AS,
            onsubmit: move |event| {
                event.prevent_default();
                busy.set(true);
                spawn(async move {
                    let wanted = name.peek().clone();
                    let saved = document.save_as(app_state, &wanted).await;
                    busy.set(false);
                    match saved {
                        Ok(()) => onclose.call(()),
                        Err(why) => refused.set(Some(why)),
                    }
                });
            },
            onkeydown: move |event| {
                if event.key() == Key::Escape {
                    event.stop_propagation();
                    onclose.call(());
                }
            },
            label { r#for: "{field}", {words::editor::SAVE_AS} }
            input {
                class: "field mono",
                id: "{field}",
                required: true,
                pattern: SOME_WORDS,
                value: "{name}",
                autocomplete: "off",
                spellcheck: "false",
                oninput: move |event| name.set(event.value()),
            }
            if let Some(why) = refused() {
                span { class: "trouble", role: "alert", "{why}" }
            }
            button { class: "btn pri", r#type: "submit", disabled: busy(), {words::editor::SAVE} }
            button { class: "btn", r#type: "button", onclick: move |_| onclose.call(()), {words::CANCEL} }
        }
    }
}
