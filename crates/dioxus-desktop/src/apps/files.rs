//! Files: the tree on the left, a folder in the middle, a preview with versions on the right. Live: when anything
//! writes to the workspace, the lists follow.

pub(crate) mod actions;
mod list;
mod naming;
mod preview;
mod selection;
mod several;
mod tree;
mod versions;

use std::rc::Rc;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::payload::file::FileNode;
use shared_types::wire::{Entry, FileMatch, Listing};
use shared_types::{FilePath, WindowId};

use crate::api;
use crate::app_list;
use crate::change_log::Change;
use crate::dom;
use crate::file_kinds::{icon_for, kind};
use crate::icons::Icon;
use crate::state::use_changes;
use crate::state::{AppState, ToastAction, app_state};
use crate::upload;
use crate::widgets::{Empty, IconButton, LoadError, Loading};
use crate::words;
pub(crate) use naming::Naming;
use selection::{Selection, SortOrder};

/// The folders for Back and Forward; none is the workspace.
#[derive(Default)]
struct Visited {
    before: Vec<Option<FilePath>>,
    /// Those that Back left.
    after: Vec<Option<FilePath>>,
}

/// The state of one Files window.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct FilesView {
    pub folder: Signal<Option<FilePath>>,
    pub selection: Signal<Selection>,
    pub naming: Signal<Option<Naming>>,
    pub order: Signal<SortOrder>,
    /// What the folder holds, in this order.
    pub entries: Memo<Rc<Vec<Entry>>>,
    pub versions: Signal<bool>,
    visited: Signal<Visited>,
    window: WindowId,
}

impl FilesView {
    /// Shows another folder, which Back leaves again.
    pub(crate) fn go(mut self, folder: Option<FilePath>) {
        let now = self.folder.peek().clone();
        if now != folder {
            let mut visited = self.visited.write();
            visited.before.push(now);
            visited.after.clear();
        }
        self.show(folder);
    }

    /// Back to the folder before this one, or forward again.
    pub(crate) fn go_back(mut self, forward: bool) {
        let now = self.folder.peek().clone();
        let mut visited = self.visited.write();
        let Visited { before, after } = &mut *visited;
        let (from, to) = if forward { (after, before) } else { (before, after) };
        let Some(folder) = from.pop() else { return };
        to.push(now);
        drop(visited);
        self.show(folder);
    }

    fn show(mut self, folder: Option<FilePath>) {
        self.selection.set(Selection::default());
        self.naming.set(None);
        dom::session_set(&format!("files.{}", self.window), folder.as_ref().map_or("", FilePath::as_str));
        self.folder.set(folder);
    }

    /// To the folder that holds this one.
    pub(crate) fn up(self) {
        // Read and let go before it is set.
        let above = self.folder.peek().as_ref().and_then(FilePath::parent);
        self.go(above);
    }

    /// The selected entries, in the order of the list.
    pub(crate) fn selected(self) -> Vec<Entry> {
        let (selection, entries) = (self.selection.read(), self.entries.read());
        if selection.is_empty() {
            return Vec::new();
        }
        entries.iter().filter(|entry| selection.contains(&entry.path)).cloned().collect()
    }

    /// Whether the folder has an entry of this name.
    pub(crate) fn has(self, name: &str) -> bool {
        self.entries.peek().iter().any(|entry| entry.path.name() == name)
    }

    pub(crate) fn select(mut self, path: FilePath) {
        self.selection.set(Selection::of(path));
    }

    /// A name in the folder that is shown.
    pub(crate) fn join(self, name: &str) -> Result<FilePath, shared_types::PathError> {
        match &*self.folder.peek() {
            Some(folder) => folder.join(name),
            None => FilePath::parse(name),
        }
    }

    /// Takes in files of the person's machine.
    fn take_in(self, files: &[web_sys::File]) {
        let mut placed = Vec::new();
        for file in files {
            match self.join(&file.name()) {
                Ok(path) => placed.push((path, file.clone())),
                Err(error) => return app_state().toast(error.to_string(), true, ToastAction::Nothing),
            }
        }
        upload::put(&placed);
    }
}

/// Opens a path: a folder in Files, text in the editor, everything else in the viewer.
pub(crate) fn open_path(app_state: AppState, path: &str) {
    let app = kind(path).app();
    let path = path.to_owned();
    api::run(async move {
        // Without an ending it may be a folder; its parent knows.
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let unsure = !path.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let is_folder = |l: Listing| {
            l.entries.iter().any(|e| e.path.as_str() == path && matches!(e.node, FileNode::Folder))
        };
        let query = api::query("/files", &[("path", parent)]);
        let folder = unsure && api::get::<Listing>(&query).await.is_ok_and(is_folder);
        let app = if folder { "files" } else { app };
        if let Some(app) = app_list::find(app) {
            app_state.open(app, Some(&path));
        }
    });
}

pub(crate) fn open_entry(view: FilesView, entry: &Entry) {
    match &entry.node {
        FileNode::Folder => view.go(Some(entry.path.clone())),
        FileNode::File { .. } => open_with(kind(entry.path.name()).app(), &entry.path),
        FileNode::Symlink { .. } => view.select(entry.path.clone()),
    }
}

/// Opens a file in an app of the person's choice.
pub(crate) fn open_with(app: &str, path: &FilePath) {
    if let Some(app) = app_list::find(app) {
        app_state().open(app, Some(path.as_str()));
    }
}

/// The first folder of a window: the one it should show, or the one before a reload.
fn first_folder(window: WindowId, shows: Option<&str>) -> Option<FilePath> {
    let kept = dom::session_get(&format!("files.{window}"));
    let text = kept.as_deref().or(shows).filter(|text| !text.is_empty())?;
    match FilePath::parse(text) {
        Ok(path) => Some(path),
        Err(error) => {
            app_state().report_unreadable_later(&error.to_string());
            None
        }
    }
}

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let first = shows.clone();
    let mut folder = use_signal(move || first_folder(window, first.as_deref()));
    let mut selection = use_signal(Selection::default);
    let naming = use_signal(|| None::<Naming>);
    let order = use_signal(SortOrder::default);
    let visited = use_signal(Visited::default);
    let versions = use_signal(|| false);
    let mut search = use_signal(String::new);
    let changes = use_changes(move |change| change.is_in_folder(folder.peek().as_ref()));
    let listing = api::use_fetched::<Listing>(move || {
        drop(changes.read());
        api::query("/files", &[("path", folder.read().as_ref().map_or("", |path| path.as_str()))])
    });
    let entries = use_memo(move || match &*listing.read() {
        // While another folder loads, keys must not reach what this one held.
        Some(Ok(listing)) if listing.path == *folder.read() => Rc::new(order.read().sorted(&listing.entries)),
        Some(Ok(_) | Err(_)) | None => Rc::default(),
    });
    let view = FilesView { folder, selection, naming, order, entries, versions, visited, window };
    // Told to show a file: its folder is opened and it is chosen.
    use_effect(move || {
        let missing = matches!(&*listing.read(), Some(Err(failure)) if failure.status() == 404 || failure.status() == 400);
        let path = folder.peek().clone();
        if missing && let Some(path) = path {
            folder.set(path.parent());
            selection.set(Selection::of(path));
        }
    });
    let mut over = use_signal(|| false);
    let finding = !search.read().trim().is_empty();
    rsx! {
        div {
            class: if over() { "files over" } else { "files" },
            ondragover: move |event| {
                event.prevent_default();
                if upload::has_files(&event) && !over() {
                    over.set(true);
                }
            },
            ondragleave: move |_| over.set(false),
            ondrop: move |event| {
                event.prevent_default();
                over.set(false);
                let native = event.data().as_web_event();
                match upload::dragged_paths(&native) {
                    Some(paths) => actions::move_into(view, paths, view.folder.peek().clone()),
                    None => view.take_in(&upload::dropped_files(&native)),
                }
            },
            aside { class: "rail tree", "aria-label": words::files::FOLDERS, tree::Tree { view } }
            div { class: "pane",
                div { class: "bar",
                    IconButton { icon: "chevron-left", label: words::files::BACK, disabled: visited.read().before.is_empty(), onclick: move |_| view.go_back(false) }
                    IconButton { icon: "chevron-right", label: words::files::FORWARD, disabled: visited.read().after.is_empty(), onclick: move |_| view.go_back(true) }
                    IconButton { icon: "arrow-up", label: words::files::FOLDER_ABOVE, disabled: folder.read().is_none(), onclick: move |_| view.up() }
                    Crumbs { view }
                    span { class: "sp" }
                    div { class: "search",
                        Icon { name: "search" }
                        input { r#type: "search", placeholder: words::files::SEARCH, "aria-label": words::files::SEARCH, value: "{search}", oninput: move |e| search.set(e.value()) }
                    }
                    IconButton { icon: "file-plus", label: words::files::NEW_FILE, onclick: move |_| actions::begin_new(view, false) }
                    IconButton { icon: "folder-plus", label: words::files::NEW_FOLDER, onclick: move |_| actions::begin_new(view, true) }
                    upload::Chooser { id: "upload-{view.window}", label: words::files::UPLOAD_FILES, onfiles: move |files: Vec<_>| view.take_in(&files) }
                }
                upload::Progress {}
                if finding {
                    SearchResults { search, view }
                } else {
                    match &*listing.read() {
                        Some(Ok(listing)) if listing.path == *folder.read() => rsx! { list::List { view } },
                        Some(Ok(_)) | None => rsx! { Loading {} },
                        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
                    }
                }
            }
            match view.selected().as_slice() {
                [] => rsx! {},
                [entry] => rsx! { preview::Preview { key: "{entry.path}", view, entry: entry.clone() } },
                several => rsx! { several::Several { view, entries: several.to_vec() } },
            }
        }
    }
}

#[component]
fn Crumbs(view: FilesView) -> Element {
    let folder = view.folder.read().clone();
    let mut crumbs: Vec<FilePath> = folder.iter().flat_map(|f| f.ancestors().collect::<Vec<_>>()).collect();
    crumbs.reverse();
    crumbs.extend(folder);
    rsx! {
        nav { class: "crumbs", "aria-label": words::files::PATH,
            button { onclick: move |_| view.go(None), Icon { name: "house" } {words::files::WORKSPACE} }
            for crumb in crumbs {
                span { key: "{crumb}", class: "slash", "/" }
                button { onclick: { let to = crumb.clone(); move |_| view.go(Some(to.clone())) }, "{crumb.name()}" }
            }
        }
    }
}

#[component]
fn SearchResults(search: Signal<String>, view: FilesView) -> Element {
    let app_state = app_state();
    let changes = use_changes(Change::is_of_file);
    let found = api::use_fetched::<Vec<FileMatch>>(move || {
        drop(changes.read());
        api::query("/search", &[("q", search.read().trim()), ("limit", "100")])
    });
    match &*found.read() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
        Some(Ok(found)) if found.is_empty() => rsx! {
            Empty { icon: "search", title: words::files::NOTHING_FOUND, p { {words::files::NOTHING_FOUND_MORE} } }
        },
        Some(Ok(found)) => rsx! {
            div { class: "rows scroll",
                for hit in found.clone() {
                    button { key: "{hit.path}", class: "found", onclick: { let path = hit.path.clone(); move |_| open_path(app_state, path.as_str()) },
                        Icon { name: icon_for(hit.path.name()) }
                        b { "{hit.path.name()}" }
                        small { "{hit.path}" }
                        if hit.matched == shared_types::wire::MatchedIn::Text { span { class: "chip", {words::files::IN_ITS_TEXT} } }
                    }
                }
            }
        },
    }
}
