//! Viewer: one file in a window of its own, shown by its kind: pictures, PDF, sound and film, tables, JSON, notebooks,
//! Markdown and code. The window follows its file.

mod part_view;

use dioxus::prelude::*;
use shared_types::payload::file::FileNode;
use shared_types::wire::Listing;
use shared_types::{FilePath, WindowId};

pub(crate) use part_view::{Markdown, PartView};

use crate::api;
use crate::app_list;
use crate::apps::files::actions;
use crate::file_kinds::{Kind, kind};
use crate::state::{AppState, app_state, use_changes};
use crate::widgets::{Empty, IconButton, button};
use crate::words;

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    rsx! {
        div { class: "viewer",
            match shows.as_deref().map(FilePath::parse) {
                Some(Ok(path)) => rsx! { Viewed { key: "{path}", window, path } },
                Some(Err(error)) => rsx! { Empty { icon: "triangle-alert", title: words::viewer::NO_FILE, p { "{error}" } } },
                None => rsx! {
                    Empty { icon: "eye", title: words::viewer::NO_FILE,
                        p { {words::viewer::NO_FILE_MORE} }
                        {button("btn pri", "folder", words::apps::FILES, move || open(app_state(), "files", None))}
                    }
                },
            }
        }
    }
}

fn open(app_state: AppState, app: &str, shows: Option<&str>) {
    if let Some(app) = app_list::find(app) {
        app_state.open(app, shows);
    }
}

#[component]
fn Viewed(window: WindowId, path: FilePath) -> Element {
    let app_state = app_state();
    let what = kind(path.name());
    let watched = path.clone();
    let changes = use_changes(move |change| change.is_of_path(&watched));
    let is_picture = what == Kind::Image;
    let (edited, downloaded, shown) = (path.clone(), path.clone(), path.clone());
    rsx! {
        div { class: "bar",
            if is_picture {
                Neighbours { window, path: path.clone() }
            }
            span { class: "sp" }
            if what.is_text() {
                {button("btn", "pencil", words::viewer::EDIT, move || open(app_state, "editor", Some(edited.as_str())))}
            }
            {button("btn", "folder", words::viewer::SHOW_IN_FILES, move || open(app_state, "files", Some(shown.as_str())))}
            {button("btn", "download", words::files::DOWNLOAD, move || actions::download(&downloaded))}
        }
        match what.view() {
            Some(view) => rsx! { PartView { key: "{changes}", view, path: path.to_string(), text: None } },
            None => rsx! {
                Empty { icon: "file", title: words::viewer::unknown_kind(path.name()), p { {words::viewer::UNKNOWN_KIND_MORE} } }
            },
        }
    }
}

/// The pictures before and after this one in its folder.
#[component]
fn Neighbours(window: WindowId, path: FilePath) -> Element {
    let folder = path.parent();
    let of = folder.clone();
    let changes = use_changes(move |change| change.is_in_folder(of.as_ref()));
    let listing = api::use_fetched::<Listing>(move || {
        drop(changes.read());
        api::query("/files", &[("path", folder.as_ref().map_or("", FilePath::as_str))])
    });
    let pictures: Vec<FilePath> = match &*listing.read() {
        Some(Ok(listing)) => listing
            .entries
            .iter()
            .filter(|entry| {
                matches!(entry.node, FileNode::File { .. }) && kind(entry.path.name()) == Kind::Image
            })
            .map(|entry| entry.path.clone())
            .collect(),
        Some(Err(_)) | None => Vec::new(),
    };
    let at = pictures.iter().position(|other| *other == path);
    let before = at.and_then(|at| at.checked_sub(1)).and_then(|at| pictures.get(at).cloned());
    let after = at.and_then(|at| pictures.get(at + 1).cloned());
    let (no_before, no_after) = (before.is_none(), after.is_none());
    rsx! {
        IconButton { icon: "chevron-left", label: words::viewer::PREVIOUS, disabled: no_before, onclick: move |_| show(window, before.as_ref()) }
        IconButton { icon: "chevron-right", label: words::viewer::NEXT, disabled: no_after, onclick: move |_| show(window, after.as_ref()) }
        if let Some(at) = at {
            span { class: "quiet", {words::viewer::place(at + 1, pictures.len())} }
        }
    }
}

/// Shows another file in this window.
fn show(window: WindowId, path: Option<&FilePath>) {
    let Some(path) = path else { return };
    app_state().change(window, |state| {
        state.shows = Some(path.as_str().into());
        state.title = path.name().into();
    });
}
