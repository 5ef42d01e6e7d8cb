//! Messages to the person: toasts, and the notices that stay.

use std::str::FromStr;

use dioxus::prelude::*;
use shared_types::payload::DesktopEvent;
use shared_types::wire::{ChangeResult, SentEvent};
use shared_types::{RunId, Source};

use super::{AppState, Notice, Toast, ToastAction};
use crate::api::{self, ApiFailure, ApiResult};
use crate::{ids, words};

impl AppState {
    pub(crate) fn toast(mut self, text: impl Into<String>, bad: bool, offer: ToastAction) {
        let id = ids::now().millis() as u64 * 1000 + (ids::fraction() * 1000.0) as u64;
        let text = text.into();
        {
            let mut toasts = self.toasts.write();
            toasts.push(Toast { id, text: text.clone(), bad, offer });
            if toasts.len() > 2 {
                toasts.remove(0);
            }
        }
        if bad {
            self.notice(text, true, None);
        }
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(10_000).await;
            self.toasts.write().retain(|toast| toast.id != id);
        });
    }

    /// Removes offers to redo, or to undo again, once the person has done something else. Arranging windows does not
    /// count.
    pub(super) fn outdate(mut self, event: &SentEvent, what: &DesktopEvent) {
        if event.source != Source::User || matches!(what, DesktopEvent::Window(_)) {
            return;
        }
        let now = event.op;
        let is_old = |toast: &Toast| matches!(toast.offer, ToastAction::Redo(op) | ToastAction::UndoAgain(op) if op != now);
        if self.toasts.peek().iter().any(is_old) {
            self.toasts.write().retain(|toast| !is_old(toast));
        }
    }

    pub(crate) fn notice(mut self, text: String, bad: bool, run: Option<RunId>) {
        self.notices.write().insert(0, Notice { at: ids::now(), text, bad, run });
        self.notices.write().truncate(50);
        *self.unread.write() += 1;
    }

    pub(crate) fn report_failure(self, failure: &ApiFailure) {
        self.toast(failure.text(), true, ToastAction::Nothing);
    }

    /// Reports a message that cannot be read, unless a toast already says so. Other failures of automatic reads are not
    /// reported here: the connection banner shows them.
    pub(crate) fn report_unreadable(self, failure: &ApiFailure) {
        let text = failure.text();
        let is_shown = self.toasts.peek().iter().any(|toast| toast.text == text);
        if matches!(failure, ApiFailure::Unreadable(_)) && !is_shown {
            self.toast(text, true, ToastAction::Nothing);
        }
    }

    /// Reports a message of this tab that the server refused: as a notice, since the person may have caused it without
    /// knowing, such as by typing into a terminal that has just ended. Each text is listed once.
    pub(crate) fn report_refused(self, detail: &str) {
        let text = words::message_refused(detail);
        if !self.notices.peek().iter().any(|notice| notice.text == text) {
            self.notice(text, true, None);
        }
    }

    /// [`Self::report_unreadable`] for a value that this desktop stored, such as a setting. Components read those while
    /// they render, when no signal may be written, so the report follows later.
    pub(crate) fn report_unreadable_later(self, reason: &str) {
        let failure = api::unreadable(reason);
        api::run(async move { self.report_unreadable(&failure) });
    }

    /// The value of a choice, where an empty text stands for none of them. The texts are this page's own, so one that
    /// cannot be read is a bug: it is reported, and nothing is chosen.
    pub(crate) fn read_choice<T: FromStr>(self, text: &str) -> Option<Option<T>> {
        if text.is_empty() {
            return Some(None);
        }
        match text.parse() {
            Ok(value) => Some(Some(value)),
            Err(_) => {
                self.report_unreadable(&api::unreadable(text));
                None
            }
        }
    }

    /// Reports that something was done that has no undo, or why it was not.
    pub(crate) fn report_done<T>(self, text: &str, answer: &ApiResult<T>) {
        match answer {
            Ok(_) => self.toast(text, false, ToastAction::Nothing),
            Err(failure) => self.report_failure(failure),
        }
    }

    /// Reports an operation and offers its undo; false if it failed.
    pub(crate) fn report_operation(self, text: &str, answer: &ApiResult<ChangeResult>) -> bool {
        match answer {
            Ok(done) => {
                // A move is two changes and still one file.
                let text = if done.total > 2 {
                    words::desktop::done_to_files(text, done.total)
                } else {
                    text.to_owned()
                };
                let offer = done.op.map_or(ToastAction::Nothing, ToastAction::Undo);
                self.toast(text, false, offer);
                true
            }
            Err(failure) => {
                self.report_failure(failure);
                false
            }
        }
    }
}
