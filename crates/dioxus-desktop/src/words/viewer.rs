//! Viewer: one file in a window of its own. What its views say is in `web/src/viewer/words.ts`.

pub(crate) const NO_FILE: &str = "No file";
pub(crate) const NO_FILE_MORE: &str =
    "Open a picture, a PDF, a table or another file in Files to see it here.";
pub(crate) const NOT_SHOWN: &str =
    "This file cannot be shown here. Download it to open it with another program.";
pub(crate) const UNKNOWN_KIND_MORE: &str = "Download it to open it with another program.";
pub(crate) const EDIT: &str = "Edit";
pub(crate) const VIEW: &str = "View";
pub(crate) const SHOW_IN_FILES: &str = "Show in Files";
pub(crate) const PREVIOUS: &str = "Previous picture";
pub(crate) const NEXT: &str = "Next picture";

pub(crate) fn unknown_kind(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((_, ending)) => format!("There is no viewer for .{ending} files"),
        None => "There is no viewer for this file".into(),
    }
}

/// The place of a picture among those of its folder.
pub(crate) fn place(at: usize, of: usize) -> String {
    format!("{at} of {of}")
}
