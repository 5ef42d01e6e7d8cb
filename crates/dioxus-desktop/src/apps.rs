//! The apps, in one table. To add one: write `apps/NAME.rs` with an `App` component, and name it here and in [`code`].

mod code;
pub(crate) mod editor;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod help;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod terminal;
pub(crate) mod timeline;

pub(crate) use code::fetch_all;

use dioxus::prelude::*;
use shared_types::WindowId;

use crate::connection::Link;
use crate::parts::{Empty, Loading, press};
use crate::state::app_state;
use crate::words;
use code::FetchError;

/// What the desktop knows of an app.
#[derive(Debug, PartialEq)]
pub(crate) struct AppInfo {
    pub id: &'static str,
    pub title: &'static str,
    /// What it is for, in the launcher.
    pub about: &'static str,
    pub icon: &'static str,
    pub size: (i32, i32),
    /// Whether it always has a place in the taskbar.
    pub pinned: bool,
    /// Whether opening it again opens another window.
    pub opens_many: bool,
    /// Whether its one window shows a new target, such as another run, rather than a second window.
    pub reuses_window: bool,
    /// Whether a window is named after what it shows.
    pub names_what_it_shows: bool,
}

const fn app(
    id: &'static str,
    title: &'static str,
    about: &'static str,
    icon: &'static str,
    size: (i32, i32),
) -> AppInfo {
    AppInfo {
        id,
        title,
        about,
        icon,
        size,
        pinned: true,
        opens_many: false,
        reuses_window: false,
        names_what_it_shows: false,
    }
}

pub(crate) const APPS: &[AppInfo] = &[
    app("files", words::apps::FILES, words::apps::FILES_ABOUT, "folder", (960, 600)),
    AppInfo {
        opens_many: true,
        ..app("terminal", words::apps::TERMINAL, words::apps::TERMINAL_ABOUT, "square-terminal", (720, 440))
    },
    AppInfo {
        names_what_it_shows: true,
        ..app("editor", words::apps::EDITOR, words::apps::EDITOR_ABOUT, "feather", (860, 620))
    },
    AppInfo {
        reuses_window: true,
        ..app("runs", words::apps::RUNS, words::apps::RUNS_ABOUT, "activity", (1040, 680))
    },
    AppInfo {
        reuses_window: true,
        ..app("timeline", words::apps::TIMELINE, words::apps::TIMELINE_ABOUT, "history", (760, 640))
    },
    app("git", words::apps::CHECKPOINTS, words::apps::CHECKPOINTS_ABOUT, "git-branch", (860, 580)),
    AppInfo {
        reuses_window: true,
        ..app("settings", words::apps::SETTINGS, words::apps::SETTINGS_ABOUT, "settings", (820, 600))
    },
    AppInfo {
        pinned: false,
        ..app("help", words::apps::HELP, words::apps::HELP_ABOUT, "circle-help", (760, 560))
    },
];

pub(crate) fn find(id: &str) -> Option<&'static AppInfo> {
    APPS.iter().find(|app| app.id == id)
}

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
        if *app_state.link.read() != Link::Lost {
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
                {press("btn pri", "", words::TRY_AGAIN, move || fetch.call(()))}
            }
        },
        Some(FetchError::Unknown) => rsx! {
            Empty { icon: "info", title: words::apps::NOT_INSTALLED, {words::apps::NOT_INSTALLED_MORE} }
        },
    }
}
