//! The prompt bar: objectives, results, commands, choices of model and budget.

pub(crate) const PLACEHOLDER: &str = "What should the choir do?";
pub(crate) const LABEL: &str = "Ask the choir, open, find, or type > for a command";
pub(crate) const DO_IT: &str = "Do it";

// Results.
pub(crate) const RESULTS: &str = "Results";
pub(crate) const TYPE_A_NAME: &str = "Type the name of a file to attach.";
pub(crate) const NO_SUCH_FILE: &str = "No file is called that. Go on after a space.";
pub(crate) const SAY_WHAT: &str = "Say what should be done. @ attaches a file, > begins a command.";
pub(crate) const NO_SUCH_COMMAND: &str = "There is no such command.";
pub(crate) const NO_MODEL: &str = "No model is ready to be asked";
pub(crate) const NO_MODEL_MORE: &str = "Set one up in Settings, Models";

pub(crate) fn ask(objective: &str) -> String {
    format!("Ask the choir: {objective}")
}

/// Pages of Settings: title, id, and more words that find it.
pub(crate) const PAGES: &[(&str, &str, &str)] = &[
    ("Models and keys", "models", "model key provider budget role permission anthropic openai local"),
    ("Theme", "appearance", "dark light colour appearance theme"),
    ("Passkeys", "passkeys", "passkey security key sign in"),
    ("Sessions", "sessions", "session devices sign out browsers"),
    ("Tokens", "tokens", "token api script access"),
    ("Recovery codes", "recovery", "recovery code backup"),
    ("People", "people", "people invite invitation account user"),
    ("Storage, export and import", "storage", "storage disk space export import backup zip"),
];

// Attached files.
pub(crate) const ATTACH: &str = "Attach";
pub(crate) const ATTACH_FROM_MACHINE: &str = "Attach files of this machine";
pub(crate) const FILE_ON_ITS_WAY: &str = "A file is still on its way. Ask when it is there.";

pub(crate) fn do_not_attach(path: &str) -> String {
    format!("Do not attach {path}")
}

// Choices.
pub(crate) const MODEL: &str = "Model";
pub(crate) const MODELS: &str = "Models";
pub(crate) const DEFAULT_MODEL: &str = "Default model";
pub(crate) const BUDGET: &str = "Budget";
pub(crate) const DEFAULT_BUDGET: &str = "Default budget";

pub(crate) fn default_is(value: &str) -> String {
    format!("Default: {value}")
}

pub(crate) fn up_to(money: &str) -> String {
    format!("up to {money}")
}

// Groups of results.
pub(crate) const RECENT: &str = "Recent";
pub(crate) const BEST: &str = "Best match";
pub(crate) const APPS: &str = "Apps";
pub(crate) const COMMANDS: &str = "Commands";
pub(crate) const SETTINGS: &str = "Settings";
pub(crate) const FILES: &str = "Files";
pub(crate) const AGENTS: &str = "Agents";

// What Enter does with the chosen result.
pub(crate) const ENTER_OPENS: &str = "Enter opens it";
pub(crate) const ENTER_DOES: &str = "Enter does it";
pub(crate) const ENTER_COMPLETES: &str = "Enter, then type more";
pub(crate) const ENTER_ATTACHES: &str = "Enter attaches it";
pub(crate) const ENTER_ASKS: &str = "Enter starts a run";

// Commands: the name, how it is written after `>`, what it does, and more words that find it.
pub(crate) const UNDO: Words = ("Undo the latest change", "undo", "take back revert");
pub(crate) const REDO: Words = ("Redo what was undone", "redo", "again");
pub(crate) const CHECKPOINT: Words =
    ("Make a checkpoint", "checkpoint", "save git commit the whole workspace");
pub(crate) const LIGHT: Words = ("Light theme", "theme light", "bright day mode appearance colours");
pub(crate) const DARK: Words = ("Dark theme", "theme dark", "night mode appearance colours");
pub(crate) const SYSTEM: Words = ("Theme of the system", "theme system", "automatic mode appearance colours");
pub(crate) const NEW_FILE: Words = ("New file", "new file", "create empty document");
pub(crate) const NEW_FOLDER: Words = ("New folder", "new folder", "create directory");
pub(crate) const OPEN: Words = ("Open an app, a file or a folder", "open", "show go to");
pub(crate) const RUN: Words = ("Run a command in a cell", "run", "shell execute terminal");
pub(crate) const DRY: Words = ("Try a command without its changes", "dry", "dry run preview shell");
pub(crate) const SHORTCUTS: Words = ("Keyboard shortcuts", "shortcuts", "keys help cheat sheet");
pub(crate) const TOUR: Words = ("Show the tour again", "tour", "introduction welcome help");
pub(crate) const CLOSE: Words = ("Close this window", "close", "front");
pub(crate) const CLOSE_ALL: Words = ("Close all windows", "close all", "every");
pub(crate) const MAXIMIZE: Words = ("Maximize this window", "maximize", "full screen large restore");
pub(crate) const TILE_LEFT: Words = ("Tile this window left", "tile left", "snap half side");
pub(crate) const TILE_RIGHT: Words = ("Tile this window right", "tile right", "snap half side");
pub(crate) const SIGN_OUT: Words = ("Sign out", "sign out", "log out end session leave");

/// The name of a command, how it is written after `>`, and more words that find it.
pub(crate) type Words = (&'static str, &'static str, &'static str);
