//! Settings: the pages, the profile, themes, storage. Accounts, models and services have modules of their own.

pub(crate) mod account;
pub(crate) mod models;
pub(crate) mod services;

use super::plural;
use crate::clock;

pub(crate) const KEEP: &str = "Keep";

// The pages.
pub(crate) const PAGES: &str = "Pages";
pub(crate) const PROFILE: &str = "Profile";
pub(crate) const APPEARANCE: &str = "Appearance";
pub(crate) const MODELS: &str = "Models";
pub(crate) const SERVICES: &str = "Services";
pub(crate) const PASSKEYS: &str = "Passkeys";
pub(crate) const SESSIONS: &str = "Sessions";
pub(crate) const TOKENS: &str = "Tokens";
pub(crate) const RECOVERY_CODES: &str = "Recovery codes";
pub(crate) const PEOPLE: &str = "People";
pub(crate) const STORAGE: &str = "Storage";

// Profile.
pub(crate) const OWNER: &str = "Owner of this computer";
pub(crate) const USER: &str = "User of this computer";
pub(crate) const TERMINAL: &str = "Terminal";
pub(crate) const OFFERED: &str = "offered";
pub(crate) const NOT_OFFERED: &str = "not offered to this account";
pub(crate) const VERSION: &str = "Version";
pub(crate) const SIGN_OUT: &str = "Sign out";

// Appearance.
pub(crate) const THEMES_ABOUT: &str = "Light and dark are the same desktop; system follows this machine.";
pub(crate) const THEME: &str = "Theme";
pub(crate) const SYSTEM: &str = "System";
pub(crate) const LIGHT: &str = "Light";
pub(crate) const DARK: &str = "Dark";

// Storage.
pub(crate) const DISK_SPACE: &str = "How the disk space is used";
pub(crate) const LOG: &str = "Log";
pub(crate) const LARGE_CONTENTS: &str = "Large contents";
pub(crate) const CHECKPOINTS: &str = "Checkpoints";
pub(crate) const LISTS_AND_SEARCH: &str = "Lists and search";
pub(crate) const EXPORT_AND_IMPORT: &str = "Export and import";
pub(crate) const EXPORT_AND_IMPORT_ABOUT: &str = "An export is one file with everything: the log, the contents, the files. An import adds the files of another export to this workspace or to a folder in it, as one operation that can be undone.";
pub(crate) const EXPORT: &str = "Export everything";
pub(crate) const IMPORT: &str = "Import…";
pub(crate) const IMPORTING: &str = "Importing…";
pub(crate) const IMPORTED: &str = "Imported";
pub(crate) const IMPORT_FOLDER: &str = "Folder to import into";
pub(crate) const IMPORT_FOLDER_EXAMPLE: &str = "Folder to import into, if any";

/// What the workspace and its history take; `disk` is the bytes of the history.
pub(crate) fn storage_use(files: u64, workspace: u64, operations: u64, events: u64, disk: u64) -> String {
    format!(
        "The workspace holds {}, {}. Its history is {} in {}, and takes {} on disk.",
        super::files(files),
        clock::size(workspace),
        plural(operations, "operation"),
        plural(events, "event"),
        clock::size(disk)
    )
}
