//! The one table of the supervision tree.

use std::time::Duration;

use shared_types::wire::{PartKind, PartRule};

/// What starts a failed part again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Its supervisor, after a pause that doubles with each failure in a row, up to a minute.
    AfterPause(Duration),
    /// The application closes the computer and opens it again, with all its parts.
    ReopenComputer,
    /// Its next use.
    OnNextUse,
    Never,
}

/// What happens when a part of a kind fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub kind: PartKind,
    pub name: &'static str,
    pub restart: Restart,
    /// What happens to unfinished work.
    pub work: &'static str,
}

/// One row per kind.
pub const POLICIES: [Policy; 11] = [
    Policy {
        kind: PartKind::Computer,
        name: "computer",
        restart: Restart::ReopenComputer,
        work: "tabs connect again and continue after the last event they were sent; terminals and commands end",
    },
    Policy {
        kind: PartKind::Log,
        name: "log",
        restart: Restart::ReopenComputer,
        work: "requests that were not acknowledged are refused and can be sent again; acknowledged ones are on disk",
    },
    Policy {
        kind: PartKind::EventBus,
        name: "event bus",
        restart: Restart::AfterPause(Duration::from_millis(100)),
        work: "tabs continue after the last event they were sent",
    },
    Policy {
        kind: PartKind::Projector,
        name: "projector",
        restart: Restart::AfterPause(Duration::from_millis(500)),
        work: "continues from its recorded position, after it has settled interrupted writes",
    },
    Policy {
        kind: PartKind::Watcher,
        name: "watcher",
        restart: Restart::AfterPause(Duration::from_secs(1)),
        work: "the whole workspace is compared once, so no edit is missed",
    },
    Policy {
        kind: PartKind::Socket,
        name: "socket of the command line",
        restart: Restart::AfterPause(Duration::from_secs(1)),
        work: "callers see a closed socket and send again; a resend gets the first answer",
    },
    Policy {
        kind: PartKind::Agents,
        name: "agents",
        restart: Restart::AfterPause(Duration::from_millis(500)),
        work: "runs continue; events that were not sent to them yet are sent",
    },
    Policy {
        kind: PartKind::Run,
        name: "run",
        restart: Restart::AfterPause(Duration::from_millis(200)),
        work: "continues at its last recorded step; turns of models that were under way are taken again",
    },
    Policy {
        kind: PartKind::Terminal,
        name: "terminal",
        restart: Restart::Never,
        work: "the shell has ended; what it wrote to files is recorded",
    },
    Policy {
        kind: PartKind::Command,
        name: "command",
        restart: Restart::Never,
        work: "recorded as interrupted when the computer is opened next; none of its changes took effect",
    },
    Policy {
        kind: PartKind::McpServer,
        name: "MCP server",
        restart: Restart::OnNextUse,
        work: "the call under way fails, and the agent is told",
    },
];

/// The row of a kind.
pub(super) fn of(kind: PartKind) -> &'static Policy {
    // The test below makes sure that every kind has its row.
    &POLICIES[kind as usize]
}

impl Policy {
    /// The row as it is shown.
    pub(super) fn rule(&self) -> PartRule {
        let restart = match self.restart {
            Restart::AfterPause(pause) => {
                format!("after {} ms, then more and more slowly, up to a minute", pause.as_millis())
            }
            Restart::ReopenComputer => "the computer is opened again".to_owned(),
            Restart::OnNextUse => "when it is needed next".to_owned(),
            Restart::Never => "not started again".to_owned(),
        };
        PartRule { kind: self.kind, name: self.name.to_owned(), restart, work: self.work.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_finds_its_row() {
        for policy in &POLICIES {
            assert_eq!(of(policy.kind).kind, policy.kind);
        }
        let last = PartKind::McpServer as usize;
        assert_eq!(POLICIES.len(), last + 1);
    }
}
