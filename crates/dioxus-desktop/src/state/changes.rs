//! Tells a component when something changed that it shows.

use dioxus::prelude::*;

use super::app_state;
use crate::change_log::Change;

/// Counts up when something changed that concerns this component. A closure that fetches reads the count.
pub(crate) fn use_changes(concerns: impl FnMut(&Change) -> bool + 'static) -> Signal<u64> {
    use_boxed(Box::new(concerns))
}

/// Not generic, so that it is in the bundle once.
fn use_boxed(mut concerns: Box<dyn FnMut(&Change) -> bool>) -> Signal<u64> {
    let changes = app_state().changes;
    let mut count = use_signal(|| 0u64);
    let mut seen = use_hook(|| CopyValue::new(changes.peek().through()));
    use_effect(move || {
        let log = changes.read();
        let before = *seen.peek();
        seen.set(log.through());
        if log.has(before, &mut concerns) {
            *count.write() += 1;
        }
    });
    count
}
