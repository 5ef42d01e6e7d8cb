//! Timeline: all operations, newest first. A row can be opened, undone, and restored to. Only the visible rows are fetched
//! and rendered, so that a hundred thousand of them scroll.

pub(crate) mod command;
mod detail;
mod rows;
mod scrub;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use shared_types::wire::{Operation, Operations, RevertDirection};
use shared_types::{OpId, WindowId};

use crate::api::{self, ApiFailure, ApiResult};
use crate::icons::Icon;
use crate::state::{app_state, use_changes};
use crate::widgets::LoadError;
use crate::words;

/// Rows are fetched by pages of this many.
pub(crate) const PAGE: usize = 100;
/// Milliseconds that a page has to stay visible before it is fetched. Requests for pages that are only scrolled past
/// would delay the page where the scrolling ends.
const SCROLL_DELAY_MS: u32 = 40;

/// The filter of the rows.
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

/// The operations that were fetched, by page.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct OperationList {
    pub filter: Signal<Filter>,
    pub total: Signal<u64>,
    pub pages: Signal<BTreeMap<usize, Vec<Operation>>>,
    pub chosen: Signal<Option<OpId>>,
    pub error: Signal<Option<ApiFailure>>,
    requested: CopyValue<Vec<usize>>,
    /// The pages of the visible rows.
    visible_pages: CopyValue<RangeInclusive<usize>>,
    generation: CopyValue<u64>,
}

impl OperationList {
    /// Fetches the pages of these rows, unless they are known or requested.
    pub(crate) fn ensure_loaded(mut self, first: usize, last: usize) {
        let pages = first / PAGE..=last / PAGE;
        self.visible_pages.set(pages.clone());
        for page in pages {
            let known = self.pages.peek().contains_key(&page) || self.requested.read().contains(&page);
            if !known {
                self.requested.write().push(page);
                self.fetch_if_it_stays(page);
            }
        }
    }

    fn fetch_if_it_stays(mut self, page: usize) {
        let generation = *self.generation.read();
        spawn(async move {
            TimeoutFuture::new(SCROLL_DELAY_MS).await;
            if *self.generation.read() != generation {
                return;
            }
            if self.visible_pages.read().contains(&page) {
                self.fetch(page);
            } else {
                self.requested.write().retain(|requested| *requested != page);
            }
        });
    }

    fn fetch(mut self, page: usize) {
        let filter = self.filter.peek().clone();
        let generation = *self.generation.read();
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
            let answer: ApiResult<Operations> = api::get(&query).await;
            if *self.generation.read() != generation {
                return;
            }
            self.requested.write().retain(|requested| *requested != page);
            match answer {
                Ok(found) => {
                    self.total.set(found.total);
                    self.error.set(None);
                    self.pages.write().insert(page, found.rows);
                }
                Err(failure) => self.error.set(Some(failure)),
            }
        });
    }

    /// Fetches the visible page again and drops the others. Its old rows stay until then, so that nothing jumps.
    fn refresh(mut self, keep: usize) {
        *self.generation.write() += 1;
        self.requested.write().clear();
        self.pages.write().retain(|page, _| *page == keep);
        self.requested.write().push(keep);
        self.fetch(keep);
    }

    pub(crate) fn row(self, index: usize) -> Option<Operation> {
        self.pages.read().get(&(index / PAGE)).and_then(|rows| rows.get(index % PAGE)).cloned()
    }
}

/// The title of a row: a command as it was typed, and what an undo or a redo was about.
pub(crate) fn row_title(row: &Operation) -> String {
    if let Some(command) = &row.title {
        return command.clone();
    }
    if let Some(reverted) = &row.reverts {
        let verb = match reverted.direction {
            RevertDirection::Undo => words::undo::UNDID,
            RevertDirection::Redo => words::undo::REDID,
        };
        return words::timeline::reverted(verb, &reverted.title);
    }
    let mut text = row.label.clone();
    if let Some(first) = text.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    text
}

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let app_state = app_state();
    let list = OperationList {
        filter: use_signal(Filter::default),
        total: use_signal(|| 0),
        pages: use_signal(BTreeMap::new),
        chosen: use_signal(|| None),
        error: use_signal(|| None),
        requested: use_hook(|| CopyValue::new(Vec::new())),
        visible_pages: use_hook(|| CopyValue::new(0..=0)),
        generation: use_hook(|| CopyValue::new(0)),
    };
    let top = use_signal(|| 0usize);
    let mut chosen = list.chosen;
    // The window may be opened for an operation, such as a command that was just started.
    use_effect(use_reactive!(|shows| {
        match shows.as_deref().map(str::parse::<OpId>) {
            Some(Ok(op)) => chosen.set(Some(op)),
            Some(Err(error)) => app_state.report_unreadable_later(&error.to_string()),
            None => {}
        }
    }));
    let changes = use_changes(move |change| {
        !change.is_of_window() || list.filter.peek().family != words::timeline::FAMILIES[0].0
    });
    use_effect(move || {
        let _ = (changes.read(), list.filter.read());
        list.refresh(*top.peek() / rows::ROW_HEIGHT / PAGE);
    });
    let mut filter = list.filter;
    let error = list.error.read().clone();
    rsx! {
        div { class: "timeline",
            scrub::Scrub { list, window }
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
            if let Some(failure) = error {
                LoadError { failure }
            } else {
                div { class: "split",
                    rows::Rows { list, top }
                    if let Some(op) = *list.chosen.read() {
                        detail::Detail { key: "{op}", list, op }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row as the server sends it, with more fields.
    fn title(label: &str, more: &str) -> String {
        let id = OpId::from_bytes([1; 16]);
        let json = format!(
            r#"{{"op":"{id}","first":1,"last":1,"ts":0,"source":"user","actor":"a","family":"f","label":"{label}",
                "events":1,"files":0,"reversible":true,"undone":false{more}}}"#
        );
        row_title(&crate::json::read(&json).unwrap())
    }

    #[test]
    fn a_row_is_named_by_fields_and_not_by_the_text_of_its_label() {
        assert_eq!(title("edit a.txt", ""), "Edit a.txt");
        assert_eq!(title("undo run 01010101", ""), "Undo run 01010101", "a server that does not say what");
        assert_eq!(title("ran: make", r#","title":"make""#), "make");
        let of = |direction: &str| {
            let op = OpId::from_bytes([2; 16]);
            format!(r#","reverts":{{"direction":"{direction}","op":"{op}","title":"Sort my notes"}}"#)
        };
        assert_eq!(title("undo run 02020202", &of("undo")), "Undid “Sort my notes”");
        assert_eq!(title("redo run 02020202", &of("redo")), "Redid “Sort my notes”");
    }
}
