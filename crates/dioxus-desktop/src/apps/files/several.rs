//! What is shown beside the list when several entries are selected: how many, and what can be done with all of them.

use dioxus::prelude::*;
use shared_types::payload::file::FileNode;
use shared_types::wire::Entry;

use super::{FilesView, actions};
use crate::clock;
use crate::icons::Icon;
use crate::widgets::{IconButton, button};
use crate::words;

#[component]
pub(crate) fn Several(view: FilesView, entries: Vec<Entry>) -> Element {
    let mut selection = view.selection;
    let size: u64 = entries
        .iter()
        .map(|entry| match &entry.node {
            FileNode::File { size, .. } => *size,
            FileNode::Folder | FileNode::Symlink { .. } => 0,
        })
        .sum();
    let count = words::files::items(entries.len() as u64);
    rsx! {
        aside { class: "preview", "aria-label": "{count}",
            header {
                Icon { name: "copy" }
                div { class: "two", b { "{count}" } small { {words::files::in_all(&clock::size(size))} } }
                IconButton { icon: "x", label: words::files::CLEAR_SELECTION, onclick: move |_| selection.set(Default::default()) }
            }
            div { class: "acts",
                {button("btn", "copy", words::COPY, move || actions::take(view, false))}
                {button("btn", "scissors", words::files::CUT, move || actions::take(view, true))}
                {button("btn bad", "trash-2", words::files::DELETE, move || actions::delete(view))}
            }
        }
    }
}
