//! Which effects an event starts.

use shared_types::Event;

use crate::effect::{Effect, requested};
use crate::view::View;

/// The effects to start now that this event is durable. The view holds them as pending; this only wakes the runner.
pub fn react(view: &View, event: &Event) -> Vec<Effect> {
    requested(&event.payload).into_iter().filter(|effect| view.pending.contains(&effect.id)).collect()
}
