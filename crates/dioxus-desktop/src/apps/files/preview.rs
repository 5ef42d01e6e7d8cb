//! The preview of a file. Its bytes become a blob address; the page never navigates to content of the workspace.

use dioxus::prelude::*;
use shared_types::payload::file::FileNode;
use shared_types::wire::Entry;
use web_sys::{Blob, BlobPropertyBag, Url};

use super::{FilesView, Kind, actions, icon_for, kind, markdown, open_entry, versions};
use crate::api;
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::widgets::{IconButton, LoadError, Loading, choose_text};
use crate::words;

const LARGEST_TEXT: u64 = 400_000;
const LARGEST_MEDIA: u64 = 200_000_000;

/// The content of a preview.
#[derive(Clone, PartialEq)]
enum PreviewContent {
    Text(String),
    Media(String),
    Pdf(Vec<u8>),
    Nothing(&'static str),
}

/// A blob URL that is revoked when this is dropped.
#[derive(Clone, PartialEq)]
struct BlobUrl(std::rc::Rc<OwnedUrl>);

#[derive(PartialEq)]
struct OwnedUrl(String);

impl Drop for OwnedUrl {
    fn drop(&mut self) {
        let _ = Url::revoke_object_url(&self.0);
    }
}

fn blob_url(bytes: &[u8], mime: &str) -> Option<BlobUrl> {
    let parts = js_sys::Array::of1(&js_sys::Uint8Array::from(bytes));
    let options = BlobPropertyBag::new();
    options.set_type(mime);
    let blob = Blob::new_with_u8_array_sequence_and_options(&parts, &options).ok()?;
    Some(BlobUrl(std::rc::Rc::new(OwnedUrl(Url::create_object_url_with_blob(&blob).ok()?))))
}

#[component]
pub(crate) fn Preview(view: FilesView, entry: Entry) -> Element {
    let mut selection = view.selection;
    let mut show_versions = view.versions;
    let (opened, down) = (entry.clone(), entry.path.clone());
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
    let mut shown = use_signal(|| None::<api::ApiResult<PreviewContent>>);
    let mut held = use_signal(|| None::<BlobUrl>);
    let what = kind(entry.path.name());
    let name = entry.path.name().to_owned();
    let wanted = use_memo(use_reactive!(|(entry,)| entry.clone()));
    use_effect(move || {
        let entry = wanted.read().clone();
        let size = entry.node.content().map(|c| c.size).unwrap_or_default();
        spawn(async move {
            let too_large = match what {
                Kind::Text | Kind::Markdown => size > LARGEST_TEXT,
                Kind::Image(_) | Kind::Audio(_) | Kind::Video(_) | Kind::Pdf => size > LARGEST_MEDIA,
                Kind::Other => true,
            };
            if too_large {
                shown.set(Some(Ok(PreviewContent::Nothing(words::files::NO_PREVIEW_OR_TOO_LARGE))));
                return;
            }
            let path = api::query("/content", &[("path", entry.path.as_str())]);
            let answer = api::bytes(&path).await.map(|(bytes, _)| match what {
                Kind::Text | Kind::Markdown => match String::from_utf8(bytes) {
                    Ok(text) if !text.contains('\0') => PreviewContent::Text(text),
                    Ok(_) | Err(_) => PreviewContent::Nothing(words::files::NOT_TEXT),
                },
                Kind::Image(mime) | Kind::Audio(mime) | Kind::Video(mime) => {
                    let url = blob_url(&bytes, mime);
                    let text = url.as_ref().map(|u| u.0.0.clone());
                    held.set(url);
                    text.map_or(
                        PreviewContent::Nothing(words::files::BROWSER_CANNOT_SHOW),
                        PreviewContent::Media,
                    )
                }
                Kind::Pdf => PreviewContent::Pdf(bytes),
                Kind::Other => PreviewContent::Nothing(words::files::NO_PREVIEW),
            });
            shown.set(Some(answer));
        });
    });
    match shown.read().clone() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure } },
        Some(Ok(PreviewContent::Nothing(why))) => rsx! { p { class: "quiet pad", "{why}" } },
        Some(Ok(PreviewContent::Text(text))) if what == Kind::Markdown => rsx! {
            div { class: "read scroll", tabindex: "0", markdown::Markdown { text } }
        },
        Some(Ok(PreviewContent::Text(text))) => {
            rsx! { pre { class: "code scroll", tabindex: "0", "{text}" } }
        }
        Some(Ok(PreviewContent::Pdf(bytes))) => rsx! { Pdf { bytes, name } },
        Some(Ok(PreviewContent::Media(url))) => rsx! { Media { key: "{url}", what, url, name } },
    }
}

/// Media that the browser shows itself, if it can: the type is a guess by the file's name.
#[component]
fn Media(what: Kind, url: String, name: String) -> Element {
    let mut broken = use_signal(|| false);
    if broken() {
        return rsx! { p { class: "quiet pad", {words::files::FILE_CANNOT_BE_SHOWN} } };
    }
    rsx! {
        div { class: "media",
            match what {
                Kind::Image(_) => rsx! { img { src: "{url}", alt: "{name}", onerror: move |_| broken.set(true) } },
                Kind::Audio(_) => rsx! { audio { src: "{url}", controls: true, "aria-label": "{name}", onerror: move |_| broken.set(true) } },
                Kind::Video(_) => rsx! { video { src: "{url}", controls: true, "aria-label": "{name}", onerror: move |_| broken.set(true) } },
                Kind::Text | Kind::Markdown | Kind::Pdf | Kind::Other => rsx! {},
            }
        }
    }
}

/// The PDF part is a module of its own, fetched when the first PDF is looked at.
#[component]
fn Pdf(bytes: Vec<u8>, name: String) -> Element {
    let id = use_hook(|| format!("pdf-{}", (js_sys::Math::random() * 1e9) as u64));
    let mut failed = use_signal(|| None::<String>);
    let mut shown = use_signal(|| None::<crate::js_modules::PdfView>);
    let at = id.clone();
    use_hook(move || {
        spawn(async move {
            gloo_timers::future::TimeoutFuture::new(0).await;
            let Some(element) = dom::by_id(&at) else { return };
            match crate::js_modules::PdfView::mount(&element, &name, &bytes).await {
                Ok(pdf) => shown.set(Some(pdf)),
                Err(reason) => failed.set(Some(reason)),
            }
        });
    });
    rsx! {
        div { class: "pdf scroll", id,
            if let Some(reason) = failed() { p { class: "quiet pad", {words::files::PDF_CANNOT_BE_SHOWN} " {reason}" } }
        }
    }
}
