//! The caller of a request.

use std::time::Duration;

use event_log::writer::Origin;
use shared_types::{Actor, CommandId, EventId, OpId, RunId, Source, Taint, TaskId};

use crate::ReadPolicy;
use crate::ids;
use crate::protocol::Envelope;

/// The agent that a request comes from.
#[derive(Debug, Clone)]
pub struct AgentCaller {
    pub run: RunId,
    pub task: TaskId,
    /// What its commands may read.
    pub read_policy: ReadPolicy,
    /// How long its commands may run, if a budget limits that.
    pub time_left: Option<Duration>,
}

/// The origin of a request, and the agent that it comes from.
#[derive(Debug, Clone)]
pub struct Caller {
    pub origin: Origin,
    pub agent: Option<AgentCaller>,
}

impl Caller {
    /// The person who sent an envelope.
    pub fn of(envelope: &Envelope) -> Self {
        Self::person(envelope.command, envelope.op, envelope.actor.clone())
    }

    /// The person, through the command line or the desktop.
    pub fn person(command: CommandId, op: OpId, actor: Actor) -> Self {
        Self { origin: Origin::new(command, op, Source::User, actor), agent: None }
    }

    /// The computer itself.
    pub fn system(actor: Actor) -> Self {
        Self { origin: Origin::new(ids::new_command(), ids::new_op(), Source::System, actor), agent: None }
    }

    #[must_use]
    pub fn with_op(mut self, op: OpId) -> Self {
        self.origin.op = op;
        self
    }

    /// With a command id of its own, for a second submission of the same request.
    #[must_use]
    pub fn with_new_command(mut self) -> Self {
        self.origin.command = ids::new_command();
        self
    }

    #[must_use]
    pub fn with_taint(mut self, taint: Vec<Taint>) -> Self {
        self.origin.taint = taint;
        self
    }

    #[must_use]
    pub fn in_run(mut self, run: RunId) -> Self {
        self.origin.run_id = Some(run);
        self
    }

    #[must_use]
    pub fn because_of(mut self, cause: Option<EventId>) -> Self {
        self.origin.cause = cause;
        self
    }
}
