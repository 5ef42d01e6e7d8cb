//! The supervision tree of one computer.
//!
//! The application's supervisor owns every part below; each part is an actor around a thread that blocks. When one
//! fails, [`PARTS`] says what happens: nothing that was acknowledged depends on any of them, so each is simply
//! started again, more and more slowly if it keeps failing. The log's writer is not among them: it is a thread of
//! [`event_log::writer`] that outlives its callers and ends with the computer.

use std::time::Duration;

use event_log::EventLog;
use projector::watch::Watch;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::Shared;
use crate::hold;
use computer::error::{ComputerError, ErrorCode};
use computer::socket::Server;

/// How long the bus waits for an event at most; it waits again.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kind of part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Reads what was appended, once, for all tabs.
    EventBus,
    /// Brings lists, search and files up to date, and makes checkpoints that are due.
    Projection,
    /// Records what other programs do to the files.
    Watcher,
    /// Serves commands of the command line over `.choir/choir.sock`.
    Socket,
    /// Carries out runs of agents.
    Agents,
}

/// What happens when a part fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub part: Part,
    pub name: &'static str,
    /// The pause before the first restart; it doubles up to a minute.
    pub pause: Duration,
    /// What becomes of the work that was under way.
    pub work: &'static str,
}

/// Every part, what restarts it and what happens to its work.
pub const PARTS: [Policy; 5] = [
    Policy {
        part: Part::EventBus,
        name: "event bus",
        pause: Duration::from_millis(100),
        work: "tabs go on from the last event they were sent",
    },
    Policy {
        part: Part::Projection,
        name: "projection",
        pause: Duration::from_millis(500),
        work: "goes on from its recorded position; open intents are settled first",
    },
    Policy {
        part: Part::Watcher,
        name: "watcher",
        pause: Duration::from_secs(1),
        work: "the whole workspace is compared once, so no edit is missed",
    },
    Policy {
        part: Part::Socket,
        name: "socket",
        pause: Duration::from_secs(1),
        work: "callers see a closed socket and ask again; a resend is answered as the first time",
    },
    Policy {
        part: Part::Agents,
        name: "agents",
        pause: Duration::from_millis(500),
        work: "every run goes on at its last recorded step; turns of models under way are taken again",
    },
];

const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What the supervisor is told.
#[derive(Debug)]
pub(super) enum Message {
    Start { policy: Policy, failures: u32 },
}

/// The application's supervisor.
#[derive(Debug)]
pub(super) struct Supervisor;

pub(super) struct Parts {
    shared: Shared,
    running: Vec<(ractor::ActorId, Policy, u32)>,
}

impl Actor for Supervisor {
    type Msg = Message;
    type State = Parts;
    type Arguments = Shared;

    async fn pre_start(
        &self,
        myself: ActorRef<Message>,
        shared: Shared,
    ) -> Result<Parts, ActorProcessingErr> {
        for policy in PARTS {
            myself.send_message(Message::Start { policy, failures: 0 })?;
        }
        Ok(Parts { shared, running: Vec::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        Message::Start { policy, failures }: Message,
        parts: &mut Parts,
    ) -> Result<(), ActorProcessingErr> {
        let worker = Worker { part: policy.part };
        let (actor, _) = Actor::spawn_linked(None, worker, parts.shared.clone(), myself.get_cell()).await?;
        parts.running.push((actor.get_id(), policy, failures));
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        parts: &mut Parts,
    ) -> Result<(), ActorProcessingErr> {
        let (id, why) = match event {
            SupervisionEvent::ActorFailed(actor, error) => (actor.get_id(), error.to_string()),
            SupervisionEvent::ActorTerminated(actor, _, reason) => {
                (actor.get_id(), reason.unwrap_or_else(|| "it ended".into()))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let Some(at) = parts.running.iter().position(|(known, _, _)| *known == id) else { return Ok(()) };
        let (_, policy, failures) = parts.running.swap_remove(at);
        if parts.shared.computer.is_ending() {
            return Ok(());
        }
        tracing::warn!(part = policy.name, why, failures, "a part failed and is started again");
        let _ = parts.shared.notices.send(format!("The {} failed and is started again: {why}", policy.name));
        let pause = policy.pause.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
        myself.send_after(pause, move || Message::Start { policy, failures: failures + 1 });
        Ok(())
    }
}

/// An actor around a thread that blocks: it lives as long as the thread, and fails as it does.
#[derive(Debug)]
struct Worker {
    part: Part,
}

impl Actor for Worker {
    type Msg = Result<(), String>;
    type State = ();
    type Arguments = Shared;

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, shared: Shared) -> Result<(), ActorProcessingErr> {
        let part = self.part;
        tokio::spawn(async move {
            let ended = tokio::task::spawn_blocking(move || run(part, &shared)).await;
            let ended = match ended {
                Ok(result) => result.map_err(|failure| failure.message),
                Err(panic) => Err(panic.to_string()),
            };
            let _ = myself.send_message(ended);
        });
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        ended: Self::Msg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match ended {
            Ok(()) => {
                myself.stop(None);
                Ok(())
            }
            Err(why) => Err(why.into()),
        }
    }
}

/// The work of a part, until the computer is closed.
fn run(part: Part, shared: &Shared) -> Result<(), ComputerError> {
    let Shared { computer, bus, activity, notices, commands, .. } = shared;
    let tell = |notice: hold::Notice| match notice {
        hold::Notice::Trouble(text) => {
            tracing::warn!(text, "trouble");
            let _ = notices.send(text);
        }
        hold::Notice::Ready | hold::Notice::Captured { .. } => {}
    };
    match part {
        Part::EventBus => {
            while !computer.is_ending() {
                let seen = *bus.head().borrow();
                if computer.log().wait(seen, PATIENCE) > seen {
                    bus.fill(&**computer.log())?;
                }
            }
            Ok(())
        }
        Part::Projection => {
            hold::follow(computer, computer.log().head().seq, &tell, &|seq| bus.set_projected(seq));
            Ok(())
        }
        Part::Watcher => {
            let watch = Watch::start(&computer.place.workspace, &computer.place.state)
                .map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
            // The watcher runs before the first scan, so nothing falls between the two.
            computer.record_outside(&|_, _, _| ())?;
            hold::record_edits(computer, &watch, &|gathered| activity.settle(gathered), &tell);
            Ok(())
        }
        Part::Agents => agent_host::runs::run(&shared.run_host()),
        Part::Socket => {
            let server = Server::bind(&computer.place)?;
            computer.at_end(server.stopper()?);
            server.run(computer, Some(commands));
            if computer.is_ending() {
                Ok(())
            } else {
                Err(ComputerError::new(ErrorCode::Failed, "the socket was closed"))
            }
        }
    }
}
