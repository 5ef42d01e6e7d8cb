//! The apps: their names, what they are for, and what a window without its app says.

pub(crate) const FILES: &str = "Files";
pub(crate) const FILES_ABOUT: &str = "Folders, previews and versions";
pub(crate) const TERMINAL: &str = "Terminal";
pub(crate) const TERMINAL_ABOUT: &str = "A shell in a cell of its own";
pub(crate) const EDITOR: &str = "Editor";
pub(crate) const EDITOR_ABOUT: &str = "Text and code";
pub(crate) const VIEWER: &str = "Viewer";
pub(crate) const VIEWER_ABOUT: &str = "Pictures, PDF, media, tables and pages";
pub(crate) const RUNS: &str = "Runs";
pub(crate) const RUNS_ABOUT: &str = "What the choir does, step by step";
pub(crate) const TIMELINE: &str = "Timeline";
pub(crate) const TIMELINE_ABOUT: &str = "Everything that happened, and undo";
pub(crate) const CHECKPOINTS: &str = "Checkpoints";
pub(crate) const CHECKPOINTS_ABOUT: &str = "Save points of the whole workspace";
pub(crate) const SETTINGS: &str = "Settings";
pub(crate) const SETTINGS_ABOUT: &str = "Theme, models, passkeys, storage";
pub(crate) const HELP: &str = "Help";
pub(crate) const HELP_ABOUT: &str = "How things are done here";

// An app whose code is not there.
pub(crate) const NOT_FETCHED: &str = "This app could not be fetched";
pub(crate) const NOT_FETCHED_MORE: &str =
    "The computer does not answer, or has a newer desktop: then reload the page.";
pub(crate) const NOT_INSTALLED: &str = "This app is not installed";
pub(crate) const NOT_INSTALLED_MORE: &str =
    "A newer version of the desktop left this window. Reload the page to get it.";
