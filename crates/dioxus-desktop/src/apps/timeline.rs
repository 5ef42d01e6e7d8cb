//! Timeline: everything that happened, newest first, as rows that can be opened, undone and returned to. A hundred
//! thousand rows scroll, because only those in sight are fetched and drawn.

pub(crate) mod command;
mod detail;
mod rows;
mod scrub;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use shared_types::wire::{Operation, Operations};
use shared_types::{OpId, WindowId};

use crate::api::{self, Answer, Failure};
use crate::icons::Icon;
use crate::parts::LoadError;
use crate::state::use_changes;
use crate::words;

/// Rows are fetched by pages of this many.
pub(crate) const PAGE: usize = 100;
/// Milliseconds after which a page counts as looked at. Pages that are only scrolled past are not fetched: their
/// requests would delay those of the page where the scrolling ends.
const PASSING: u32 = 40;

/// What the rows are filtered by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    pub source: String,
    pub family: String,
    pub text: String,
}

impl Default for Filter {
    fn default() -> Self {
        Self { source: String::new(), family: words::timeline::FAMILIES[0].0.to_owned(), text: String::new() }
    }
}

/// The rows that are known, by page.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Log {
    pub filter: Signal<Filter>,
    pub total: Signal<u64>,
    pub pages: Signal<BTreeMap<usize, Vec<Operation>>>,
    pub chosen: Signal<Option<OpId>>,
    pub trouble: Signal<Option<Failure>>,
    asked: CopyValue<Vec<usize>>,
    /// The pages that hold the rows in sight.
    sight: CopyValue<RangeInclusive<usize>>,
    turn: CopyValue<u64>,
}

impl Log {
    /// Fetches the pages that hold these rows, if they are not known or on their way.
    pub(crate) fn want(mut self, first: usize, last: usize) {
        let pages = first / PAGE..=last / PAGE;
        self.sight.set(pages.clone());
        for page in pages {
            let known = self.pages.peek().contains_key(&page) || self.asked.read().contains(&page);
            if !known {
                self.asked.write().push(page);
                self.fetch_if_it_stays(page);
            }
        }
    }

    fn fetch_if_it_stays(mut self, page: usize) {
        let turn = *self.turn.read();
        spawn(async move {
            TimeoutFuture::new(PASSING).await;
            if *self.turn.read() != turn {
                return;
            }
            if self.sight.read().contains(&page) {
                self.fetch(page);
            } else {
                self.asked.write().retain(|asked| *asked != page);
            }
        });
    }

    fn fetch(mut self, page: usize) {
        let filter = self.filter.peek().clone();
        let turn = *self.turn.read();
        spawn(async move {
            let (offset, limit) = ((page * PAGE).to_string(), PAGE.to_string());
            let query = api::query(
                "/operations",
                &[
                    ("offset", &offset),
                    ("limit", &limit),
                    ("source", &filter.source),
                    ("family", &filter.family),
                    ("q", filter.text.trim()),
                ],
            );
            let answer: Answer<Operations> = api::get(&query).await;
            if *self.turn.read() != turn {
                return;
            }
            self.asked.write().retain(|asked| *asked != page);
            match answer {
                Ok(found) => {
                    self.total.set(found.total);
                    self.trouble.set(None);
                    self.pages.write().insert(page, found.rows);
                }
                Err(failure) => self.trouble.set(Some(failure)),
            }
        });
    }

    /// Something happened: what is in sight is fetched again, the rest when it is looked at. The old rows stay until
    /// then, so that nothing jumps.
    fn refresh(mut self, keep: usize) {
        *self.turn.write() += 1;
        self.asked.write().clear();
        self.pages.write().retain(|page, _| *page == keep);
        self.asked.write().push(keep);
        self.fetch(keep);
    }

    /// What a row says: an undo names what it undid, where that is known.
    pub(crate) fn title(self, row: &Operation) -> String {
        let of = |verb: &str, said: &str| {
            let short = row.label.strip_prefix(verb)?.trim();
            let named = |other: &&Operation| other.op != row.op && other.op.to_string().contains(short);
            let pages = self.pages.read();
            let target = pages.values().flatten().find(named).filter(|_| short.len() >= 6)?;
            Some(words::timeline::reverted(said, target.label.trim_start_matches("ran: ")))
        };
        if row.call.is_some() {
            return row.label.strip_prefix("ran: ").unwrap_or(&row.label).to_owned();
        }
        let mut text = of("undo ", words::undo::UNDID)
            .or_else(|| of("redo ", words::undo::REDID))
            .unwrap_or_else(|| row.label.clone());
        if let Some(first) = text.get_mut(0..1) {
            first.make_ascii_uppercase();
        }
        text
    }

    pub(crate) fn row(self, index: usize) -> Option<Operation> {
        self.pages.read().get(&(index / PAGE)).and_then(|rows| rows.get(index % PAGE)).cloned()
    }
}

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let log = Log {
        filter: use_signal(Filter::default),
        total: use_signal(|| 0),
        pages: use_signal(BTreeMap::new),
        chosen: use_signal(|| None),
        trouble: use_signal(|| None),
        asked: use_hook(|| CopyValue::new(Vec::new())),
        sight: use_hook(|| CopyValue::new(0..=0)),
        turn: use_hook(|| CopyValue::new(0)),
    };
    let top = use_signal(|| 0usize);
    let mut chosen = log.chosen;
    // Asked to show an operation, such as a command that was just started.
    use_effect(use_reactive!(|shows| {
        if let Some(op) = shows.and_then(|shows| shows.parse().ok()) {
            chosen.set(Some(op));
        }
    }));
    let changes = use_changes(move |change| {
        !change.is_of_window() || log.filter.peek().family != words::timeline::FAMILIES[0].0
    });
    use_effect(move || {
        let _ = (changes.read(), log.filter.read());
        log.refresh(*top.peek() / rows::ROW / PAGE);
    });
    let mut filter = log.filter;
    let trouble = log.trouble.read().clone();
    rsx! {
        div { class: "timeline",
            scrub::Scrub { log, window }
            div { class: "bar filters",
                Icon { name: "funnel" }
                select { "aria-label": words::timeline::WHO, onchange: move |e| filter.write().source = e.value(),
                    for (value, name) in words::timeline::SOURCES { option { key: "{value}", value: *value, "{name}" } }
                }
                select { "aria-label": words::timeline::WHAT, onchange: move |e| filter.write().family = e.value(),
                    for (value, name) in words::timeline::FAMILIES { option { key: "{value}", value: *value, "{name}" } }
                }
                div { class: "search",
                    Icon { name: "search" }
                    input { r#type: "search", placeholder: words::timeline::SEARCH, "aria-label": words::timeline::SEARCH_LABEL, oninput: move |e| filter.write().text = e.value() }
                }
            }
            if let Some(failure) = trouble {
                LoadError { failure }
            } else {
                div { class: "split",
                    rows::Rows { log, top }
                    if let Some(op) = *log.chosen.read() {
                        detail::Detail { key: "{op}", log, op }
                    }
                }
            }
        }
    }
}
