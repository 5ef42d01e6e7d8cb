//! Files: folders, previews, versions, uploads.

use super::plural;
use crate::clock;

// The bar above the list.
pub(crate) const FOLDERS: &str = "Folders";
pub(crate) const FOLDER_ABOVE: &str = "Folder above";
pub(crate) const BACK: &str = "Back";
pub(crate) const FORWARD: &str = "Forward";
pub(crate) const NEW_FILE: &str = "New file";
pub(crate) const NEW_FOLDER: &str = "New folder";
pub(crate) const PATH: &str = "Path";
pub(crate) const SEARCH: &str = "Search names and text";
pub(crate) const WORKSPACE: &str = "Workspace";

pub(crate) fn open_folder(name: &str) -> String {
    format!("Open {name}")
}

pub(crate) fn close_folder(name: &str) -> String {
    format!("Close {name}")
}

// Search results.
pub(crate) const IN_ITS_TEXT: &str = "in its text";
pub(crate) const NOTHING_FOUND: &str = "Nothing found";
pub(crate) const NOTHING_FOUND_MORE: &str = "No name and no text contains these words.";

// The list.
pub(crate) const FILES: &str = "Files";
pub(crate) const NAME: &str = "Name";
pub(crate) const SIZE: &str = "Size";
pub(crate) const CHANGED: &str = "Changed";
pub(crate) const NEW_NAME: &str = "New name";
pub(crate) const FOLDER_EMPTY: &str = "This folder is empty";
pub(crate) const FOLDER_EMPTY_MORE: &str = "Drop files here, or begin with a new one.";

pub(crate) fn items(n: u64) -> String {
    plural(n, "item")
}

pub(crate) fn selected_of(selected: u64, all: u64) -> String {
    format!("{} of {} selected", clock::count(selected), items(all))
}

pub(crate) fn sort_by(column: &str) -> String {
    format!("Sort by {}", column.to_lowercase())
}

// Several selected entries.
pub(crate) const CLEAR_SELECTION: &str = "Clear the selection";

pub(crate) fn in_all(size: &str) -> String {
    format!("{size} in all")
}

// Names.
pub(crate) const NAME_NEEDED: &str = "Type a name.";
pub(crate) const NO_SLASH: &str = "A name cannot contain a slash.";

pub(crate) fn name_taken(name: &str) -> String {
    format!("{name} is here already.")
}

/// The name of one file, or how many there are.
pub(crate) fn name_or_count(paths: &[shared_types::FilePath]) -> String {
    match paths {
        [path] => path.name().to_owned(),
        several => items(several.len() as u64),
    }
}

// Menus.
pub(crate) const COPY_PATH: &str = "Copy path";
pub(crate) const CUT: &str = "Cut";
pub(crate) const DELETE: &str = "Delete";
pub(crate) const DOWNLOAD: &str = "Download";
pub(crate) const PASTE: &str = "Paste";
pub(crate) const RENAME: &str = "Rename";
pub(crate) const VERSIONS: &str = "Versions";

// Toasts.
const THE_WORKSPACE: &str = "the workspace";

pub(crate) fn made(name: &str) -> String {
    format!("Made {name}")
}

pub(crate) fn deleted(name: &str) -> String {
    format!("Deleted {name}")
}

pub(crate) fn renamed(from: &str, to: &str) -> String {
    format!("Renamed {from} to {to}")
}

/// No folder is the workspace itself.
pub(crate) fn moved(name: &str, folder: Option<&str>) -> String {
    format!("Moved {name} into {}", folder.unwrap_or(THE_WORKSPACE))
}

pub(crate) fn cut(name: &str) -> String {
    format!("Cut {name}")
}

pub(crate) fn copied(name: &str) -> String {
    format!("Copied {name}")
}

pub(crate) fn copied_to(name: &str) -> String {
    format!("Copied to {name}")
}

// The preview.
pub(crate) const CLOSE_PREVIEW: &str = "Close the preview";
pub(crate) const NO_PREVIEW: &str = "There is no preview for this kind of file.";

pub(crate) fn preview_of(name: &str) -> String {
    format!("Preview of {name}")
}

pub(crate) fn about_folder(changed: &str) -> String {
    format!("Folder · {changed}")
}

pub(crate) fn about_link(target: &str) -> String {
    format!("Link to {target}")
}

// Versions of a file.
pub(crate) const NO_VERSIONS: &str = "No versions yet";
pub(crate) const NO_VERSIONS_MORE: &str = "They appear as the file changes.";
pub(crate) const PRESENT_VERSION: &str = "This is how it is now.";
pub(crate) const RESTORE_VERSION: &str = "Restore this version";
pub(crate) const SAME_AS_NOW: &str = "The same as now.";

pub(crate) fn restored(name: &str) -> String {
    format!("Restored an older {name}")
}

// Uploads.
pub(crate) const CANCEL_UPLOAD: &str = "Cancel the upload";
pub(crate) const UPLOAD_FILES: &str = "Upload files";

pub(crate) fn uploaded(name: &str) -> String {
    format!("Uploaded {name}")
}

pub(crate) fn upload_of(name: &str) -> String {
    format!("Upload of {name}")
}

pub(crate) fn sent_of(sent: u64, total: u64) -> String {
    format!("{} of {}", clock::size(sent), clock::size(total))
}

pub(crate) fn name_taken_often(name: &str, count: u32) -> String {
    format!("{count} files are called {name} already. Give it another name.")
}
