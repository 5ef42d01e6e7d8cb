//! New ids, from the browser's clock and its random source.

use shared_types::{CommandId, OpId, RunId, Timestamp, WindowId};

/// Milliseconds since 1970, as the browser's clock has it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(js_sys::Date::now() as i64)
}

fn bits() -> [u8; 10] {
    let mut bits = [0; 10];
    let crypto = crate::dom::window().and_then(|window| window.crypto().ok());
    let is_filled = crypto.is_some_and(|crypto| crypto.get_random_values_with_u8_array(&mut bits).is_ok());
    if !is_filled {
        // Every browser that can run this has a random source; should it fail, ids must still differ.
        bits = [(); 10].map(|()| (fraction() * 256.0) as u8);
    }
    bits
}

pub(crate) fn op() -> OpId {
    OpId::mint(now(), bits())
}

pub(crate) fn command() -> CommandId {
    CommandId::mint(now(), bits())
}

pub(crate) fn window() -> WindowId {
    WindowId::mint(now(), bits())
}

pub(crate) fn run() -> RunId {
    RunId::mint(now(), bits())
}

/// A random number between zero and one, for jitter.
pub(crate) fn fraction() -> f64 {
    js_sys::Math::random()
}
