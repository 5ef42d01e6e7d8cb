//! A file, shown by the viewer module of `web/`, which is fetched when the first file is looked at.

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;

use crate::apps::files;
use crate::dom;
use crate::js_modules::FileView;
use crate::state::app_state;
use crate::words;

/// Shows a file, or a text as if it stood in that file. It does not follow its properties: give it a key.
#[component]
pub(crate) fn PartView(view: &'static str, path: String, text: Option<String>) -> Element {
    let app_state = app_state();
    let id = use_hook(|| format!("view-{}", (js_sys::Math::random() * 1e9) as u64));
    let mut failed = use_signal(|| None::<String>);
    let mut shown = use_signal(|| None::<FileView>);
    let at = id.clone();
    use_hook(move || {
        spawn(async move {
            // The element is in the page after this turn.
            TimeoutFuture::new(0).await;
            let Some(element) = dom::by_id(&at) else { return };
            match FileView::mount(&element, view, &path, text.as_deref()).await {
                Ok(mut file) => {
                    file.on_open(move |path| files::open_path(app_state, &path));
                    shown.set(Some(file));
                }
                Err(reason) => failed.set(Some(reason)),
            }
        });
    });
    rsx! {
        div { class: "view", id, "aria-busy": (shown.read().is_none() && failed.read().is_none()).to_string(),
            if let Some(reason) = failed() { p { class: "quiet pad", role: "status", {words::viewer::NOT_SHOWN} " {reason}" } }
        }
    }
}

/// Markdown that does not come from a file.
#[component]
pub(crate) fn Markdown(text: String) -> Element {
    rsx! {
        PartView { key: "{text}", view: "markdown", path: "", text }
    }
}
