//! Who asks something of a computer.

use std::time::Duration;

use crate::ReadPolicy;
use event_log::writer::ChangeRequest;
use shared_types::{Actor, CommandId, OpId, RunId, Source, Taint, TaskId};

use crate::ids;
use crate::protocol::Envelope;

/// The agent on whose behalf something is done.
#[derive(Debug, Clone)]
pub struct ByAgent {
    pub run: RunId,
    pub task: TaskId,
    /// What its commands may read.
    pub read_policy: ReadPolicy,
    /// How long its commands may take, where a budget sets a bound to it.
    pub left: Option<Duration>,
}

/// Who asks, and under which ids.
#[derive(Debug, Clone)]
pub struct Caller {
    pub command: CommandId,
    pub op: OpId,
    pub source: Source,
    pub actor: Actor,
    pub taint: Vec<Taint>,
    /// The run and the agent in it, if it is one.
    pub agent: Option<ByAgent>,
}

impl Caller {
    pub fn person(envelope: &Envelope) -> Self {
        let (command, op) = (envelope.command, envelope.op);
        Self {
            command,
            op,
            source: Source::User,
            actor: envelope.actor.clone(),
            taint: Vec::new(),
            agent: None,
        }
    }

    /// The person, at the desktop in the browser.
    pub fn at_desktop(command: CommandId, op: OpId) -> Self {
        Self { command, op, source: Source::User, actor: Actor::DESKTOP, taint: Vec::new(), agent: None }
    }

    pub fn system(actor: Actor) -> Self {
        Self {
            command: ids::command(),
            op: ids::op(),
            source: Source::System,
            actor,
            taint: Vec::new(),
            agent: None,
        }
    }

    /// The run that something is part of: that of the agent who does it, or the one that the person lets go back.
    pub(super) fn run_of(&self, change: &ChangeRequest) -> Option<RunId> {
        match change {
            ChangeRequest::RetryRun { run, .. } => Some(*run),
            ChangeRequest::Do(_)
            | ChangeRequest::Undo { .. }
            | ChangeRequest::UndoRun { .. }
            | ChangeRequest::Restore { .. } => self.agent.as_ref().map(|agent| agent.run),
        }
    }
}
