//! Reads of the settings pages, repeated after a change on the computer and after an action on the page.

use dioxus::prelude::*;
use futures_util::future::LocalBoxFuture;
use serde::de::DeserializeOwned;

use crate::api::{self, Answer};
use crate::change_log::Change;
use crate::state::use_changes;
use crate::state::{Offer, app_state};

/// Fetches something, again after a change that concerns it, and again after an action on this page.
pub(super) fn use_read<T: DeserializeOwned + 'static>(
    path: &'static str,
    concerns: fn(&Change) -> bool,
    turn: Signal<u32>,
) -> Signal<Option<Answer<T>>> {
    let changes = use_changes(concerns);
    api::use_fetched(move || {
        let _ = (changes.read(), turn.read());
        path.to_owned()
    })
}

/// Sends a request, says so, and fetches the page again.
pub(super) fn act(request: LocalBoxFuture<'static, Answer<()>>, done: &'static str, turn: Signal<u32>) {
    let app_state = app_state();
    api::run(async move {
        match request.await {
            Ok(()) if done.is_empty() => {}
            Ok(()) => app_state.toast(done, false, Offer::Nothing),
            Err(failure) => app_state.report_failure(&failure),
        }
        api::update_if_open(turn, |turn| *turn += 1);
    });
}
