//! Editor: saving, changes from elsewhere, merging.

use super::plural;

// What cannot be edited.
pub(crate) const NOT_A_PATH: &str = "This is not a path";
pub(crate) const EDITOR_NOT_LOADED: &str = "The editor is not here";
pub(crate) const CANNOT_BE_EDITED: &str = "This file cannot be edited here";
pub(crate) const FILES_CAN_SHOW_IT: &str = "Files can show or download it.";
pub(crate) const TOO_LARGE: &str = "It is larger than 4 MB, which is more than this editor takes.";
pub(crate) const NO_TEXT: &str = "It does not hold text.";

// Saving.
pub(crate) const NOT_SAVED: &str = "Not saved";
pub(crate) const QUEUED: &str = "Saves when the server is back";
pub(crate) const SAVING: &str = "Saving…";
pub(crate) const SAVED: &str = "Saved";
pub(crate) const NEW_FILE: &str = "New file";
pub(crate) const SAVE: &str = "Save";
pub(crate) const SAVE_AS: &str = "Save as";
pub(crate) const FOLDER_HAS_THE_NAME: &str = "A folder is called that now.";

pub(crate) fn not_saved(reason: &str) -> String {
    format!("Not saved. {reason} Your text is still here.")
}

/// A draft of another version of the desktop.
pub(crate) fn draft_unreadable(key: &str) -> String {
    format!("Unsaved text of this file could not be read. It is kept in this browser's storage as {key}.")
}

pub(crate) const DRAFT_IN_THE_WAY: &str = "Unsaved text of this file could not be read, and there is no room for a copy. Editing would overwrite it. Reload the page, or free some of this browser's storage.";

pub(crate) fn name_taken(path: &str) -> String {
    format!("Something is called {path} already.")
}

// The status bar.
pub(crate) const GO_TO_LINE: &str = "Go to line (Ctrl G)";
pub(crate) const PLAIN_TEXT: &str = "Plain text";
pub(crate) const UTF_8: &str = "UTF-8";
pub(crate) const WRAP: &str = "Wrap";

pub(crate) fn selected(characters: u32) -> String {
    format!("{characters} selected")
}

// The file changed elsewhere.
pub(crate) const FILE_DELETED: &str = "The file was deleted or moved away. Your text is still here.";
pub(crate) const FILE_CHANGED: &str =
    "The file has changed since you opened it. Your changes are not saved, and nothing was overwritten.";
pub(crate) const SAVE_AGAIN: &str = "Save it again";
pub(crate) const MERGE: &str = "Merge";
pub(crate) const RELOAD: &str = "Reload";
pub(crate) const OVERWRITE: &str = "Overwrite";

// The merge.
pub(crate) const THE_MERGE: &str = "The merge";
pub(crate) const SAVE_MERGE: &str = "Save the merge";
pub(crate) const ALL_CHOSEN: &str = "Every place is chosen. Saving keeps what you see here.";
pub(crate) const CHANGED_BY_BOTH: &str = "Changed by both";
pub(crate) const YOURS: &str = "Yours";
pub(crate) const IN_THE_FILE: &str = "In the file";
pub(crate) const KEEP_BOTH: &str = "Keep both";
pub(crate) const BEFORE: &str = "Before";
pub(crate) const CANNOT_BE_MERGED: &str = "This is not text that can be merged.";
pub(crate) const MERGED: &str = "Merged: your changes and those in the file are saved";

pub(crate) fn left_to_choose(places: u64) -> String {
    format!("Changes to different lines were joined. {} to choose.", plural(places, "place"))
}

pub(crate) fn lines(n: u64) -> String {
    plural(n, "line")
}
