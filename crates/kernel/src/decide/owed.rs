//! Effects that are asked for and answered: checkpoints and purges.

use shared_types::payload::checkpoint::{CheckpointCreate, CheckpointFail, CheckpointReason, CheckpointRequest};
use shared_types::payload::system::{SystemPurge, SystemPurged};
use shared_types::{ContentHash, EffectId, Seq};

use super::{Draft, check_size, check_text};
use crate::{Rejection, View};

const MESSAGE_LIMIT: u64 = 4 * 1024;

fn owed(view: &View, effect: EffectId) -> Result<(), Rejection> {
    if view.pending.contains(&effect) { Ok(()) } else { Err(Rejection::NotOwed { effect }) }
}

pub(super) fn request_checkpoint(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    reason: CheckpointReason,
    message: &str,
) -> Result<(), Rejection> {
    check_text("a checkpoint's message", message, MESSAGE_LIMIT)?;
    if !view.pending.contains(&effect) {
        draft.event(CheckpointRequest { effect, reason, message: message.into() });
    }
    Ok(())
}

pub(super) fn record_checkpoint(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    commit: &str,
    seq: Seq,
    message: &str,
) -> Result<(), Rejection> {
    owed(view, effect)?;
    let is_commit = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_commit {
        return Err(Rejection::Invalid { what: "a commit", reason: "expected a full hash".into() });
    }
    if seq > view.seq() {
        return Err(Rejection::NotYet { seq });
    }
    draft.event(CheckpointCreate { effect, commit: commit.into(), seq, message: message.into() });
    Ok(())
}

pub(super) fn fail_checkpoint(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    reason: &str,
) -> Result<(), Rejection> {
    owed(view, effect)?;
    let reason: String = reason.chars().take(1000).collect();
    draft.event(CheckpointFail { effect, reason: reason.into() });
    Ok(())
}

pub(super) fn request_purge(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    hashes: &[ContentHash],
    reason: &str,
) -> Result<(), Rejection> {
    check_text("a purge's reason", reason, MESSAGE_LIMIT)?;
    check_size("the number of contents in a purge", hashes.len() as u64, 10_000)?;
    if hashes.is_empty() {
        return Err(Rejection::Invalid { what: "a purge", reason: "it names nothing".into() });
    }
    if !view.pending.contains(&effect) {
        draft.event(SystemPurge { effect, hashes: hashes.to_vec(), reason: reason.into() });
    }
    Ok(())
}

pub(super) fn record_purge(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    dropped: u64,
) -> Result<(), Rejection> {
    owed(view, effect)?;
    draft.event(SystemPurged { effect, dropped });
    Ok(())
}
