//! The status bar below the text: the place of the cursor, what kind of text it is, and whether it is saved.

use dioxus::prelude::*;

use super::document::Document;
use crate::js_modules::TextEditor;
use crate::words;

#[component]
pub(super) fn StatusBar(document: Document, onsave: EventHandler<()>) -> Element {
    let status = document.status.read().clone();
    let saved = document.saved_words();
    let language =
        if status.language.is_empty() { words::editor::PLAIN_TEXT } else { status.language.as_str() };
    let wraps = status.wraps;
    rsx! {
        div { class: "status",
            span { class: "saved", role: "status", "{saved}" }
            button {
                class: "btn small",
                r#type: "button",
                title: words::editor::GO_TO_LINE,
                onclick: move |_| document.with(TextEditor::go_to_line),
                "{status.line}:{status.column}"
            }
            if status.selected > 0 {
                span { {words::editor::selected(status.selected)} }
            }
            span { "{language}" }
            span { {words::editor::UTF_8} }
            span { "{status.line_ending}" }
            button {
                class: "btn small",
                r#type: "button",
                "aria-pressed": wraps.to_string(),
                onclick: move |_| document.with(|editor| editor.set_wraps(!wraps)),
                {words::editor::WRAP}
            }
            button {
                class: "btn small pri",
                r#type: "button",
                onclick: move |_| onsave.call(()),
                {words::editor::SAVE}
            }
        }
    }
}
