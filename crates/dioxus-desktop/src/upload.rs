//! Uploads from the person's machine, with their progress, and drag and drop of files.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use futures_util::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use shared_types::FilePath;
use shared_types::wire::{ChangeResult, Listing, UploadedFile};
use wasm_bindgen::JsCast;
use web_sys::{Blob, File, FileList, XmlHttpRequest};

use crate::api::{self, ApiFailure, ApiResult};
use crate::dom;
use crate::icons::Icon;
use crate::state::{AppState, ToastAction, app_state};
use crate::widgets::IconButton;
use crate::words;

/// Files of one name at the top of a workspace, at most.
const MOST: u32 = 100;
/// The server takes requests of up to 4 GiB; more files than that are sent one by one.
const MAX_REQUEST: f64 = 4e9;
const TYPE: &str = "application/x-choir-path";

/// One upload under way.
#[derive(Clone, PartialEq)]
struct Upload {
    id: u64,
    name: String,
    done: f64,
    total: f64,
}

static UPLOADS: GlobalSignal<Vec<Upload>> = Signal::global(Vec::new);

thread_local! {
    static RUNNING: RefCell<Vec<(u64, XmlHttpRequest)>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn has_files(event: &DragEvent) -> bool {
    let transfer = event.data().as_web_event().data_transfer();
    transfer.is_some_and(|t| t.types().includes(&words::files::FILES.into(), 0))
}

/// Lets the person drag a file out of the browser.
pub(crate) fn drag_out(event: &web_sys::DragEvent, paths: &[FilePath], file: Option<&FilePath>) {
    let Some(transfer) = event.data_transfer() else { return };
    let _ = transfer.set_data(TYPE, &serde_json::to_string(paths).unwrap_or_default());
    let lines = paths.iter().map(FilePath::as_str).collect::<Vec<_>>().join("\n");
    let _ = transfer.set_data("text/plain", &lines);
    if let Some(path) = file
        && let Some(origin) = dom::window().and_then(|w| w.location().origin().ok())
    {
        let url = api::url(&api::query("/content", &[("path", path.as_str()), ("download", "1")]));
        let _ = transfer
            .set_data("DownloadURL", &format!("application/octet-stream:{}:{origin}{url}", path.name()));
    }
}

/// The paths of the workspace that are dragged.
pub(crate) fn dragged_paths(event: &web_sys::DragEvent) -> Option<Vec<FilePath>> {
    serde_json::from_str(&event.data_transfer()?.get_data(TYPE).ok()?).ok()
}

/// The files of the person's machine that a drop brings.
pub(crate) fn dropped_files(event: &web_sys::DragEvent) -> Vec<File> {
    event.data_transfer().and_then(|transfer| transfer.files()).map_or_else(Vec::new, |list| files_of(&list))
}

fn files_of(list: &FileList) -> Vec<File> {
    (0..list.length()).filter_map(|index| list.get(index)).collect()
}

/// Uploads files to paths, as one operation, and replaces existing ones.
pub(crate) fn put(files: &[(FilePath, File)]) {
    let paths: Vec<FilePath> = files.iter().map(|(path, _)| path.clone()).collect();
    let name = words::files::name_or_count(&paths);
    let text = words::files::uploaded(&name);
    let then = move |answer: Option<ApiResult<ChangeResult>>| {
        if let Some(answer) = answer {
            app_state().report_operation(&text, &answer);
        }
    };
    match files {
        [] => {}
        [(path, file)] => send(path, "any", file, then),
        several if several.iter().map(|(_, file)| file.size()).sum::<f64>() < MAX_REQUEST => {
            send_several(name, several, then);
        }
        too_large => too_large.iter().for_each(|one| put(std::slice::from_ref(one))),
    }
}

/// Sends several files in one request: a line that lists them, then their bytes. The browser reads them from the disk as it
/// sends them.
fn send_several(
    name: String,
    files: &[(FilePath, File)],
    then: impl FnOnce(Option<ApiResult<ChangeResult>>) + 'static,
) {
    let listed =
        |(path, file): &(FilePath, File)| UploadedFile { path: path.clone(), size: file.size() as u64 };
    let list: Vec<UploadedFile> = files.iter().map(listed).collect();
    let Ok(line) = serde_json::to_string(&list) else { return then(Some(Err(ApiFailure::Unreachable))) };
    let parts = js_sys::Array::of1(&format!("{line}\n").into());
    files.iter().for_each(|(_, file)| _ = parts.push(file));
    match Blob::new_with_blob_sequence(&parts) {
        Ok(body) => send_body("POST", &api::url("/files/upload"), name, &body, then),
        Err(_) => then(Some(Err(ApiFailure::Unreachable))),
    }
}

/// Puts a file at the top of the workspace under a free name. `then` gets its path, or nothing if the upload failed.
pub(crate) fn put_under_free_name(
    app_state: AppState,
    file: File,
    then: impl FnOnce(Option<FilePath>) + 'static,
) {
    api::run(async move {
        // The names are checked first, so that no file is sent only to be refused. The server checks again.
        let listing = match select(pin!(api::get::<Listing>("/files")), TimeoutFuture::new(2_000)).await {
            Either::Left((Ok(listing), _)) => listing.entries,
            Either::Left((Err(_), _)) | Either::Right(_) => Vec::new(),
        };
        let is_taken = |number: &u32| {
            let name = numbered(&file.name(), *number);
            listing.iter().any(|entry| entry.path.as_str() == name)
        };
        match (1..=MOST).find(|number| !is_taken(number)) {
            Some(first) => put_under(app_state, first, file, Box::new(then)),
            None => {
                let text = words::files::name_taken_often(&file.name(), MOST);
                app_state.toast(text, true, ToastAction::Nothing);
                then(None);
            }
        }
    });
}

fn put_under(app_state: AppState, number: u32, file: File, then: Box<dyn FnOnce(Option<FilePath>)>) {
    let path = match FilePath::parse(&numbered(&file.name(), number)) {
        Ok(path) => path,
        Err(error) => {
            app_state.toast(error.to_string(), true, ToastAction::Nothing);
            return then(None);
        }
    };
    send(&path.clone(), "absent", &file.clone(), move |answer| match answer {
        Some(Err(failure)) if failure.is_stale() && number < MOST => {
            put_under(app_state, number + 1, file, then);
        }
        Some(Ok(_)) => then(Some(path)),
        Some(Err(failure)) => {
            app_state.report_failure(&failure);
            then(None);
        }
        None => then(None),
    });
}

/// `a 2.txt` for `a.txt`.
fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        _ if number == 1 => name.to_owned(),
        Some((stem, kind)) => format!("{stem} {number}.{kind}"),
        None => format!("{name} {number}"),
    }
}

/// Sends a file and calls `then` with the answer, or with `None` if the upload was cancelled.
fn send(
    path: &FilePath,
    base: &str,
    file: &File,
    then: impl FnOnce(Option<ApiResult<ChangeResult>>) + 'static,
) {
    let url = api::url(&api::query("/content", &[("path", path.as_str()), ("base", base)]));
    send_body("PUT", &url, path.name().to_owned(), file, then);
}

/// `fetch` does not report upload progress, so this uses `XMLHttpRequest`.
fn send_body(
    method: &str,
    url: &str,
    name: String,
    body: &Blob,
    then: impl FnOnce(Option<ApiResult<ChangeResult>>) + 'static,
) {
    let unsent = || Some(Err(ApiFailure::Unreachable));
    let Ok(request) = XmlHttpRequest::new() else { return then(unsent()) };
    let id = (js_sys::Math::random() * 9e15) as u64;
    if request.open_with_async(method, url, true).is_err() {
        return then(unsent());
    }
    let _ = request.set_request_header("content-type", "application/octet-stream");
    let _ = request.set_request_header(api::COMMAND, &crate::ids::command().to_string());
    UPLOADS.write().push(Upload { id, name, done: 0.0, total: body.size() });
    if let Ok(upload) = request.upload() {
        let progress = dom::callback::<web_sys::ProgressEvent>(move |event| {
            if let Some(upload) = UPLOADS.write().iter_mut().find(|u| u.id == id) {
                upload.done = event.loaded();
            }
        });
        upload.set_onprogress(Some(progress.as_ref().unchecked_ref()));
        progress.forget();
    }
    let then = Rc::new(Cell::new(Some(then)));
    let tell = {
        let then = Rc::clone(&then);
        move |answer| {
            if let Some(then) = then.take() {
                then(answer);
            }
        }
    };
    let at_end = tell.clone();
    let ended = dom::callback::<web_sys::Event>(move |_| at_end(finish(id)));
    request.set_onloadend(Some(ended.as_ref().unchecked_ref()));
    ended.forget();
    match request.send_with_opt_blob(Some(body)) {
        Ok(()) => RUNNING.with_borrow_mut(|running| running.push((id, request))),
        Err(_) => {
            remove_upload(id);
            tell(unsent());
        }
    }
}

/// The result of an upload, unless it was cancelled.
fn finish(id: u64) -> Option<ApiResult<ChangeResult>> {
    let request = remove_upload(id)?;
    let status = request.status().unwrap_or_default();
    let said = request.response_text().ok().flatten().unwrap_or_default();
    Some(if (200..300).contains(&status) { api::read(&said) } else { Err(api::problem(status, &said)) })
}

fn remove_upload(id: u64) -> Option<XmlHttpRequest> {
    UPLOADS.write().retain(|upload| upload.id != id);
    RUNNING.with_borrow_mut(|running| {
        let index = running.iter().position(|(other, _)| *other == id)?;
        Some(running.swap_remove(index).1)
    })
}

#[component]
pub(crate) fn Progress() -> Element {
    let uploads = UPLOADS.read().clone();
    rsx! {
        if !uploads.is_empty() {
            div { class: "uploads", role: "status",
                for upload in uploads {
                    div { key: "{upload.id}", class: "upload",
                        Icon { name: "upload" }
                        span { "{upload.name}" }
                        progress { max: "{upload.total}", value: "{upload.done}", "aria-label": words::files::upload_of(&upload.name) }
                        small { {words::files::sent_of(upload.done as u64, upload.total as u64)} }
                        IconButton {
                            icon: "x",
                            label: words::files::CANCEL_UPLOAD,
                            onclick: move |_| {
                                if let Some(request) = remove_upload(upload.id) {
                                    let _ = request.abort();
                                }
                            },
                        }
                    }
                }
            }
        }
    }
}

/// Lets the person choose files of their machine.
#[component]
pub(crate) fn Chooser(id: String, label: &'static str, onfiles: EventHandler<Vec<File>>) -> Element {
    let pressed = id.clone();
    rsx! {
        IconButton { icon: "upload", label, onclick: move |_| if let Some(input) = dom::by_id(&pressed) { input.click() } }
        input {
            id: "{id}",
            class: "away",
            r#type: "file",
            multiple: true,
            tabindex: "-1",
            "aria-hidden": "true",
            onchange: move |_| {
                let Some(input) = dom::by_id(&id).and_then(|e| e.dyn_into::<web_sys::HtmlInputElement>().ok()) else { return };
                if let Some(files) = input.files() {
                    onfiles.call(files_of(&files));
                }
                input.set_value("");
            },
        }
    }
}
