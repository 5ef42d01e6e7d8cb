//! Files from outside, with progress; and dragging a file out of the window.

use std::cell::RefCell;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::FilePath;
use shared_types::wire::Done;
use wasm_bindgen::JsCast;
use web_sys::{File, FileList, XmlHttpRequest};

use super::Place;
use crate::api::{self, Answer};
use crate::desk::{Offer, desk};
use crate::icons::Icon;
use crate::parts::IconButton;
use crate::{clock, dom};

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
    transfer.is_some_and(|t| t.types().includes(&"Files".into(), 0))
}

/// Gives the browser what it needs to drop the file elsewhere.
pub(crate) fn drag_out(event: &web_sys::DragEvent, path: &FilePath, folder: bool) {
    let Some(transfer) = event.data_transfer() else { return };
    let _ = transfer.set_data(TYPE, path.as_str());
    let _ = transfer.set_data("text/plain", path.as_str());
    if !folder && let Some(origin) = dom::window().and_then(|w| w.location().origin().ok()) {
        let url = api::url(&api::query("/content", &[("path", path.as_str()), ("download", "1")]));
        let _ = transfer
            .set_data("DownloadURL", &format!("application/octet-stream:{}:{origin}{url}", path.name()));
    }
}

pub(crate) fn dragged_path(event: &web_sys::DragEvent) -> Option<FilePath> {
    FilePath::parse(&event.data_transfer()?.get_data(TYPE).ok()?).ok()
}

pub(crate) fn dropped(place: Place, event: &DragEvent) {
    let native = event.data().as_web_event();
    if let Some(path) = dragged_path(&native) {
        return super::actions::move_into(place, path, place.folder.peek().clone());
    }
    if let Some(files) = native.data_transfer().and_then(|t| t.files()) {
        all(place, &files);
    }
}

fn all(place: Place, files: &FileList) {
    for file in (0..files.length()).filter_map(|i| files.get(i)) {
        match place.join(&file.name()) {
            Ok(path) => send(path, &file),
            Err(error) => desk().toast(error.to_string(), true, Offer::Nothing),
        }
    }
}

/// A `fetch` does not tell how far an upload is, so this is an `XMLHttpRequest`.
fn send(path: FilePath, file: &File) {
    let Ok(request) = XmlHttpRequest::new() else { return };
    let id = (js_sys::Math::random() * 9e15) as u64;
    let url = api::url(&api::query("/content", &[("path", path.as_str()), ("base", "any")]));
    if request.open_with_async("PUT", &url, true).is_err() {
        return;
    }
    let _ = request.set_request_header("content-type", "application/octet-stream");
    UPLOADS.write().push(Upload { id, name: path.name().to_owned(), done: 0.0, total: file.size() });
    if let Ok(upload) = request.upload() {
        let progress = dom::callback::<web_sys::ProgressEvent>(move |event| {
            if let Some(upload) = UPLOADS.write().iter_mut().find(|u| u.id == id) {
                upload.done = event.loaded();
            }
        });
        upload.set_onprogress(Some(progress.as_ref().unchecked_ref()));
        progress.forget();
    }
    let ended = dom::callback::<web_sys::Event>(move |_| finish(id, &path));
    request.set_onloadend(Some(ended.as_ref().unchecked_ref()));
    ended.forget();
    if request.send_with_opt_blob(Some(file)).is_ok() {
        RUNNING.with_borrow_mut(|running| running.push((id, request)));
    }
}

fn finish(id: u64, path: &FilePath) {
    UPLOADS.write().retain(|u| u.id != id);
    let request = RUNNING.with_borrow_mut(|running| {
        let index = running.iter().position(|(other, _)| *other == id)?;
        Some(running.swap_remove(index).1)
    });
    let Some(request) = request else { return };
    let status = request.status().unwrap_or_default();
    let text = request.response_text().ok().flatten().unwrap_or_default();
    let answer: Answer<Done> = if (200..300).contains(&status) {
        serde_json::from_str(&text).map_err(|e| api::Failure::Unreadable(e.to_string()))
    } else {
        Err(api::problem(status, &text))
    };
    desk().did(&format!("Uploaded {}", path.name()), &answer);
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
                        progress { max: "{upload.total}", value: "{upload.done}", "aria-label": "Upload of {upload.name}" }
                        small { "{clock::size(upload.done as u64)} of {clock::size(upload.total as u64)}" }
                        IconButton {
                            icon: "x",
                            label: "Cancel the upload",
                            onclick: move |_| {
                                UPLOADS.write().retain(|u| u.id != upload.id);
                                let request = RUNNING.with_borrow_mut(|running| {
                                    let index = running.iter().position(|(other, _)| *other == upload.id)?;
                                    Some(running.swap_remove(index).1)
                                });
                                if let Some(request) = request {
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

#[component]
pub(crate) fn UploadButton(place: Place) -> Element {
    let id = format!("upload-{}", place.window);
    let pressed = id.clone();
    rsx! {
        IconButton { icon: "upload", label: "Upload files", onclick: move |_| if let Some(input) = dom::by_id(&pressed) { input.click() } }
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
                    all(place, &files);
                }
                input.set_value("");
            },
        }
    }
}
