//! The commands of the prompt bar.

use dioxus::prelude::*;
use shared_types::FilePath;
use shared_types::wire::{ChangeResult, NewCheckpoint};

use super::palette::{self, Candidate, Fit, fit};
use super::shortcuts::on_front;
use super::snap::{self, Zone};
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
    /// The value of the setting.
    Theme(&'static str),
    NewFile,
    NewFolder,
    Open,
    Run,
    Dry,
    Shortcuts,
    Tour,
    Close,
    CloseAll,
    Place(Zone),
    SignOut,
}

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    verb: Verb,
    /// A plain name, by which it is found without `>`.
    pub name: &'static str,
    /// How it is written after `>`, before its argument.
    pub written: &'static str,
    /// More words that find it.
    pub about: &'static str,
}

const fn command(verb: Verb, (name, written, about): words::prompt::Words) -> Command {
    Command { verb, name, written, about }
}

pub(crate) const COMMANDS: &[Command] = &[
    command(Verb::Undo, words::prompt::UNDO),
    command(Verb::Redo, words::prompt::REDO),
    command(Verb::NewFile, words::prompt::NEW_FILE),
    command(Verb::NewFolder, words::prompt::NEW_FOLDER),
    command(Verb::Open, words::prompt::OPEN),
    command(Verb::Checkpoint, words::prompt::CHECKPOINT),
    command(Verb::Run, words::prompt::RUN),
    command(Verb::Dry, words::prompt::DRY),
    command(Verb::Theme("dark"), words::prompt::DARK),
    command(Verb::Theme("light"), words::prompt::LIGHT),
    command(Verb::Theme("system"), words::prompt::SYSTEM),
    command(Verb::Close, words::prompt::CLOSE),
    command(Verb::CloseAll, words::prompt::CLOSE_ALL),
    command(Verb::Place(Zone::Full), words::prompt::MAXIMIZE),
    command(Verb::Place(Zone::Left), words::prompt::TILE_LEFT),
    command(Verb::Place(Zone::Right), words::prompt::TILE_RIGHT),
    command(Verb::Shortcuts, words::prompt::SHORTCUTS),
    command(Verb::Tour, words::prompt::TOUR),
    command(Verb::SignOut, words::prompt::SIGN_OUT),
];

impl Command {
    /// How well its name, or how it is written, fits a text.
    pub(super) fn fit(&self, typed: &str) -> Option<Fit> {
        let (by_name, by_written) = (fit(typed, self.name, self.about), fit(typed, self.written, ""));
        [by_name, by_written].into_iter().flatten().min()
    }

    fn wants_argument(&self) -> bool {
        match self.verb {
            Verb::Checkpoint | Verb::NewFile | Verb::NewFolder | Verb::Open | Verb::Run | Verb::Dry => true,
            Verb::Undo
            | Verb::Redo
            | Verb::Theme(_)
            | Verb::Shortcuts
            | Verb::Tour
            | Verb::Close
            | Verb::CloseAll
            | Verb::Place(_)
            | Verb::SignOut => false,
        }
    }

    /// What follows `>` and the command; nothing if something else was typed.
    fn argument<'a>(&self, text: &'a str) -> &'a str {
        let typed = text.strip_prefix('>').map(str::trim_start);
        typed.and_then(|typed| self.after_written(typed)).unwrap_or_default().trim()
    }

    /// What follows the command in a text that begins with it, in capitals or not.
    fn after_written<'a>(&self, typed: &'a str) -> Option<&'a str> {
        let (begun, rest) = typed.split_at_checked(self.written.len())?;
        begun.eq_ignore_ascii_case(self.written).then_some(rest)
    }
}

/// The commands that the text after `>` may become, the most likely first.
pub(crate) fn matching(typed: &str) -> Vec<Command> {
    let typed = typed.trim_start();
    // The argument may be anything, so only the command that is written in full is meant then.
    let is_begun = |command: &&Command| {
        let rest = command.after_written(typed);
        rest.is_some_and(|rest| rest.is_empty() || command.wants_argument() && rest.starts_with(' '))
    };
    if let Some(begun) = COMMANDS.iter().filter(is_begun).max_by_key(|command| command.written.len()) {
        return vec![*begun];
    }
    if typed.is_empty() {
        return COMMANDS.to_vec();
    }
    let candidate = |command: &Command| {
        let fit = command.fit(typed)?;
        Some(Candidate { fit, recent: 0, hit: *command })
    };
    let ranked = palette::ranked(COMMANDS.iter().filter_map(candidate).collect());
    ranked.into_iter().map(|candidate| candidate.hit).collect()
}

/// The text to put into the bar if the command needs an argument.
pub(crate) fn completion(command: &Command, text: &str) -> Option<String> {
    (command.wants_argument() && command.argument(text).is_empty()).then(|| format!(">{} ", command.written))
}

pub(crate) fn run(mut app_state: AppState, command: &Command, text: &str) {
    let words = command.argument(text).to_owned();
    match command.verb {
        Verb::Undo => undo::revert_latest(app_state, RevertKind::Undo),
        Verb::Redo => undo::revert_latest(app_state, RevertKind::Redo),
        Verb::Checkpoint => api::run(async move {
            let answer: ApiResult<ChangeResult> =
                api::post("/checkpoints", &NewCheckpoint { message: words }).await;
            app_state.report_done(words::checkpoints::MADE, &answer);
        }),
        Verb::Theme(theme) => app_state.set("theme", theme.into()),
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
        Verb::Close => on_front(app_state, |id| app_state.close(id)),
        Verb::Place(zone) => on_front(app_state, |id| snap::to_zone(app_state, id, zone)),
        Verb::CloseAll => {
            let ids: Vec<_> = app_state.windows.peek().keys().copied().collect();
            for id in ids {
                app_state.close(id);
            }
        }
        Verb::SignOut => app_state.sign_out(),
    }
}
