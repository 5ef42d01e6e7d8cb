//! Actions on files. Each is done at once, and its toast offers Undo.

use dioxus::prelude::*;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;
use shared_types::wire::{ChangeResult, ChangeSeveral, Entry, MoveBody, PathBody};

use super::selection::Selection;
use super::{FilesView, Naming, open_entry, open_with};
use crate::api::{self, ApiResult};
use crate::app_list;
use crate::dom;
use crate::file_kinds::kind;
use crate::menu::Item;
use crate::state::{AppState, Clipboard, ToastAction, app_state};
use crate::words;

/// A name that is not taken yet: `name`, `name 2`, …
pub(crate) fn free_name(is_taken: impl Fn(&str) -> bool, stem: &str, extension: &str) -> String {
    let mut name = format!("{stem}{extension}");
    let mut n = 2;
    while is_taken(&name) {
        name = format!("{stem} {n}{extension}");
        n += 1;
    }
    name
}

/// Lets the person name a new file or folder, which is made then.
pub(crate) fn begin_new(mut view: FilesView, folder: bool) {
    view.naming.set(Some(if folder { Naming::NewFolder } else { Naming::NewFile }));
}

/// Makes or renames what is named, or returns why it cannot be.
pub(crate) async fn give_name(
    app_state: AppState,
    view: FilesView,
    naming: &Naming,
    name: &str,
) -> Result<(), String> {
    let to = match naming {
        Naming::Rename(path) => {
            path.parent().map_or_else(|| FilePath::parse(name), |folder| folder.join(name))
        }
        Naming::NewFile | Naming::NewFolder => view.join(name),
    };
    let to = to.map_err(|error| error.to_string())?;
    let (text, answer) = match naming {
        Naming::Rename(path) if path.name() == name => {
            finish_naming(view, naming, None);
            return Ok(());
        }
        Naming::Rename(path) => {
            let text = words::files::renamed(path.name(), name);
            let body = MoveBody { from: path.clone(), to: to.clone() };
            (text, api::post("/files/move", &body).await)
        }
        Naming::NewFile => (words::files::made(name), make_file(&to).await),
        Naming::NewFolder => (words::files::made(name), make_folder(&to).await),
    };
    if let Err(failure) = &answer {
        return Err(failure.text());
    }
    app_state.report_operation(&text, &answer);
    finish_naming(view, naming, Some(to));
    Ok(())
}

fn finish_naming(view: FilesView, naming: &Naming, named: Option<FilePath>) {
    // The person may name something else by now.
    if !view.naming.try_peek().is_ok_and(|now| now.as_ref() == Some(naming)) {
        return;
    }
    // Typing goes on in the list, unless the person is elsewhere by now.
    if dom::active().is_none_or(|element| element.id() == format!("rename-{}", view.window)) {
        dom::focus_soon(format!("list-{}", view.window));
    }
    api::update_if_open(view.naming, |naming| *naming = None);
    if let Some(named) = named {
        api::update_if_open(view.selection, |selection| *selection = Selection::of(named));
    }
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

/// Deletes what is selected, as one operation.
pub(crate) fn delete(mut view: FilesView) {
    let app_state = app_state();
    let paths: Vec<FilePath> = view.selected().into_iter().map(|entry| entry.path).collect();
    if paths.is_empty() {
        return;
    }
    view.selection.set(Selection::default());
    api::run(async move {
        let text = words::files::deleted(&words::files::name_or_count(&paths));
        let answer = api::post("/files/several", &ChangeSeveral::Delete(paths)).await;
        app_state.report_operation(&text, &answer);
    });
}

/// Puts paths into a folder, as one operation; no folder is the workspace itself.
pub(crate) fn move_into(view: FilesView, paths: Vec<FilePath>, folder: Option<FilePath>) {
    let app_state = app_state();
    let mut moves = Vec::new();
    for path in paths {
        if path.parent() == folder || folder.as_ref().is_some_and(|folder| folder.is_within(&path)) {
            continue;
        }
        let to =
            folder.as_ref().map_or_else(|| FilePath::parse(path.name()), |folder| folder.join(path.name()));
        match to {
            Ok(to) => moves.push(MoveBody { from: path, to }),
            Err(error) => return app_state.toast(error.to_string(), true, ToastAction::Nothing),
        }
    }
    if moves.is_empty() {
        return;
    }
    api::run(async move {
        let from: Vec<FilePath> = moves.iter().map(|moved| moved.from.clone()).collect();
        let place = folder.as_ref().map(FilePath::as_str);
        let text = words::files::moved(&words::files::name_or_count(&from), place);
        let answer = api::post("/files/several", &ChangeSeveral::Move(moves)).await;
        if app_state.report_operation(&text, &answer) {
            api::update_if_open(view.selection, |selection| *selection = Selection::default());
        }
    });
}

/// Copies or cuts what is selected.
pub(crate) fn take(view: FilesView, cut: bool) {
    let mut app_state = app_state();
    let paths: Vec<FilePath> = view.selected().into_iter().map(|entry| entry.path).collect();
    if paths.is_empty() {
        return;
    }
    let names = words::files::name_or_count(&paths);
    let text = if cut { words::files::cut(&names) } else { words::files::copied(&names) };
    app_state.toast(text, false, ToastAction::Nothing);
    app_state.clipboard.set(Some(Clipboard { paths, cut }));
}

pub(crate) fn paste(view: FilesView) {
    let mut app_state = app_state();
    let Some(clip) = app_state.clipboard.peek().clone() else { return };
    if clip.cut {
        app_state.clipboard.set(None);
        return move_into(view, clip.paths, view.folder.peek().clone());
    }
    let mut copies = Vec::new();
    for path in clip.paths {
        let (stem, extension) = match path.name().rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
            Some(_) | None => (path.name(), String::new()),
        };
        let is_taken =
            |name: &str| view.has(name) || copies.iter().any(|copy: &MoveBody| copy.to.name() == name);
        let Ok(to) = view.join(&free_name(is_taken, stem, &extension)) else { return };
        copies.push(MoveBody { from: path, to });
    }
    api::run(async move {
        let made: Vec<FilePath> = copies.iter().map(|copy| copy.to.clone()).collect();
        let text = words::files::copied_to(&words::files::name_or_count(&made));
        let answer = api::post("/files/several", &ChangeSeveral::Copy(copies)).await;
        app_state.report_operation(&text, &answer);
    });
}

pub(crate) fn download(path: &FilePath) {
    dom::download(
        &api::url(&api::query("/content", &[("path", path.as_str()), ("download", "1")])),
        path.name(),
    );
}

/// The menu of an entry, or of all selected ones if it is among them.
pub(crate) fn entry_menu(view: FilesView, entry: &Entry) -> Vec<Item> {
    if !view.selection.peek().contains(&entry.path) {
        view.select(entry.path.clone());
    }
    let is_single = view.selected().len() == 1;
    let is_file = matches!(entry.node, FileNode::File { .. });
    let (opened, downloaded, named, path) =
        (entry.clone(), entry.path.clone(), entry.path.clone(), entry.path.clone());
    let mut items =
        vec![Item::new("folder-open", words::OPEN, move || open_entry(view, &opened)).key("Enter")];
    if is_file && is_single {
        let viewed = entry.path.clone();
        if kind(viewed.name()).view().is_some() {
            items.push(Item::new("eye", words::viewer::VIEW, move || open_with("viewer", &viewed)));
        }
        if kind(entry.path.name()).is_text() {
            let edited = entry.path.clone();
            items.push(Item::new("pencil", words::viewer::EDIT, move || open_with("editor", &edited)));
        }
        items.push(Item::new("download", words::files::DOWNLOAD, move || download(&downloaded)));
        items.push(Item::new("history", words::files::VERSIONS, move || {
            let mut versions = view.versions;
            versions.set(true);
        }));
    }
    items.push(Item::Line);
    items.push(Item::new("copy", words::COPY, move || take(view, false)).key("Ctrl C"));
    items.push(Item::new("scissors", words::files::CUT, move || take(view, true)).key("Ctrl X"));
    if is_single {
        let rename = move || {
            let mut naming = view.naming;
            naming.set(Some(Naming::Rename(named.clone())));
        };
        items.push(Item::new("pencil", words::files::RENAME, rename).key("F2"));
        items.push(Item::new("link", words::files::COPY_PATH, move || dom::copy(path.as_str())));
    }
    items.push(Item::Line);
    items.push(Item::new("trash-2", words::files::DELETE, move || delete(view)).key("Del").bad());
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
