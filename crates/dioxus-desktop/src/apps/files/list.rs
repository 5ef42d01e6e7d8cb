//! The rows of a folder. Only visible ones are rendered.

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;
use shared_types::wire::Entry;
use wasm_bindgen::JsCast;

use super::{FilesView, actions, icon_for, open_entry};
use crate::icons::Icon;
use crate::menu::Menu;
use crate::state::app_state;
use crate::widgets::Empty;
use crate::words;
use crate::{api, clock, dom, upload};

const ROW_HEIGHT: usize = 32;
const OVERSCAN_ROWS: usize = 12;

#[component]
pub(crate) fn List(view: FilesView) -> Element {
    let mut app_state = app_state();
    let entries = view.entries();
    let mut top = use_signal(|| 0usize);
    let mut tall = use_signal(|| 900usize);
    let mut chosen = view.chosen;
    let mut renaming = view.renaming;
    let total = entries.len();
    let first = (top() / ROW_HEIGHT).saturating_sub(OVERSCAN_ROWS).min(total);
    let last = ((top() + tall()) / ROW_HEIGHT + OVERSCAN_ROWS).min(total);
    let keys = entries.clone();
    let keydown = move |event: KeyboardEvent| {
        if renaming.peek().is_some() {
            return;
        }
        let at = chosen.peek().as_ref().and_then(|c| keys.iter().position(|e| e.path == *c));
        let key = dom::key(&event);
        let ctrl = event.modifiers().ctrl() || event.modifiers().meta();
        let current = at.and_then(|i| keys.get(i)).cloned();
        match (key.as_str(), ctrl, current) {
            ("ArrowDown", false, _) => choose(view, &keys, at.map_or(0, |i| i + 1)),
            ("ArrowUp", false, _) => choose(view, &keys, at.map_or(0, |i| i.saturating_sub(1))),
            ("Home", false, _) => choose(view, &keys, 0),
            ("End", false, _) => choose(view, &keys, usize::MAX),
            ("Enter", false, Some(entry)) => open_entry(view, &entry),
            ("F2", false, Some(entry)) => renaming.set(Some(entry.path)),
            ("Delete", false, Some(entry)) => actions::delete(view, entry.path),
            ("Backspace", false, _) => view.up(),
            ("Escape", false, Some(_)) => chosen.set(None),
            ("c", true, Some(entry)) => actions::take(entry.path, false),
            ("x", true, Some(entry)) => actions::take(entry.path, true),
            ("v", true, _) => actions::paste(view),
            _ => return,
        }
        event.prevent_default();
        event.stop_propagation();
    };
    rsx! {
        div { class: "row head", "aria-hidden": "true",
            span { class: "name", {words::files::NAME} }
            span { class: "size", {words::files::SIZE} }
            span { class: "when", {words::files::CHANGED} }
        }
        div {
            class: "rows scroll",
            id: "list-{view.window}",
            role: "listbox",
            "aria-label": words::files::FILES,
            tabindex: "0",
            onkeydown: keydown,
            onscroll: move |event| {
                let now = event.data().scroll_top() as usize;
                if top.peek().abs_diff(now) >= ROW_HEIGHT {
                    top.set(now);
                    tall.set(event.data().client_height().max(0) as usize);
                }
            },
            onclick: move |_| chosen.set(None),
            oncontextmenu: move |event| {
                event.prevent_default();
                event.stop_propagation();
                let at = event.client_coordinates();
                app_state.menu.set(Some(Menu::at(at.x, at.y, actions::folder_menu(view))));
            },
            if total == 0 {
                Empty { icon: "folder-open", title: words::files::FOLDER_EMPTY,
                    p { {words::files::FOLDER_EMPTY_MORE} }
                    button { class: "btn", onclick: move |_| actions::begin_new(view, false), Icon { name: "file-plus" } {words::files::NEW_FILE} }
                }
            }
            div { height: "{first * ROW_HEIGHT}px" }
            for entry in entries.into_iter().take(last).skip(first) {
                Row { key: "{entry.path}", view, entry: entry.clone(), on: chosen.read().as_ref() == Some(&entry.path), renaming: renaming.read().as_ref() == Some(&entry.path) }
            }
            div { height: "{(total - last) * ROW_HEIGHT}px" }
        }
        footer { class: "status",
            {words::files::items(total as u64)}
        }
    }
}

fn choose(mut view: FilesView, entries: &[Entry], index: usize) {
    let Some(entry) = entries.get(index.min(entries.len().saturating_sub(1))) else { return };
    view.chosen.set(Some(entry.path.clone()));
    dom::reveal(&format!("row-{}-{}", view.window, entry.path));
}

#[component]
fn Row(view: FilesView, entry: Entry, on: bool, renaming: bool) -> Element {
    let mut app_state = app_state();
    let mut target = use_signal(|| false);
    let folder = matches!(entry.node, FileNode::Folder);
    let (icon, size) = match &entry.node {
        FileNode::Folder => ("folder", String::new()),
        FileNode::File { size, .. } => (icon_for(entry.path.name()), clock::size(*size)),
        FileNode::Symlink { target } => ("corner-down-right", format!("→ {target}")),
    };
    let cut = app_state.clipboard.read().as_ref().is_some_and(|c| c.cut && c.path == entry.path);
    let class = format!(
        "row {} {} {} {}",
        if on { "on" } else { "" },
        if target() { "target" } else { "" },
        if cut { "cut" } else { "" },
        if folder { "folder" } else { "" }
    );
    let (path, open, menu, dragged, dropped) =
        (entry.path.clone(), entry.clone(), entry.clone(), entry.path.clone(), entry.path.clone());
    let mut chosen = view.chosen;
    rsx! {
        div {
            class,
            id: "row-{view.window}-{entry.path}",
            role: "option",
            "aria-selected": on.to_string(),
            "data-path": "{entry.path}",
            draggable: "true",
            onclick: move |event| {
                event.stop_propagation();
                chosen.set(Some(path.clone()));
            },
            ondoubleclick: move |_| open_entry(view, &open),
            oncontextmenu: move |event| {
                event.prevent_default();
                event.stop_propagation();
                let at = event.client_coordinates();
                app_state.menu.set(Some(Menu::at(at.x, at.y, actions::entry_menu(view, &menu))));
            },
            ondragstart: move |event| {
                upload::drag_out(&event.data().as_web_event(), &dragged, folder);
            },
            ondragover: move |event| {
                if folder {
                    event.prevent_default();
                    if !target() { target.set(true) }
                }
            },
            ondragleave: move |_| target.set(false),
            ondrop: move |event| {
                target.set(false);
                if folder && let Some(path) = upload::dragged_path(&event.data().as_web_event()) {
                    event.prevent_default();
                    event.stop_propagation();
                    actions::move_into(view, path, Some(dropped.clone()));
                }
            },
            span { class: "name",
                Icon { name: icon }
                if renaming { Rename { view, path: entry.path.clone() } } else { span { "{entry.path.name()}" } }
            }
            span { class: "size", "{size}" }
            span { class: "when", title: "{clock::full(entry.ts)}", "{clock::when(entry.ts)}" }
        }
    }
}

#[component]
fn Rename(view: FilesView, path: FilePath) -> Element {
    let mut name = use_signal(|| path.name().to_owned());
    let id = format!("rename-{}", view.window);
    let mut renaming = view.renaming;
    use_effect(move || {
        let id = format!("rename-{}", view.window);
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(0).await;
            dom::focus(&id);
            if let Some(Ok(input)) = dom::by_id(&id).map(|e| e.dyn_into::<web_sys::HtmlInputElement>()) {
                let stem = input.value().rfind('.').filter(|i| *i > 0).unwrap_or(input.value().len());
                let _ = input.set_selection_range(0, stem as u32);
            }
        });
    });
    let (done, left) = (path.clone(), path.clone());
    rsx! {
        input {
            id,
            class: "field rename",
            "aria-label": words::files::NEW_NAME,
            value: "{name}",
            oninput: move |event| name.set(event.value()),
            onclick: move |event| event.stop_propagation(),
            ondoubleclick: move |event| event.stop_propagation(),
            onkeydown: move |event| {
                event.stop_propagation();
                match dom::key(&event).as_str() {
                    "Enter" => actions::rename(view, done.clone(), &name.peek()),
                    "Escape" => renaming.set(None),
                    _ => {}
                }
            },
            onblur: move |_| {
                if renaming.peek().as_ref() == Some(&left) {
                    actions::rename(view, left.clone(), &name.peek());
                }
            },
        }
    }
}
