//! What pages read, and read again after they have changed it.

use dioxus::prelude::*;
use serde_json::Value;

use crate::api::{self, Method};
use crate::desk::{Offer, desk};

/// Reads something again when it may have changed, and at a press on this page.
pub(super) fn use_read(path: &'static str, turn: Signal<u32>) -> Signal<Option<api::Answer<Value>>> {
    let desk = desk();
    api::use_fetched::<Value>(move || {
        let _ = (desk.projected.read(), turn.read());
        path.to_owned()
    })
}

/// Does something, says so, and reads the page again.
pub(super) fn act(method: Method, path: String, body: Value, said: &'static str, turn: Signal<u32>) {
    let desk = desk();
    api::run(async move {
        match api::call(method, path, body).await {
            Ok(_) if said.is_empty() => {}
            Ok(_) => desk.toast(said, false, Offer::Nothing),
            Err(failure) => desk.fail(&failure),
        }
        api::put(turn, |turn| *turn += 1);
    });
}

/// A list that was read; none while it is on its way, or where it cannot be read.
pub(super) fn list_of(read: &Signal<Option<api::Answer<Value>>>) -> Vec<Value> {
    match &*read.read() {
        Some(Ok(Value::Array(list))) => list.clone(),
        _ => Vec::new(),
    }
}
