//! Help: short answers, and what is running.

pub(crate) const HELP: &str = "Help";
pub(crate) const SEARCH: &str = "Search help";
pub(crate) const TAKE_THE_TOUR: &str = "Take the tour";
pub(crate) const NOTHING_FOUND: &str = "No results.";
pub(crate) const KEYBOARD_SHORTCUTS: &str = "Keyboard shortcuts";

// Health.
pub(crate) const HEALTH: &str = "Health";
pub(crate) const HEALTH_INTRO: &str = "The parts of this computer that run now. Each is supervised: if one fails, it is started again by its rule.";
pub(crate) const PART: &str = "Part";
pub(crate) const STATE: &str = "State";
pub(crate) const IF_IT_FAILS: &str = "If it fails";
pub(crate) const NONE_RUN: &str = "none";
pub(crate) const RUNNING: &str = "running";

/// How many parts of a kind run.
pub(crate) fn running(count: usize) -> String {
    match count {
        0 => NONE_RUN.into(),
        1 => RUNNING.into(),
        count => format!("{count} running"),
    }
}

pub(crate) fn restarting(failure: &str) -> String {
    format!("starting again after: {failure}")
}

pub(crate) fn restarts(count: u32) -> String {
    super::plural(u64::from(count), "restart")
}

// About.
pub(crate) const ABOUT: &str = "About";
pub(crate) const VERSION: &str = "Version";
pub(crate) const COMPUTER: &str = "Computer";
pub(crate) const ASKING: &str = "asking…";
pub(crate) const ICONS: &str = "Icons";
pub(crate) const ICONS_BY: &str = "Lucide, ISC License";
pub(crate) const TYPE: &str = "Type";
pub(crate) const TYPE_BY: &str = "Inter, JetBrains Mono, Source Serif, Open Font License";

/// A question as a title, and its answer.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    (
        "Ask the choir",
        "Press Ctrl K and say what should be done; @ and a name attaches a file, and one of your own machine can be dropped there. Runs shows every agent and each of its steps while they work: pause, steer, stop, undo a step or the whole run. What cannot be undone is asked about first, in a corner over every app. Keys, models and budgets are in Settings, Models.",
    ),
    (
        "Find and open things",
        "Press Ctrl K (Cmd K on a Mac) anywhere and type. Apps, files, settings and commands are found by name, also with a wrong letter, and files by their text. Each line says what Enter does with it. A line that begins with > is a command with words of its own: >checkpoint before the rewrite, >new file notes.md, >open terminal, >run make.",
    ),
    (
        "Move and size windows",
        "Drag the title bar, or hold Alt and drag from anywhere. Drag to the left or right edge for half the screen, to a corner for a quarter, to the top for all of it. Double-click the title to maximise. Every edge resizes. Ctrl Alt and an arrow key does the same by keyboard.",
    ),
    (
        "Undo anything",
        "Ctrl Z takes back your latest change: a deleted file, a moved window, a setting. The toast after each change offers the same. Timeline undoes any row, also an old one; if something changed since, both sides are shown and you choose.",
    ),
    (
        "Go back to a moment",
        "In Timeline, drag the bar on top to see the desktop as it was. Restore to here, on a row or in Checkpoints, returns files, windows and settings to that moment. It shows what would change first, and it can itself be undone.",
    ),
    (
        "Work with several files",
        "In Files, hold Ctrl or Shift and click, or press Shift and an arrow key; Ctrl A selects all. Delete, cut, copy, paste and drag then act on all of them as one change, which one Undo takes back. Press the heading of a column to sort by it, and type letters to go to a name.",
    ),
    (
        "Versions of a file",
        "Choose a file in Files and press Versions. Each version shows how it differs from now, and Restore this version brings it back as a new change.",
    ),
    (
        "Upload and download",
        "Drop files on a Files window, or press the upload button. To download, use the context menu, or drag a file out of the window.",
    ),
    (
        "Checkpoints",
        "A checkpoint is a git commit of the whole workspace. They are made by themselves from time to time; make your own with a message before something large.",
    ),
    (
        "The terminal",
        "A terminal is a shell in the workspace, in a cell of its own. What a command changes appears in Timeline as one operation, and can be undone like everything else.",
    ),
    (
        "Commands and cells",
        "What runs in a cell sees the workspace and the programs of this machine, and nothing else: no other files, no network. >run make runs a command on a copy; what it changed is kept as one operation when it ends. >dry make shows what it would change, and you accept or discard that. Only the owner, at the machine itself and while there is no other account, can open a plain shell.",
    ),
    (
        "Sign in elsewhere",
        "Add a passkey in Settings to sign in from this browser again. On the machine itself, choir link prints a one-time link. Recovery codes are for the day when everything else is lost.",
    ),
    (
        "When the connection is lost",
        "What is open stays open. Moved windows and settings are sent when the computer is back, and everything you missed arrives by itself.",
    ),
    (
        "Take everything with you",
        "Settings, Storage: Export gives one file with everything, Import brings the files of another computer in.",
    ),
];
