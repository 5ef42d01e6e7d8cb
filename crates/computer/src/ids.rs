//! The clock and the random ids of a computer: the only code here that reads either.

use std::time::{SystemTime, UNIX_EPOCH};

use projector::CaptureIds;
use shared_types::{CommandId, EffectId, OpId, RunId, TerminalId, Timestamp};

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn random_bits() -> [u8; 10] {
    let mut bits = [0; 10];
    // Without randomness the kernel's own counter still keeps ids apart within one machine.
    if getrandom::fill(&mut bits).is_err() {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        bits.copy_from_slice(&nanos.to_le_bytes()[..10]);
    }
    bits
}

pub fn new_command() -> CommandId {
    CommandId::mint(now(), random_bits())
}

pub fn new_op() -> OpId {
    OpId::mint(now(), random_bits())
}

pub fn new_run() -> RunId {
    RunId::mint(now(), random_bits())
}

pub fn new_effect() -> EffectId {
    EffectId::mint(now(), random_bits())
}

pub fn new_terminal() -> TerminalId {
    TerminalId::mint(now(), random_bits())
}

pub fn new_capture() -> CaptureIds {
    CaptureIds { command: new_command(), op: new_op() }
}
