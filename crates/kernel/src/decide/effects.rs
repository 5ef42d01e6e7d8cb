//! Requests and results of effects: checkpoints and purges.

use shared_types::payload::checkpoint::{
    CheckpointCreate, CheckpointFail, CheckpointReason, CheckpointRequest,
};
use shared_types::payload::system::{SystemPurge, SystemPurged};
use shared_types::{ContentHash, EffectId, Payload, Seq};

use super::{Draft, check_size, check_text};
use crate::effect::requested;
use crate::{EffectKind, Rejection, View};

const MESSAGE_LIMIT: u64 = 4 * 1024;

/// Checks that an effect of the right kind is pending.
fn check_pending(view: &View, effect: EffectId, fits: fn(&EffectKind) -> bool) -> Result<(), Rejection> {
    if view.pending.get(&effect).is_some_and(fits) { Ok(()) } else { Err(Rejection::NotOwed { effect }) }
}

fn is_checkpoint(kind: &EffectKind) -> bool {
    matches!(kind, EffectKind::MakeCheckpoint { .. })
}

fn is_purge(kind: &EffectKind) -> bool {
    matches!(kind, EffectKind::DropContents { .. })
}

/// Records a request unless the same one is pending already.
fn request(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    payload: impl Into<Payload>,
) -> Result<(), Rejection> {
    let payload = payload.into();
    match view.pending.get(&effect) {
        None => draft.event(payload),
        Some(kind) if requested(&payload).is_some_and(|wanted| wanted.kind == *kind) => {}
        Some(_) => return Err(Rejection::Invalid { what: "an effect's id", reason: "it is taken".into() }),
    }
    Ok(())
}

pub(super) fn request_checkpoint(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    reason: CheckpointReason,
    message: &str,
) -> Result<(), Rejection> {
    check_text("a checkpoint's message", message, MESSAGE_LIMIT)?;
    request(view, draft, effect, CheckpointRequest { effect, reason, message: message.into() })
}

pub(super) fn record_checkpoint(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    commit: &str,
    seq: Seq,
    message: &str,
) -> Result<(), Rejection> {
    check_pending(view, effect, is_checkpoint)?;
    check_size("a checkpoint's message", message.len() as u64, MESSAGE_LIMIT)?;
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
    check_pending(view, effect, is_checkpoint)?;
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
    request(view, draft, effect, SystemPurge { effect, hashes: hashes.to_vec(), reason: reason.into() })
}

pub(super) fn record_purge(
    view: &View,
    draft: &mut Draft,
    effect: EffectId,
    dropped: u64,
) -> Result<(), Rejection> {
    check_pending(view, effect, is_purge)?;
    draft.event(SystemPurged { effect, dropped });
    Ok(())
}
