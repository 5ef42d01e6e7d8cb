//! The apps. To add one: write `apps/NAME.rs` with an `App` component, and name it in [`code`] and in `app_list`.

mod code;
pub(crate) mod editor;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod help;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod terminal;
pub(crate) mod timeline;
pub(crate) mod viewer;

pub(crate) use code::fetch_all;

use dioxus::prelude::*;
use shared_types::WindowId;

use crate::state::{ConnectionState, app_state};
use crate::widgets::{Empty, Loading, button};
use crate::words;
use code::FetchError;

/// The inside of a window.
#[component]
pub(crate) fn Body(app: String, window: WindowId, shows: Option<String>) -> Element {
    let app_state = app_state();
    let mut absent = use_signal(|| None);
    let name = app.clone();
    let fetch = use_callback(move |()| {
        let name = name.clone();
        spawn(async move { absent.set(code::fetch(&name).await.err()) });
    });
    // Once more whenever the computer is back.
    use_effect(move || {
        if *app_state.connection.read() != ConnectionState::Lost {
            fetch.call(());
        }
    });
    if let Some(draw) = code::of(&app) {
        return draw(window, shows);
    }
    match *absent.read() {
        None => rsx! { Loading {} },
        Some(FetchError::Unreachable) => rsx! {
            Empty { icon: "triangle-alert", title: words::apps::NOT_FETCHED,
                p { {words::apps::NOT_FETCHED_MORE} }
                {button("btn pri", "", words::TRY_AGAIN, move || fetch.call(()))}
            }
        },
        Some(FetchError::Unknown) => rsx! {
            Empty { icon: "info", title: words::apps::NOT_INSTALLED, {words::apps::NOT_INSTALLED_MORE} }
        },
    }
}
