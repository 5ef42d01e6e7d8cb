//! The preview of a file, beside the list.

use dioxus::prelude::*;
use shared_types::payload::file::FileNode;
use shared_types::wire::Entry;

use super::{FilesView, actions, open_entry, open_with, versions};
use crate::apps::viewer::PartView;
use crate::clock;
use crate::file_kinds::{icon_for, kind};
use crate::icons::Icon;
use crate::widgets::{IconButton, choose_text};
use crate::words;

#[component]
pub(crate) fn Preview(view: FilesView, entry: Entry) -> Element {
    let mut selection = view.selection;
    let mut show_versions = view.versions;
    let (opened, down, viewed) = (entry.clone(), entry.path.clone(), entry.path.clone());
    let what = kind(entry.path.name());
    let (has_view, is_viewed) = (what.view().is_some(), what.app() == "viewer");
    let name = entry.path.name().to_owned();
    let about = match &entry.node {
        FileNode::File { size, .. } => format!("{} · {}", clock::size(*size), clock::full(entry.ts)),
        FileNode::Folder => words::files::about_folder(&clock::full(entry.ts)),
        FileNode::Symlink { target } => words::files::about_link(target),
    };
    let is_file = matches!(entry.node, FileNode::File { .. });
    rsx! {
        aside { class: "preview", "aria-label": words::files::preview_of(&name),
            header {
                Icon { name: choose_text(is_file, icon_for(&name), "folder") }
                div { class: "two", b { "{name}" } small { "{about}" } }
                IconButton { icon: "x", label: words::files::CLOSE_PREVIEW, onclick: move |_| selection.set(Default::default()) }
            }
            div { class: "acts",
                button { class: "btn", onclick: move |_| open_entry(view, &opened), {words::OPEN} }
                if is_file {
                    if has_view && !is_viewed { button { class: "btn", onclick: move |_| open_with("viewer", &viewed), Icon { name: "eye" } {words::viewer::VIEW} } }
                    button { class: "btn", onclick: move |_| actions::download(&down), Icon { name: "download" } {words::files::DOWNLOAD} }
                    button { class: "btn", "aria-pressed": show_versions().to_string(), onclick: move |_| show_versions.toggle(), Icon { name: "history" } {words::files::VERSIONS} }
                }
            }
            if is_file {
                if show_versions() {
                    versions::Versions { path: entry.path.clone() }
                } else {
                    Content { entry }
                }
            }
        }
    }
}

#[component]
fn Content(entry: Entry) -> Element {
    let version = entry.node.content().map(|content| content.hash.to_string()).unwrap_or_default();
    match kind(entry.path.name()).view() {
        Some(view) => rsx! { PartView { key: "{version}", view, path: entry.path.to_string(), text: None } },
        None => rsx! { p { class: "quiet pad", {words::files::NO_PREVIEW} } },
    }
}
