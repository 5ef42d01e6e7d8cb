//! What a view hashes to is recorded in snapshots and archives: it is the same in every build of one version.

use kernel::{Action, SliceBytes, VIEW_VERSION};
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::payload::run::{ApprovalScope, Reply};
use shared_types::{OpId, Taint};

use crate::agents::*;
use crate::shell::Shell;
use crate::steps::*;

/// The version, and the beginning of the root of [`everything`]. Where the root is another, raise the version, and
/// write both here: roots that were recorded before then count as another version's, not as damage.
const KNOWN: (u32, &str) = (5, "5e497abf7d957199");
/// Slices that a view can have.
const SLICES: usize = 14;

/// A shell with something in every slice of its view.
fn everything() -> Shell {
    let (effect, reason, message) = (effect_id(1), CheckpointReason::Manual, "before lunch".into());
    let (mut shell, ops) = Shell::after([
        set("zoom", 2),
        write("a", "one|two"),
        write("b", "theirs").tainted(&Taint::WEB),
        link("c", "a"),
        folder("d"),
        set("theme", "dark"),
        window(1, "Files"),
        note(1, "Remember"),
        start(1, "Talk"),
        Action::RequestCheckpoint { effect, reason, message }.into(),
    ]);
    shell.undo(ops[5]).unwrap();
    for step in delegating() {
        shell.done(step);
    }
    let call = OpId::from_bytes([0x77; 16]);
    let asked = [
        ask(1, 1, approval(call)),
        answer(1, Reply::Allow(ApprovalScope::Always)),
        ask(2, 1, outgoing(call)),
    ];
    for step in [reply(1)].into_iter().chain(asked).chain([steer(None), call_by(1)]) {
        shell.done(step);
    }
    shell
}

#[test]
fn the_same_events_lead_to_the_same_root_in_every_build_of_one_version() {
    let mut shell = everything();
    let holds_something = |slice: &&SliceBytes| slice.bytes.len() > 1;
    assert_eq!(shell.view.to_slices().iter().filter(holds_something).count(), SLICES);
    let root = shell.root().to_string();
    assert_eq!((VIEW_VERSION, &root[..16]), KNOWN);
}
