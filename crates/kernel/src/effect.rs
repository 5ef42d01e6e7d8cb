//! Effects: work outside the kernel that an event requests, and whether it can be undone.

use serde::{Deserialize, Serialize};
use shared_types::payload::checkpoint::{CheckpointEvent, CheckpointRequest};
use shared_types::payload::system::{SystemEvent, SystemPurge};
use shared_types::{ContentHash, EffectId, Payload, Reversibility};

/// Work outside the kernel that starts once its event is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    pub id: EffectId,
    pub kind: EffectKind,
}

/// The kinds of effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectKind {
    /// Commit the workspace to the checkpoint repository.
    MakeCheckpoint { message: Box<str> },
    /// Delete bytes for good.
    DropContents { hashes: Vec<ContentHash> },
}

impl EffectKind {
    pub fn reversibility(&self) -> Reversibility {
        match self {
            // A commit can be ignored or removed; no user data depends on it.
            Self::MakeCheckpoint { .. } => Reversibility::Compensable,
            Self::DropContents { .. } => Reversibility::Final,
        }
    }
}

/// The effect that an event requests, if any.
pub(crate) fn requested(payload: &Payload) -> Option<Effect> {
    match payload {
        Payload::Checkpoint(CheckpointEvent::Request(CheckpointRequest { effect, message, .. })) => {
            Some(Effect { id: *effect, kind: EffectKind::MakeCheckpoint { message: message.clone() } })
        }
        Payload::System(SystemEvent::Purge(SystemPurge { effect, hashes, .. })) => {
            Some(Effect { id: *effect, kind: EffectKind::DropContents { hashes: hashes.clone() } })
        }
        Payload::Checkpoint(CheckpointEvent::Create(_) | CheckpointEvent::Fail(_))
        | Payload::System(SystemEvent::Purged(_) | SystemEvent::Import(_))
        | Payload::File(_)
        | Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::Tool(_)
        | Payload::Run(_)
        | Payload::Task(_)
        | Payload::Llm(_)
        | Payload::Capability(_)
        | Payload::Revert(_)
        | Payload::User(_)
        | Payload::Unknown(_) => None,
    }
}
