//! Fetches the data of settings pages, again after a change on the computer and after an action on the page.

use dioxus::prelude::*;
use futures_util::future::LocalBoxFuture;
use serde::de::DeserializeOwned;

use crate::api::{self, ApiResult};
use crate::change_log::Change;
use crate::state::use_changes;
use crate::state::{ToastAction, app_state};

/// Fetches a path, again after a change that concerns it, and again when `refresh` changes.
pub(super) fn use_read<T: DeserializeOwned + 'static>(
    path: &'static str,
    concerns: fn(&Change) -> bool,
    refresh: Signal<u32>,
) -> Signal<Option<ApiResult<T>>> {
    let changes = use_changes(concerns);
    api::use_fetched(move || {
        let _ = (changes.read(), refresh.read());
        path.to_owned()
    })
}

/// Sends a request, reports its result, and fetches the page again.
pub(super) fn act(request: LocalBoxFuture<'static, ApiResult<()>>, done: &'static str, refresh: Signal<u32>) {
    let app_state = app_state();
    api::run(async move {
        match request.await {
            Ok(()) if done.is_empty() => {}
            Ok(()) => app_state.toast(done, false, ToastAction::Nothing),
            Err(failure) => app_state.report_failure(&failure),
        }
        api::update_if_open(refresh, |refresh| *refresh += 1);
    });
}
