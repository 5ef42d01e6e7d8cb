//! The folders, opened one by one. A folder's children are fetched when it is opened.

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;
use shared_types::wire::Listing;

use super::{FilesView, actions};
use crate::api;
use crate::icons::Icon;
use crate::state::use_changes;
use crate::upload;
use crate::words;

#[component]
pub(crate) fn Tree(view: FilesView) -> Element {
    rsx! {
        div { role: "tree", "aria-label": words::files::FOLDERS,
            Branch { view, path: None, depth: 0, open_at_first: true }
        }
    }
}

#[component]
fn Branch(view: FilesView, path: Option<FilePath>, depth: u32, open_at_first: bool) -> Element {
    let shown = view.folder.read().clone();
    let on = shown == path;
    let within = match (&shown, &path) {
        (Some(shown), Some(path)) => shown.is_within(path) && shown != path,
        (_, None) => true,
        (None, Some(_)) => false,
    };
    let mut open = use_signal(|| open_at_first || within);
    let mut target = use_signal(|| false);
    let name = path.as_ref().map_or_else(|| words::files::WORKSPACE.to_owned(), |p| p.name().to_owned());
    let icon = match (&path, open()) {
        (None, _) => "house",
        (Some(_), true) => "folder-open",
        (Some(_), false) => "folder",
    };
    let (to, dropped) = (path.clone(), path.clone());
    let is_open = open();
    rsx! {
        div {
            class: if on { "branch on" } else if target() { "branch target" } else { "branch" },
            role: "treeitem",
            "aria-expanded": is_open.to_string(),
            "aria-selected": on.to_string(),
            padding_left: "{4 + depth * 14}px",
            ondragover: move |event| {
                event.prevent_default();
                if !target() { target.set(true) }
            },
            ondragleave: move |_| target.set(false),
            ondrop: move |event| {
                target.set(false);
                if let Some(paths) = upload::dragged_paths(&event.data().as_web_event()) {
                    event.prevent_default();
                    event.stop_propagation();
                    actions::move_into(view, paths, dropped.clone());
                }
            },
            button { class: if is_open { "twist open" } else { "twist" }, "aria-label": if is_open { words::files::close_folder(&name) } else { words::files::open_folder(&name) }, onclick: move |_| open.toggle(), Icon { name: "chevron-right" } }
            button { class: "go", onclick: move |_| { open.set(true); view.go(to.clone()) },
                Icon { name: icon }
                span { "{name}" }
            }
        }
        if is_open {
            Children { view, path, depth }
        }
    }
}

#[component]
fn Children(view: FilesView, path: Option<FilePath>, depth: u32) -> Element {
    let mut known = use_hook(|| CopyValue::new(Vec::<FilePath>::new()));
    let (at, of) = (path.clone(), path);
    let changes = use_changes(move |change| change.is_of_folders_in(of.as_ref(), &known.peek()));
    let listing = api::use_fetched::<Listing>(move || {
        drop(changes.read());
        api::query("/files", &[("path", at.as_ref().map_or("", |path| path.as_str()))])
    });
    let folders: Vec<FilePath> = match &*listing.read() {
        Some(Ok(listing)) => listing
            .entries
            .iter()
            .filter(|e| matches!(e.node, FileNode::Folder))
            .map(|e| e.path.clone())
            .collect(),
        Some(Err(failure)) => return rsx! { p { class: "quiet pad", {failure.text()} } },
        None => Vec::new(),
    };
    known.set(folders.clone());
    rsx! {
        for folder in folders {
            Branch { key: "{folder}", view, path: Some(folder), depth: depth + 1, open_at_first: false }
        }
    }
}
