//! What the prompt bar offers: agents, apps, commands, pages of Settings and files, the most likely first.

use shared_types::FilePath;
use shared_types::wire::{FileMatch, MatchedIn};

use super::palette::{self, Candidate, Fit, fit};
use super::prompt_commands::{self, Command};
use crate::app_list::{self, AppInfo};
use crate::words;
use crate::{clock, dom};

/// Something that can be chosen.
#[derive(Clone, PartialEq)]
pub(super) enum Hit {
    /// The text is an objective.
    Objective,
    /// There is no model that could take one.
    NoModel,
    App(&'static AppInfo),
    File {
        path: FilePath,
        about: String,
    },
    Page {
        title: &'static str,
        page: &'static str,
    },
    Command(Command),
}

impl Hit {
    fn group(&self) -> &'static str {
        match self {
            Self::Objective | Self::NoModel => words::prompt::AGENTS,
            Self::App(_) => words::prompt::APPS,
            Self::File { .. } => words::prompt::FILES,
            Self::Page { .. } => words::prompt::SETTINGS,
            Self::Command(_) => words::prompt::COMMANDS,
        }
    }

    /// The name under which it is remembered as recently chosen.
    fn key(&self) -> Option<String> {
        match self {
            Self::Objective | Self::NoModel => None,
            Self::App(app) => Some(format!("app:{}", app.id)),
            Self::File { path, .. } => Some(format!("file:{path}")),
            Self::Page { page, .. } => Some(format!("page:{page}")),
            Self::Command(command) => Some(format!("command:{}", command.written)),
        }
    }

    fn of_key(key: &str) -> Option<Self> {
        let (kind, name) = key.split_once(':')?;
        match kind {
            "app" => app_list::find(name).map(Self::App),
            "file" => {
                let path = FilePath::parse(name).ok()?;
                Some(Self::File { about: path.to_string(), path })
            }
            "page" => words::prompt::PAGES
                .iter()
                .find(|(_, page, _)| *page == name)
                .map(|(title, page, _)| Self::Page { title, page }),
            "command" => prompt_commands::COMMANDS
                .iter()
                .find(|command| command.written == name)
                .copied()
                .map(Self::Command),
            _ => None,
        }
    }

    fn of_match(found: &FileMatch) -> Self {
        let place = match found.matched {
            MatchedIn::Name => clock::size(found.size),
            MatchedIn::Text => words::files::IN_ITS_TEXT.to_owned(),
        };
        Self::File { path: found.path.clone(), about: format!("{} · {place}", found.path) }
    }
}

/// One line of the results, under the heading of its group.
#[derive(Clone, PartialEq)]
pub(super) struct ResultRow {
    pub(super) group: &'static str,
    pub(super) hit: Hit,
}

/// How many results of one kind are shown.
const MAX_PER_GROUP: usize = 5;

/// What the search found, perhaps for an earlier text.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) files: &'a [FileMatch],
    pub(super) is_for_this_text: bool,
}

/// What the prompt bar offers for a text, the most likely first.
pub(super) fn results(text: &str, found: Found<'_>, recent: &[String], with_files: bool) -> Vec<ResultRow> {
    let row = |hit: Hit| ResultRow { group: hit.group(), hit };
    if let Some(rest) = text.strip_prefix('>') {
        return prompt_commands::matching(rest).into_iter().map(Hit::Command).map(row).collect();
    }
    if attaching(text).is_some() {
        let files = if found.is_for_this_text { found.files } else { &[] };
        return files.iter().map(Hit::of_match).map(row).collect();
    }
    if text.trim().is_empty() {
        let last: Vec<Hit> = recent.iter().filter_map(|key| Hit::of_key(key)).take(MAX_PER_GROUP).collect();
        let apps = app_list::APPS.iter().map(Hit::App).filter(|app| !last.contains(app)).map(row);
        let last = last.iter().cloned().map(|hit| ResultRow { group: words::prompt::RECENT, hit });
        return last.chain(apps).collect();
    }
    let ranked = palette::ranked(candidates(text, found, recent));
    let best = ranked.first().map(|candidate| candidate.fit);
    let mut hits = ranked.into_iter().map(|candidate| candidate.hit);
    let mut rows = Vec::new();
    if with_files || palette::is_objective(text, best) {
        rows.push(row(Hit::Objective));
    } else {
        rows.extend(hits.next().map(|hit| ResultRow { group: words::prompt::BEST, hit }));
        rows.push(row(Hit::Objective));
    }
    // The groups in the order of their best results.
    let mut groups: Vec<(&'static str, Vec<Hit>)> = Vec::new();
    for hit in hits {
        match groups.iter_mut().find(|(group, _)| *group == hit.group()) {
            Some((_, hits)) if hits.len() < MAX_PER_GROUP => hits.push(hit),
            Some(_) => {}
            None => groups.push((hit.group(), vec![hit])),
        }
    }
    rows.extend(groups.into_iter().flat_map(|(_, hits)| hits).map(row));
    rows
}

fn candidates(text: &str, found: Found<'_>, recent: &[String]) -> Vec<Candidate<Hit>> {
    let candidate = |fit: Fit, hit: Hit| {
        let place = hit.key().and_then(|key| recent.iter().position(|known| *known == key));
        Candidate { fit, recent: place.map_or(0, |place| recent.len() - place), hit }
    };
    let mut candidates = Vec::new();
    for app in app_list::APPS {
        candidates.extend(fit(text, app.title, app.about).map(|fit| candidate(fit, Hit::App(app))));
    }
    for command in prompt_commands::COMMANDS {
        candidates.extend(command.fit(text).map(|fit| candidate(fit, Hit::Command(*command))));
    }
    for &(title, page, more) in words::prompt::PAGES {
        candidates.extend(fit(text, title, more).map(|fit| candidate(fit, Hit::Page { title, page })));
    }
    for file in found.files {
        // The server may have found it by its text, unless that was for another one.
        let by_text = found.is_for_this_text.then_some(Fit::Description);
        let fit = fit(text, file.path.name(), file.path.as_str()).or(by_text);
        candidates.extend(fit.map(|fit| candidate(fit, Hit::of_match(file))));
    }
    candidates
}

const MAX_RECENT: usize = 20;

/// What was chosen recently, the newest first.
pub(super) fn recently_chosen() -> Vec<String> {
    dom::kept(dom::RECENT).and_then(|kept| serde_json::from_str(&kept).ok()).unwrap_or_default()
}

pub(super) fn remember(hit: &Hit) {
    let Some(key) = hit.key() else { return };
    let mut recent = recently_chosen();
    recent.retain(|known| *known != key);
    recent.insert(0, key);
    recent.truncate(MAX_RECENT);
    if let Ok(kept) = serde_json::to_string(&recent) {
        dom::keep(dom::RECENT, Some(&kept));
    }
}

/// The beginning of a file's name that is being attached: the last word, after its `@`.
pub(super) fn attaching(text: &str) -> Option<&str> {
    text.rsplit(char::is_whitespace).next()?.strip_prefix('@').filter(|_| !text.starts_with('>'))
}
