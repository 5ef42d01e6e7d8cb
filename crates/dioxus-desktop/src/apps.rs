//! The apps, in one table. To add one: write `apps/NAME.rs` with an `App` component and name it here.

pub(crate) mod editor;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod help;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod terminal;
pub(crate) mod timeline;

use dioxus::prelude::*;
use shared_types::WindowId;

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
    /// Whether asking for it again opens another window.
    pub many: bool,
    /// Whether its one window turns to what is asked for, rather than another opening.
    pub turns: bool,
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
        many: false,
        turns: false,
        names_what_it_shows: false,
    }
}

pub(crate) const APPS: &[AppInfo] = &[
    app("files", "Files", "Folders, previews and versions", "folder", (960, 600)),
    AppInfo {
        many: true,
        ..app("terminal", "Terminal", "A shell in a cell of its own", "square-terminal", (720, 440))
    },
    AppInfo { names_what_it_shows: true, ..app("editor", "Editor", "Text and code", "feather", (860, 620)) },
    AppInfo {
        turns: true,
        ..app("runs", "Runs", "What the choir does, step by step", "activity", (1040, 680))
    },
    AppInfo {
        turns: true,
        ..app("timeline", "Timeline", "Everything that happened, and undo", "history", (760, 640))
    },
    app("git", "Checkpoints", "Save points of the whole workspace", "git-branch", (860, 580)),
    AppInfo {
        turns: true,
        ..app("settings", "Settings", "Theme, models, passkeys, storage", "settings", (820, 600))
    },
    AppInfo { pinned: false, ..app("help", "Help", "How things are done here", "circle-help", (760, 560)) },
];

pub(crate) fn find(id: &str) -> Option<&'static AppInfo> {
    APPS.iter().find(|app| app.id == id)
}

/// The inside of a window.
#[component]
pub(crate) fn Body(app: String, window: WindowId, shows: Option<String>) -> Element {
    match app.as_str() {
        "files" => rsx! { files::App { window, shows } },
        "terminal" => rsx! { terminal::App { window, shows } },
        "editor" => rsx! { editor::App { window, shows } },
        "runs" => rsx! { runs::App { window, shows } },
        "timeline" => rsx! { timeline::App { window, shows } },
        "git" => rsx! { git::App { window, shows } },
        "settings" => rsx! { settings::App { window, shows } },
        "help" => rsx! { help::App { window, shows } },
        _ => rsx! {
            crate::parts::Empty { icon: "info", title: "This app is not installed", "A newer version of the desktop left this window. Reload the page to get it." }
        },
    }
}
