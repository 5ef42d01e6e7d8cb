//! Editor: text and code. It saves operations that can be undone, follows the file while nothing is unsaved, and never
//! overwrites a change from elsewhere that it has not shown.

mod bars;
mod document;
mod file;
mod merging;
mod status;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use gloo_timers::future::TimeoutFuture;
use shared_types::{FilePath, WindowId};
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use self::bars::{Naming, Stale};
use self::document::{Document, LoadState, Opening, SaveState};
use self::merging::Merging;
use self::status::StatusBar;
use crate::js_modules::TextEditor;
use crate::state::use_changes;
use crate::state::{AppState, ConnectionState, app_state, mark_unsaved};
use crate::widgets::{Empty, LoadError, Loading};
use crate::words;
use crate::{api, dom};

/// Milliseconds in which changes are collected before the file is checked.
const FOLLOW_DELAY_MS: u32 = 200;
/// Milliseconds until a queued save is sent, once the connection is live.
const QUEUE_DELAY_MS: u32 = 1_000;

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let path = shows.as_deref().map(FilePath::parse).transpose();
    match path {
        // Another file is another document, with a history of its own. Keys count in lists only.
        Ok(path) => rsx! {
            for path in [path] {
                Page { key: "{shows.clone().unwrap_or_default()}", window, path }
            }
        },
        Err(error) => {
            rsx! { Empty { icon: "triangle-alert", title: words::editor::NOT_A_PATH, p { "{error}" } } }
        }
    }
}

#[component]
fn Page(window: WindowId, path: Option<FilePath>) -> Element {
    let app_state = app_state();
    let document = use_hook(|| Document::new(app_state, window, path.clone()));
    let mut naming = use_signal(|| false);
    let mut merging = use_signal(|| false);
    let mut absent = use_signal(|| None::<String>);
    use_drop(move || {
        // The editor leaves a draft of unsaved text.
        document.put_editor(None);
        mark_unsaved(window, false);
        if let Some(bar) = dom::by_id(&format!("bar-{window}")) {
            bar.set_text_content(None);
        }
    });
    let mut save = move || {
        if document.path.peek().is_some() {
            api::run(async move {
                document.save(app_state).await;
            });
        } else {
            naming.set(true);
        }
    };
    let changes =
        use_changes(move |change| document.path.peek().as_ref().is_some_and(|path| change.is_of_path(path)));
    let mut generation = use_signal(|| 0u32);
    use_effect(move || {
        drop(changes.read());
        let mine = *generation.peek() + 1;
        generation.set(mine);
        spawn(async move {
            TimeoutFuture::new(FOLLOW_DELAY_MS).await;
            if *generation.peek() == mine {
                document.follow().await;
            }
        });
    });
    use_effect(move || {
        let live = *app_state.connection.read() == ConnectionState::Live;
        if !live || !matches!(*document.save_state.read(), SaveState::Queued(_)) {
            return;
        }
        spawn(async move {
            TimeoutFuture::new(QUEUE_DELAY_MS).await;
            if matches!(*document.save_state.peek(), SaveState::Queued(_)) {
                api::run(async move {
                    document.save(app_state).await;
                });
            }
        });
    });
    use_effect(move || {
        let dark = dark(app_state);
        document.with(|editor| editor.set_dark(dark));
    });

    let load_state = document.load_state.read().clone();
    let ready = load_state == LoadState::Ready;
    let on_disk = document.on_disk.read().clone();
    rsx! {
        div { class: "editor",
            if let Some(now) = on_disk.filter(|_| !merging()) {
                Stale { document, on_disk: now, onmerge: move |()| merging.set(true) }
            }
            if naming() {
                Naming { document, onclose: move |()| { naming.set(false); document.with(TextEditor::focus); } }
            }
            if merging() {
                Merging { document, onclose: move |()| { merging.set(false); document.with(TextEditor::focus); } }
            }
            div {
                class: "part part-editor",
                hidden: merging() || !ready,
                onmounted: move |event| {
                    let Ok(element) = event.data().as_web_event().dyn_into::<HtmlElement>() else { return };
                    spawn(async move {
                        if let Err(reason) = open(app_state, document, &element, save).await {
                            absent.set(Some(reason));
                        }
                    });
                },
            }
            if let Some(reason) = absent() {
                Empty { icon: "triangle-alert", title: words::editor::EDITOR_NOT_LOADED, p { "{reason}" } }
            } else {
                match load_state {
                    LoadState::Loading => rsx! { Loading {} },
                    LoadState::Ready => rsx! {},
                    LoadState::Refused(why) => rsx! {
                        Empty { icon: "file", title: words::editor::CANNOT_BE_EDITED, p { "{why}" } p { {words::editor::FILES_CAN_SHOW_IT} } }
                    },
                    LoadState::Failed(failure) => rsx! { LoadError { failure } },
                }
            }
            if ready && !merging() {
                StatusBar { document, onsave: move |()| save() }
            }
        }
    }
}

/// Reads the file, loads the editor module, and mounts the editor with the text.
async fn open(
    app_state: AppState,
    document: Document,
    element: &HtmlElement,
    save: impl FnMut() + 'static,
) -> Result<(), String> {
    let Some(Opening { text, saved }) = document.begin(app_state).await else { return Ok(()) };
    let path = document.path.peek().as_ref().map(ToString::to_string).unwrap_or_default();
    let mut editor = TextEditor::mount(element, &path, &text, saved.as_deref(), dark(app_state)).await?;
    if !element.is_connected() {
        // Closed while it was loading.
        return Ok(());
    }
    editor.on_change(move || document.changed());
    let mut status = document.status;
    editor.on_status(move |now| status.set(now));
    editor.on_save(save);
    // After a reload every window opens at once; only the front one takes the keys.
    if app_state.may_take_focus(document.window) {
        editor.focus();
    }
    document.put_editor(Some(editor));
    if *document.dirty.peek() {
        document.keep_draft();
    }
    Ok(())
}

/// Whether the current theme is dark. Reads the setting, so that the caller is run again when it changes.
fn dark(app_state: AppState) -> bool {
    match app_state.setting_as::<String>("theme").as_deref() {
        Some("dark") => true,
        Some("light") => false,
        Some(_) | None => {
            let query =
                dom::window().and_then(|window| window.match_media("(prefers-color-scheme: dark)").ok());
            query.flatten().is_some_and(|query| query.matches())
        }
    }
}
