//! New ids. The browser's clock gives the time, its random source the bits.

use shared_types::{CommandId, OpId, RunId, Timestamp, WindowId};

/// Milliseconds since 1970, as the browser's clock has it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(js_sys::Date::now() as i64)
}

fn bits() -> [u8; 10] {
    let mut bits = [0; 10];
    // A browser without a random source cannot be signed in to at all; the time alone keeps ids apart then.
    if let Some(Ok(crypto)) = crate::dom::window().map(|w| w.crypto()) {
        let _ = crypto.get_random_values_with_u8_array(&mut bits);
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

/// A number between zero and one, to spread what would otherwise happen at once.
pub(crate) fn fraction() -> f64 {
    js_sys::Math::random()
}
