//! The commands of the prompt bar.

use dioxus::prelude::*;
use shared_types::FilePath;
use shared_types::wire::{ChangeResult, NewCheckpoint};

use crate::api::{self, ApiResult};
use crate::state::{AppState, Overlay};
use crate::undo;
use crate::undo_plan::RevertKind;
use crate::words;
use crate::{app_list, apps};

/// The action of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Undo,
    Redo,
    Checkpoint,
    Theme,
    NewFile,
    NewFolder,
    Open,
    Run,
    Dry,
    Shortcuts,
    Tour,
    CloseAll,
    SignOut,
}

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    verb: Verb,
    /// The names that it is found by.
    name: &'static str,
    pub usage: &'static str,
    pub about: &'static str,
}

const fn command(verb: Verb, name: &'static str, (usage, about): (&'static str, &'static str)) -> Command {
    Command { verb, name, usage, about }
}

const COMMANDS: &[Command] = &[
    command(Verb::Undo, "undo", words::prompt::UNDO),
    command(Verb::Redo, "redo", words::prompt::REDO),
    command(Verb::Checkpoint, "checkpoint", words::prompt::CHECKPOINT),
    command(Verb::Theme, "theme", words::prompt::THEME),
    command(Verb::NewFile, "new file", words::prompt::NEW_FILE),
    command(Verb::NewFolder, "new folder", words::prompt::NEW_FOLDER),
    command(Verb::Open, "open", words::prompt::OPEN),
    command(Verb::Run, "run", words::prompt::RUN),
    command(Verb::Dry, "dry", words::prompt::DRY),
    command(Verb::Shortcuts, "shortcuts", words::prompt::SHORTCUTS),
    command(Verb::Tour, "tour", words::prompt::TOUR),
    command(Verb::CloseAll, "close all", words::prompt::CLOSE_ALL),
    command(Verb::SignOut, "sign out", words::prompt::SIGN_OUT),
];

impl Command {
    fn wants_words(&self) -> bool {
        match self.verb {
            Verb::Checkpoint
            | Verb::Theme
            | Verb::NewFile
            | Verb::NewFolder
            | Verb::Open
            | Verb::Run
            | Verb::Dry => true,
            Verb::Undo | Verb::Redo | Verb::Shortcuts | Verb::Tour | Verb::CloseAll | Verb::SignOut => false,
        }
    }

    fn words<'a>(&self, text: &'a str) -> &'a str {
        text.trim_start_matches('>').trim().get(self.name.len()..).unwrap_or_default().trim()
    }
}

/// The commands that the typed text may become.
pub(crate) fn matching(typed: &str) -> Vec<Command> {
    let typed = typed.trim_start().to_lowercase();
    COMMANDS
        .iter()
        .filter(|c| c.name.starts_with(typed.trim()) || typed.starts_with(c.name))
        .cloned()
        .collect()
}

/// The text to put into the bar if the command needs an argument.
pub(crate) fn completion(command: &Command, text: &str) -> Option<String> {
    (command.wants_words() && command.words(text).is_empty()).then(|| format!(">{} ", command.name))
}

pub(crate) fn run(mut app_state: AppState, command: &Command, text: &str) {
    let words = command.words(text).to_owned();
    match command.verb {
        Verb::Undo => undo::revert_latest(app_state, RevertKind::Undo),
        Verb::Redo => undo::revert_latest(app_state, RevertKind::Redo),
        Verb::Checkpoint => api::run(async move {
            let answer: ApiResult<ChangeResult> =
                api::post("/checkpoints", &NewCheckpoint { message: words }).await;
            app_state.report_done(words::checkpoints::MADE, &answer);
        }),
        Verb::Theme => match words.as_str() {
            "light" | "dark" | "system" => app_state.set("theme", words.into()),
            other => {
                app_state.toast(words::prompt::no_such_theme(other), true, crate::state::ToastAction::Nothing)
            }
        },
        Verb::NewFile => match FilePath::parse(&words) {
            Ok(path) => apps::files::actions::new_file(app_state, path, true),
            Err(error) => app_state.toast(error.to_string(), true, crate::state::ToastAction::Nothing),
        },
        Verb::NewFolder => match FilePath::parse(&words) {
            Ok(path) => apps::files::actions::new_folder(app_state, path),
            Err(error) => app_state.toast(error.to_string(), true, crate::state::ToastAction::Nothing),
        },
        Verb::Open => {
            let lower = words.to_lowercase();
            let app = app_list::APPS
                .iter()
                .find(|app| app.id == lower || app.title.to_lowercase().starts_with(&lower));
            match app {
                Some(app) => app_state.open(app, None),
                None => apps::files::open_path(app_state, &words),
            }
        }
        Verb::Run => apps::timeline::command::start(app_state, &words, false),
        Verb::Dry => apps::timeline::command::start(app_state, &words, true),
        Verb::Shortcuts => app_state.overlay.set(Overlay::Shortcuts),
        Verb::Tour => app_state.overlay.set(Overlay::Tour),
        Verb::CloseAll => {
            let ids: Vec<_> = app_state.windows.peek().keys().copied().collect();
            for id in ids {
                app_state.close(id);
            }
        }
        Verb::SignOut => app_state.sign_out(),
    }
}
