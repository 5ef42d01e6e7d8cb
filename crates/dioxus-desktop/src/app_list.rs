//! The table of apps, as the launcher, the taskbar and the prompt bar show them.

use crate::words;

/// An app.
#[derive(Debug, PartialEq)]
pub(crate) struct AppInfo {
    pub id: &'static str,
    pub title: &'static str,
    /// Its purpose, for the launcher.
    pub about: &'static str,
    pub icon: &'static str,
    pub size: (i32, i32),
    /// Whether it is always in the taskbar.
    pub pinned: bool,
    /// Whether opening it again opens another window.
    pub opens_many: bool,
    /// Whether its one window shows a new target, such as another run, rather than a second window.
    pub reuses_window: bool,
    /// Whether the title of a window is the name of the file or item that it shows.
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
        names_what_it_shows: true,
        ..app("viewer", words::apps::VIEWER, words::apps::VIEWER_ABOUT, "eye", (900, 660))
    },
    AppInfo {
        pinned: false,
        ..app("help", words::apps::HELP, words::apps::HELP_ABOUT, "circle-help", (760, 560))
    },
];

pub(crate) fn find(id: &str) -> Option<&'static AppInfo> {
    APPS.iter().find(|app| app.id == id)
}
