//! The ids of questions about a tool call, computed from its id: every process that works on a run finds the same ones.

use shared_types::{AskId, OpId};

/// The id of the question whether a call may be made, or of the question that the call itself asks.
pub(crate) fn approval_ask_id(call: OpId) -> AskId {
    AskId::from_bytes(*call.as_bytes())
}

/// The id of the question whether an interrupted call may be repeated.
pub(crate) fn repeat_ask_id(call: OpId) -> AskId {
    derived_ask_id(call, 15)
}

/// The id of the outbox entry of a call.
pub(crate) fn outbox_ask_id(call: OpId) -> AskId {
    derived_ask_id(call, 14)
}

/// A further id for a question about the same call. Stored asks have these ids, so they must not change.
fn derived_ask_id(call: OpId, byte: usize) -> AskId {
    let mut bytes = *call.as_bytes();
    bytes[byte] ^= 0xff;
    AskId::from_bytes(bytes)
}
