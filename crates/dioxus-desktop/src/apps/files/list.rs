//! The rows of a folder. Only visible ones are rendered.

use std::rc::Rc;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::payload::file::FileNode;
use shared_types::wire::Entry;

use super::naming::{NameField, Naming};
use super::selection::{Selection, SortKey};
use super::{FilesView, actions, open_entry};
use crate::file_kinds::icon_for;
use crate::icons::Icon;
use crate::menu::Menu;
use crate::state::app_state;
use crate::widgets::Empty;
use crate::words;
use crate::{clock, dom, upload};

const ROW_HEIGHT: usize = 32;
const OVERSCAN_ROWS: usize = 12;

/// Letters that follow each other within this time, in milliseconds, are the beginning of one name.
const TYPING_PAUSE: f64 = 800.0;

#[component]
pub(crate) fn List(view: FilesView) -> Element {
    let mut app_state = app_state();
    let entries = view.entries.read().clone();
    let mut top = use_signal(|| 0usize);
    let mut tall = use_signal(|| 900usize);
    let mut typed = use_signal(|| (String::new(), 0.0));
    let mut selection = view.selection;
    let mut naming = view.naming;
    let total = entries.len();
    let first = (top() / ROW_HEIGHT).saturating_sub(OVERSCAN_ROWS).min(total);
    let last = ((top() + tall()) / ROW_HEIGHT + OVERSCAN_ROWS).min(total);
    let keys = Rc::clone(&entries);
    let keydown = move |event: KeyboardEvent| {
        let cursor = selection.peek().cursor().cloned();
        let at = cursor.and_then(|cursor| keys.iter().position(|entry| entry.path == cursor));
        let key = dom::key(&event);
        let modifiers = event.modifiers();
        let (ctrl, alt) = (modifiers.ctrl() || modifiers.meta(), modifiers.alt());
        let page = (*tall.peek() / ROW_HEIGHT).max(1);
        let walk = |index: usize| step_to(view, &keys, index, modifiers.shift());
        match (key.as_str(), ctrl, alt) {
            ("ArrowDown", false, false) => walk(at.map_or(0, |i| i + 1)),
            ("ArrowUp", false, false) => walk(at.map_or(0, |i| i.saturating_sub(1))),
            ("PageDown", false, false) => walk(at.map_or(0, |i| i + page)),
            ("PageUp", false, false) => walk(at.map_or(0, |i| i.saturating_sub(page))),
            ("Home", false, false) => walk(0),
            ("End", false, false) => walk(usize::MAX),
            ("ArrowLeft", false, true) => view.go_back(false),
            ("ArrowRight", false, true) => view.go_back(true),
            ("ArrowUp", false, true) | ("Backspace", false, false) => view.up(),
            ("Enter", false, false) => open_all(view),
            ("F2", false, false) => {
                if let ([entry], Some(index)) = (view.selected().as_slice(), at) {
                    reveal(view, index);
                    naming.set(Some(Naming::Rename(entry.path.clone())));
                }
            }
            ("Delete", false, false) => actions::delete(view),
            ("Escape", false, false) if naming.peek().is_some() => naming.set(None),
            ("Escape", false, false) => selection.set(Selection::default()),
            ("a", true, false) => selection.set(Selection::all(&keys)),
            ("c", true, false) => actions::take(view, false),
            ("x", true, false) => actions::take(view, true),
            ("v", true, false) => actions::paste(view),
            (letter, false, false) if letter.chars().count() == 1 => {
                let now = event.data().as_web_event().time_stamp();
                let (before, then) = typed.peek().clone();
                let text = if now - then < TYPING_PAUSE { before } else { String::new() };
                let text = text + letter;
                typed.set((text.clone(), now));
                // Space and other signs scroll or press as everywhere else, unless they go on with a name.
                if text.trim().is_empty() {
                    return;
                }
                find_name(view, &keys, &text.to_lowercase());
            }
            _ => return,
        }
        event.prevent_default();
        event.stop_propagation();
    };
    let count = view.selected().len() as u64;
    let status = if count > 1 {
        words::files::selected_of(count, total as u64)
    } else {
        words::files::items(total as u64)
    };
    let is_new = matches!(&*naming.read(), Some(Naming::NewFile | Naming::NewFolder));
    rsx! {
        div { class: "row head",
            {heading(view, "name", SortKey::Name, words::files::NAME)}
            {heading(view, "size", SortKey::Size, words::files::SIZE)}
            {heading(view, "when", SortKey::Changed, words::files::CHANGED)}
        }
        div {
            class: "rows scroll",
            id: "list-{view.window}",
            role: "listbox",
            "aria-label": words::files::FILES,
            "aria-multiselectable": "true",
            tabindex: "0",
            onkeydown: keydown,
            onscroll: move |event| {
                let now = event.data().scroll_top() as usize;
                if top.peek().abs_diff(now) >= ROW_HEIGHT {
                    top.set(now);
                    tall.set(event.data().client_height().max(0) as usize);
                }
            },
            onclick: move |_| selection.set(Selection::default()),
            oncontextmenu: move |event| {
                event.prevent_default();
                event.stop_propagation();
                let at = event.client_coordinates();
                app_state.menu.set(Some(Menu::at(at.x, at.y, actions::folder_menu(view))));
            },
            // Two fields, so that what was typed for a file is not the name of a folder.
            if *naming.read() == Some(Naming::NewFile) {
                div { class: "row", span { class: "name", Icon { name: "file" } NameField { view, naming: Naming::NewFile } } }
            }
            if *naming.read() == Some(Naming::NewFolder) {
                div { class: "row", span { class: "name", Icon { name: "folder" } NameField { view, naming: Naming::NewFolder } } }
            }
            if total == 0 && !is_new {
                Empty { icon: "folder-open", title: words::files::FOLDER_EMPTY,
                    p { {words::files::FOLDER_EMPTY_MORE} }
                    button { class: "btn", onclick: move |_| actions::begin_new(view, false), Icon { name: "file-plus" } {words::files::NEW_FILE} }
                }
            }
            div { height: "{first * ROW_HEIGHT}px" }
            for entry in entries[first..last].iter().cloned() {
                Row {
                    key: "{entry.path}",
                    view,
                    on: selection.read().contains(&entry.path),
                    naming: naming.read().clone().filter(|naming| matches!(naming, Naming::Rename(path) if *path == entry.path)),
                    entry,
                }
            }
            div { height: "{(total - last) * ROW_HEIGHT}px" }
        }
        footer { class: "status",
            "{status}"
        }
    }
}

/// How many files Enter opens at once.
const MAX_OPENED: usize = 10;

/// Opens what is selected: a folder, or some files.
fn open_all(view: FilesView) {
    let selected = view.selected();
    let is_single = selected.len() == 1;
    let opened = selected.iter().filter(|entry| is_single || !matches!(entry.node, FileNode::Folder));
    opened.take(MAX_OPENED).for_each(|entry| open_entry(view, entry));
}

/// The heading of a column, which sorts by it.
fn heading(view: FilesView, class: &'static str, key: SortKey, title: &'static str) -> Element {
    let mut order = view.order;
    let now = *order.read();
    let sorted = match (now.key == key, now.descending) {
        (false, _) => "none",
        (true, false) => "ascending",
        (true, true) => "descending",
    };
    rsx! {
        button {
            class: "{class} {sorted}",
            title: words::files::sort_by(title),
            "aria-label": words::files::sort_by(title),
            "data-sorted": sorted,
            onclick: move |_| order.set(now.pressed(key)),
            "{title}"
        }
    }
}

/// Moves the cursor, and with Shift the end of the range.
fn step_to(mut view: FilesView, entries: &[Entry], index: usize, extend: bool) {
    let Some(entry) = entries.get(index.min(entries.len().saturating_sub(1))) else { return };
    if extend {
        view.selection.write().extend_to(&entry.path, entries);
    } else {
        view.select(entry.path.clone());
    }
    reveal(view, index.min(entries.len() - 1));
}

/// Scrolls a row into view. One that is far away is not rendered yet, so the place is computed.
fn reveal(view: FilesView, index: usize) {
    let Some(list) = dom::by_id(&format!("list-{}", view.window)) else { return };
    let (top, bottom) = ((index * ROW_HEIGHT) as i32, ((index + 1) * ROW_HEIGHT) as i32);
    if top < list.scroll_top() {
        list.set_scroll_top(top);
    } else if bottom > list.scroll_top() + list.client_height() {
        list.set_scroll_top(bottom - list.client_height());
    }
}

/// Selects the first name that begins with a text.
fn find_name(view: FilesView, entries: &[Entry], text: &str) {
    let begins = |entry: &Entry| entry.path.name().to_lowercase().starts_with(text);
    if let Some(index) = entries.iter().position(begins) {
        step_to(view, entries, index, false);
    }
}

#[component]
fn Row(view: FilesView, entry: Entry, on: bool, naming: Option<Naming>) -> Element {
    let mut app_state = app_state();
    let mut target = use_signal(|| false);
    let folder = matches!(entry.node, FileNode::Folder);
    let (icon, size) = match &entry.node {
        FileNode::Folder => ("folder", String::new()),
        FileNode::File { size, .. } => (icon_for(entry.path.name()), clock::size(*size)),
        FileNode::Symlink { target } => ("corner-down-right", format!("→ {target}")),
    };
    let cut =
        app_state.clipboard.read().as_ref().is_some_and(|clip| clip.cut && clip.paths.contains(&entry.path));
    let class = format!(
        "row {} {} {} {}",
        if on { "on" } else { "" },
        if target() { "target" } else { "" },
        if cut { "cut" } else { "" },
        if folder { "folder" } else { "" }
    );
    let (path, open, menu, dragged, dropped) =
        (entry.path.clone(), entry.clone(), entry.clone(), entry.path.clone(), entry.path.clone());
    let mut selection = view.selection;
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
                let modifiers = event.modifiers();
                if modifiers.shift() {
                    selection.write().extend_to(&path, &view.entries.peek());
                } else if modifiers.ctrl() || modifiers.meta() {
                    selection.write().toggle(&path);
                } else {
                    view.select(path.clone());
                }
            },
            ondoubleclick: move |_| open_entry(view, &open),
            oncontextmenu: move |event| {
                event.prevent_default();
                event.stop_propagation();
                let at = event.client_coordinates();
                app_state.menu.set(Some(Menu::at(at.x, at.y, actions::entry_menu(view, &menu))));
            },
            ondragstart: move |event| {
                // What is dragged is selected, alone or with the others.
                if !selection.peek().contains(&dragged) {
                    view.select(dragged.clone());
                }
                let paths: Vec<_> = view.selected().into_iter().map(|entry| entry.path).collect();
                let file = (!folder && paths.len() == 1).then_some(&dragged);
                upload::drag_out(&event.data().as_web_event(), &paths, file);
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
                if folder && let Some(paths) = upload::dragged_paths(&event.data().as_web_event()) {
                    event.prevent_default();
                    event.stop_propagation();
                    actions::move_into(view, paths, Some(dropped.clone()));
                }
            },
            span { class: "name",
                Icon { name: icon }
                if let Some(naming) = naming { NameField { view, naming } } else { span { "{entry.path.name()}" } }
            }
            span { class: "size", "{size}" }
            span { class: "when", title: "{clock::full(entry.ts)}", "{clock::when(entry.ts)}" }
        }
    }
}
