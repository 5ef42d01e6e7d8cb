//! Messages to the person: toasts, and the notices that stay.

use dioxus::prelude::*;
use shared_types::payload::DesktopEvent;
use shared_types::wire::{ChangeResult, SentEvent};
use shared_types::{RunId, Source};

use super::{AppState, Notice, Offer, Toast};
use crate::api::{self, Answer, Failure};
use crate::{ids, words};

impl AppState {
    pub(crate) fn toast(mut self, text: impl Into<String>, bad: bool, offer: Offer) {
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
        let is_old =
            |toast: &Toast| matches!(toast.offer, Offer::Redo(op) | Offer::UndoAgain(op) if op != now);
        if self.toasts.peek().iter().any(is_old) {
            self.toasts.write().retain(|toast| !is_old(toast));
        }
    }

    pub(crate) fn notice(mut self, text: String, bad: bool, run: Option<RunId>) {
        self.notices.write().insert(0, Notice { at: ids::now(), text, bad, run });
        self.notices.write().truncate(50);
        *self.unread.write() += 1;
    }

    pub(crate) fn report_failure(self, failure: &Failure) {
        self.toast(failure.text(), true, Offer::Nothing);
    }

    /// Reports a message that cannot be read, once for as long as its toast is there. Other failures of reads that
    /// repeat by themselves are shown by the connection.
    pub(crate) fn report_unreadable(self, failure: &Failure) {
        let text = failure.text();
        let is_shown = self.toasts.peek().iter().any(|toast| toast.text == text);
        if matches!(failure, Failure::Unreadable(_)) && !is_shown {
            self.toast(text, true, Offer::Nothing);
        }
    }

    /// Reports that something was done that has no undo, or why it was not.
    pub(crate) fn report_done<T>(self, text: &str, answer: &Answer<T>) {
        match answer {
            Ok(_) => self.toast(text, false, Offer::Nothing),
            Err(failure) => self.report_failure(failure),
        }
    }

    /// Reports an operation and offers its undo; false if it failed.
    pub(crate) fn report_operation(self, text: &str, answer: &Answer<ChangeResult>) -> bool {
        match answer {
            Ok(done) => {
                // A move is two changes and still one file.
                let text = if done.total > 2 {
                    words::desktop::done_to_files(text, done.total)
                } else {
                    text.to_owned()
                };
                let offer = done.op.map_or(Offer::Nothing, Offer::Undo);
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
