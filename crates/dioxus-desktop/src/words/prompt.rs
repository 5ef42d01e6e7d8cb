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
pub(crate) const ENTER: &str = "Enter";

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
pub(crate) const MODELS_AS_SET: &str = "Models as set";
pub(crate) const BUDGET: &str = "Budget";
pub(crate) const BUDGET_AS_SET: &str = "Budget as set";

pub(crate) fn as_set(value: &str) -> String {
    format!("As set: {value}")
}

pub(crate) fn up_to(money: &str) -> String {
    format!("up to {money}")
}

// Commands: how each is written, and what it does.
pub(crate) const UNDO: (&str, &str) = (">undo", "Take back the latest change");
pub(crate) const REDO: (&str, &str) = (">redo", "Do again what was undone");
pub(crate) const CHECKPOINT: (&str, &str) =
    (">checkpoint MESSAGE", "Save the whole workspace under a message");
pub(crate) const THEME: (&str, &str) = (">theme light, dark or system", "Change the colours");
pub(crate) const NEW_FILE: (&str, &str) = (">new file NAME", "Make an empty file and open it");
pub(crate) const NEW_FOLDER: (&str, &str) = (">new folder NAME", "Make a folder");
pub(crate) const OPEN: (&str, &str) = (">open APP or PATH", "Open an app, a file or a folder");
pub(crate) const RUN: (&str, &str) = (">run COMMAND", "Run a command in a cell; undo takes it back");
pub(crate) const DRY: (&str, &str) = (">dry COMMAND", "Try a command and see what it would change");
pub(crate) const SHORTCUTS: (&str, &str) = (">shortcuts", "Show the keyboard shortcuts");
pub(crate) const TOUR: (&str, &str) = (">tour", "Show the tour again");
pub(crate) const CLOSE_ALL: (&str, &str) = (">close all", "Close every window");
pub(crate) const SIGN_OUT: (&str, &str) = (">sign out", "End this session");

pub(crate) fn no_such_theme(name: &str) -> String {
    format!("There is no theme {name}: light, dark or system.")
}
