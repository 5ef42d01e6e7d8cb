//! Actions on files. Each is done at once, and its toast offers Undo.

use dioxus::prelude::*;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;
use shared_types::wire::{ChangeResult, Entry, MoveBody, PathBody};

use super::{FilesView, open_entry};
use crate::api::{self, ApiResult};
use crate::app_list;
use crate::dom;
use crate::menu::Item;
use crate::state::{AppState, Clipboard, ToastAction, app_state};
use crate::words;

/// A name that is not taken yet: `name`, `name 2`, …
fn free_name(view: FilesView, stem: &str, extension: &str) -> String {
    let taken: Vec<String> = view.entries().iter().map(|e| e.path.name().to_owned()).collect();
    let mut name = format!("{stem}{extension}");
    let mut n = 2;
    while taken.contains(&name) {
        name = format!("{stem} {n}{extension}");
        n += 1;
    }
    name
}

/// Makes a file or folder with a free name and lets the person name it.
pub(crate) fn begin_new(view: FilesView, folder: bool) {
    let name = if folder {
        free_name(view, words::files::NEW_FOLDER, "")
    } else {
        free_name(view, "untitled", ".txt")
    };
    let Ok(path) = view.join(&name) else { return };
    let app_state = app_state();
    api::run(async move {
        let answer = if folder { make_folder(&path).await } else { make_file(&path).await };
        if app_state.report_operation(&words::files::made(path.name()), &answer) {
            api::update_if_open(view.chosen, |chosen| *chosen = Some(path.clone()));
            api::update_if_open(view.renaming, |renaming| *renaming = Some(path));
        }
    });
}

async fn make_file(path: &FilePath) -> ApiResult<ChangeResult> {
    api::put_bytes(&api::query("/content", &[("path", path.as_str()), ("base", "absent")]), &[]).await
}

async fn make_folder(path: &FilePath) -> ApiResult<ChangeResult> {
    api::post("/folders", &PathBody { path: path.clone() }).await
}

pub(crate) fn new_file(app_state: AppState, path: FilePath, open: bool) {
    api::run(async move {
        let answer = make_file(&path).await;
        if app_state.report_operation(&words::files::made(path.as_str()), &answer)
            && open
            && let Some(app) = app_list::find("editor")
        {
            app_state.open(app, Some(path.as_str()));
        }
    });
}

pub(crate) fn new_folder(app_state: AppState, path: FilePath) {
    api::run(async move {
        let answer = make_folder(&path).await;
        app_state.report_operation(&words::files::made(path.as_str()), &answer);
    });
}

pub(crate) fn delete(mut view: FilesView, path: FilePath) {
    let app_state = app_state();
    view.chosen.set(None);
    api::run(async move {
        let answer = api::post("/files/delete", &PathBody { path: path.clone() }).await;
        app_state.report_operation(&words::files::deleted(path.name()), &answer);
    });
}

pub(crate) fn rename(mut view: FilesView, path: FilePath, name: &str) {
    view.renaming.set(None);
    dom::focus_soon(format!("list-{}", view.window));
    let name = name.trim();
    if name.is_empty() || name == path.name() {
        return;
    }
    let to = match path.parent() {
        Some(parent) => parent.join(name),
        None => FilePath::parse(name),
    };
    match to {
        Ok(to) => send_move(view, path, to),
        Err(error) => app_state().toast(error.to_string(), true, ToastAction::Nothing),
    }
}

/// Puts a path into a folder; no folder is the workspace itself.
pub(crate) fn move_into(view: FilesView, path: FilePath, folder: Option<FilePath>) {
    if path.parent() == folder || folder.as_ref().is_some_and(|f| f.is_within(&path)) {
        return;
    }
    let to = match folder {
        Some(folder) => folder.join(path.name()),
        None => FilePath::parse(path.name()),
    };
    match to {
        Ok(to) => send_move(view, path, to),
        Err(error) => app_state().toast(error.to_string(), true, ToastAction::Nothing),
    }
}

fn send_move(view: FilesView, from: FilePath, to: FilePath) {
    let app_state = app_state();
    api::run(async move {
        let text = if from.parent() == to.parent() {
            words::files::renamed(from.name(), to.name())
        } else {
            words::files::moved(from.name(), to.parent().as_ref().map(FilePath::as_str))
        };
        let answer = api::post("/files/move", &MoveBody { from, to: to.clone() }).await;
        if app_state.report_operation(&text, &answer) {
            api::update_if_open(view.chosen, |chosen| *chosen = chosen.take().map(|_| to));
        }
    });
}

pub(crate) fn take(path: FilePath, cut: bool) {
    let mut app_state = app_state();
    let text = if cut { words::files::cut(path.name()) } else { words::files::copied(path.name()) };
    app_state.toast(text, false, ToastAction::Nothing);
    app_state.clipboard.set(Some(Clipboard { path, cut }));
}

pub(crate) fn paste(view: FilesView) {
    let mut app_state = app_state();
    let Some(clip) = app_state.clipboard.peek().clone() else { return };
    if clip.cut {
        app_state.clipboard.set(None);
        return move_into(view, clip.path, view.folder.peek().clone());
    }
    let name = clip.path.name().to_owned();
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem.to_owned(), format!(".{extension}")),
        Some(_) | None => (name.clone(), String::new()),
    };
    let Ok(to) = view.join(&free_name(view, &stem, &extension)) else { return };
    api::run(async move {
        let answer = api::post("/files/copy", &MoveBody { from: clip.path, to: to.clone() }).await;
        app_state.report_operation(&words::files::copied_to(to.name()), &answer);
    });
}

pub(crate) fn download(path: &FilePath) {
    dom::download(
        &api::url(&api::query("/content", &[("path", path.as_str()), ("download", "1")])),
        path.name(),
    );
}

pub(crate) fn entry_menu(mut view: FilesView, entry: &Entry) -> Vec<Item> {
    let path = entry.path.clone();
    let with = move |run: fn(FilesView, FilePath)| {
        let path = path.clone();
        move || run(view, path.clone())
    };
    let is_file = matches!(entry.node, FileNode::File { .. });
    let opened = entry.clone();
    let mut items =
        vec![Item::new("folder-open", words::OPEN, move || open_entry(view, &opened)).key("Enter")];
    if is_file {
        items.push(Item::new("download", words::files::DOWNLOAD, with(|_, path| download(&path))));
        items.push(Item::new(
            "history",
            words::files::VERSIONS,
            with(|mut view, path| {
                view.chosen.set(Some(path));
                view.versions.set(true);
            }),
        ));
    }
    items.push(Item::Line);
    items.push(Item::new("copy", words::COPY, with(|_, path| take(path, false))).key("Ctrl C"));
    items.push(Item::new("scissors", words::files::CUT, with(|_, path| take(path, true))).key("Ctrl X"));
    items.push(
        Item::new("pencil", words::files::RENAME, with(|mut view, path| view.renaming.set(Some(path))))
            .key("F2"),
    );
    items.push(Item::new("link", words::files::COPY_PATH, with(|_, path| dom::copy(path.as_str()))));
    items.push(Item::Line);
    items.push(Item::new("trash-2", words::files::DELETE, with(delete)).key("Del").bad());
    view.chosen.set(Some(entry.path.clone()));
    items
}

pub(crate) fn folder_menu(view: FilesView) -> Vec<Item> {
    let mut items = vec![
        Item::new("file-plus", words::files::NEW_FILE, move || begin_new(view, false)),
        Item::new("folder-plus", words::files::NEW_FOLDER, move || begin_new(view, true)),
    ];
    if app_state().clipboard.peek().is_some() {
        items.push(Item::new("clipboard-paste", words::files::PASTE, move || paste(view)).key("Ctrl V"));
    }
    items
}
