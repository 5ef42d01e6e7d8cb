//! The supervision tree: the application supervises computers, each computer its parts (ADR 0011).
//!
//! Every part is an actor around a future, and [`POLICIES`] says for each kind what starts it again and what happens to
//! its work. Nothing that was acknowledged depends on a part: the log is the truth, so a part that failed continues
//! from there. Parts that end by themselves (a terminal, a command, the program of an MCP server) are supervised
//! through a [`PartGuard`], which their owner holds as long as they run.

mod application;
mod policy;

use std::sync::Arc;
use std::time::{Duration, Instant};

use computer::ids;
use futures_util::future::BoxFuture;
use ractor::concurrency::Duration as ActorDuration;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use shared_types::Timestamp;
use shared_types::wire::{PartKind, PartState, PartStatus, PartsReport};
use tokio::sync::{broadcast, oneshot};

pub use application::Application;
pub use policy::{POLICIES, Policy, Restart};

/// The pause before a restart doubles with each failure in a row up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A part that ran this long before it failed counts as healthy again.
const HEALTHY: Duration = Duration::from_secs(60);
/// A supervisor that does not answer in this time has ended.
const REPORT_TIMEOUT: ActorDuration = ActorDuration::from_secs(5);

/// What a part does until it ends. Called again for each restart.
type Work = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A part to be supervised.
#[derive(Clone)]
struct PartSpec {
    kind: PartKind,
    label: Option<String>,
    work: Work,
}

/// A handle on the supervisor of one computer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PartSupervisor(ActorRef<Message>);

impl PartSupervisor {
    /// Starts the supervisor of a computer below the application's. It has no parts yet.
    pub(crate) async fn supervise(
        application: &Application,
        user: shared_types::UserId,
        notices: broadcast::Sender<String>,
    ) -> Result<Self, ractor::SpawnErr> {
        let arguments = (user.to_string(), notices);
        let (supervisor, _) =
            Actor::spawn_linked(None, Supervisor, arguments, application.cell().get_cell()).await?;
        application.opened(supervisor.get_id(), user);
        Ok(Self(supervisor))
    }

    /// Starts a part: `work` is called now and again after each failure, as the policy of its kind says.
    pub(crate) fn start<F>(
        &self,
        kind: PartKind,
        label: Option<String>,
        work: impl Fn() -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let work: Work = Arc::new(move || Box::pin(work()));
        // A supervisor that has ended starts nothing.
        let _ = self.0.send_message(Message::Start(PartSpec { kind, label, work }));
    }

    /// Supervises something that runs elsewhere for as long as the guard exists.
    pub(crate) fn guard(&self, kind: PartKind, label: String) -> PartGuard {
        let (sender, ended) = oneshot::channel();
        let ended = Arc::new(std::sync::Mutex::new(Some(ended)));
        self.start(kind, Some(label), move || {
            let ended = ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            async move {
                match ended {
                    Some(ended) => ended.await.unwrap_or(Ok(())),
                    None => Ok(()),
                }
            }
        });
        PartGuard(Some(sender))
    }

    /// How all parts are doing.
    pub async fn report(&self) -> PartsReport {
        let call = self.0.call(Message::Report, Some(REPORT_TIMEOUT)).await;
        let parts = match call {
            Ok(ractor::rpc::CallResult::Success(parts)) => parts,
            Ok(_) | Err(_) => Vec::new(),
        };
        PartsReport { rules: POLICIES.iter().map(Policy::rule).collect(), parts }
    }

    /// Ends all parts: those that end by themselves when the computer is closed are waited for, the others are not.
    pub(crate) async fn stop(&self) {
        self.request_stop();
        let _ = self.0.wait(None).await;
    }

    /// The same without waiting.
    pub(crate) fn request_stop(&self) {
        let _ = self.0.send_message(Message::End);
    }
}

/// Something that runs and is supervised, until this is dropped.
#[derive(Debug)]
pub struct PartGuard(Option<oneshot::Sender<Result<(), String>>>);

impl Drop for PartGuard {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(ended) = self.0.take()
        {
            let _ = ended.send(Err("it panicked".into()));
        }
    }
}

/// A message to a supervisor.
enum Message {
    Start(PartSpec),
    Restart(u64),
    Report(RpcReplyPort<Vec<PartStatus>>),
    End,
}

/// Whether a part ends by itself when the computer is closed. Runs are cancelled then. A part behind a guard is
/// stopped by the guard's owner.
fn ends_with_computer(kind: PartKind) -> bool {
    match kind {
        PartKind::Computer
        | PartKind::Log
        | PartKind::EventBus
        | PartKind::Projector
        | PartKind::Watcher
        | PartKind::Socket
        | PartKind::Agents => true,
        PartKind::Run | PartKind::Terminal | PartKind::Command | PartKind::McpServer => false,
    }
}

/// The supervisor of one computer.
#[derive(Debug)]
struct Supervisor;

struct SupervisorState {
    user: String,
    notices: broadcast::Sender<String>,
    started: Timestamp,
    children: Vec<Child>,
    next: u64,
    ending: bool,
}

/// A part that runs, or waits to be started again.
struct Child {
    number: u64,
    spec: PartSpec,
    /// Nothing while it waits.
    actor: Option<ActorCell>,
    started: Instant,
    since: Timestamp,
    /// Failures in a row, which set the pause.
    failures: u32,
    restarts: u32,
    last_failure: Option<String>,
}

impl Child {
    fn status(&self) -> PartStatus {
        PartStatus {
            kind: self.spec.kind,
            label: self.spec.label.clone(),
            state: if self.actor.is_some() { PartState::Running } else { PartState::Restarting },
            since: self.since,
            restarts: self.restarts,
            last_failure: self.last_failure.clone(),
        }
    }
}

impl SupervisorState {
    async fn spawn(&mut self, number: u64, supervisor: &ActorRef<Message>) -> Result<(), ActorProcessingErr> {
        let Some(child) = self.children.iter_mut().find(|child| child.number == number) else {
            return Ok(());
        };
        let work = Arc::clone(&child.spec.work);
        let (actor, _) = Actor::spawn_linked(None, Worker, work, supervisor.get_cell()).await?;
        child.actor = Some(actor.get_cell());
        child.started = Instant::now();
        child.since = ids::now();
        Ok(())
    }

    /// Handles the end of a part. An error means that the computer cannot continue.
    fn ended(
        &mut self,
        id: ActorId,
        failure: Option<String>,
        myself: &ActorRef<Message>,
    ) -> Result<(), String> {
        let at =
            self.children.iter().position(|c| c.actor.as_ref().is_some_and(|actor| actor.get_id() == id));
        let Some(at) = at else { return Ok(()) };
        let Some(failure) = failure.filter(|_| !self.ending) else {
            self.children.swap_remove(at);
            return Ok(());
        };
        let child = &mut self.children[at];
        let policy = policy::of(child.spec.kind);
        let (name, user) = (policy.name, &self.user);
        match policy.restart {
            Restart::AfterPause(first) => {
                if child.started.elapsed() >= HEALTHY {
                    child.failures = 0;
                }
                let pause = first.saturating_mul(1 << child.failures.min(10)).min(LONGEST_PAUSE);
                tracing::warn!(user, part = name, failure, failures = child.failures, "a part failed");
                let _ = self.notices.send(format!("The {name} failed and is started again: {failure}"));
                child.actor = None;
                child.failures += 1;
                child.restarts += 1;
                child.last_failure = Some(failure);
                let number = child.number;
                myself.send_after(pause, move || Message::Restart(number));
                Ok(())
            }
            Restart::ReopenComputer => Err(format!("the {name} failed: {failure}")),
            Restart::OnNextUse | Restart::Never => {
                tracing::warn!(user, part = name, label = child.spec.label, failure, "a part failed");
                self.children.swap_remove(at);
                Ok(())
            }
        }
    }

    /// Every part, below a line for the computer itself.
    fn report(&self) -> Vec<PartStatus> {
        let computer = PartStatus {
            kind: PartKind::Computer,
            label: Some(self.user.clone()),
            state: PartState::Running,
            since: self.started,
            restarts: 0,
            last_failure: None,
        };
        let mut parts: Vec<_> = self.children.iter().map(Child::status).collect();
        parts.sort_by_key(|part| (part.kind, part.since));
        [computer].into_iter().chain(parts).collect()
    }
}

impl Actor for Supervisor {
    type Msg = Message;
    type State = SupervisorState;
    type Arguments = (String, broadcast::Sender<String>);

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        (user, notices): Self::Arguments,
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let (children, started) = (Vec::new(), ids::now());
        Ok(SupervisorState { user, notices, started, children, next: 0, ending: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Start(_) | Message::Restart(_) if state.ending => Ok(()),
            Message::Start(spec) => {
                let number = state.next;
                state.next += 1;
                state.children.push(Child {
                    number,
                    spec,
                    actor: None,
                    started: Instant::now(),
                    since: ids::now(),
                    failures: 0,
                    restarts: 0,
                    last_failure: None,
                });
                state.spawn(number, &myself).await
            }
            Message::Restart(number) => state.spawn(number, &myself).await,
            Message::Report(reply) => {
                // The caller may have stopped waiting.
                let _ = reply.send(state.report());
                Ok(())
            }
            Message::End => {
                state.ending = true;
                state.children.retain(|child| child.actor.is_some());
                for child in state.children.iter().filter(|child| !ends_with_computer(child.spec.kind)) {
                    if let Some(actor) = &child.actor {
                        actor.kill();
                    }
                }
                if state.children.is_empty() {
                    myself.stop(None);
                }
                Ok(())
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        let settled = match event {
            SupervisionEvent::ActorFailed(actor, error) => {
                state.ended(actor.get_id(), Some(error.to_string()), &myself)
            }
            SupervisionEvent::ActorTerminated(actor, _, _) => state.ended(actor.get_id(), None, &myself),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        };
        if state.ending && state.children.is_empty() {
            myself.stop(None);
        }
        Ok(settled?)
    }
}

/// An actor around a part's work: it ends when the work does, and fails as it does.
#[derive(Debug)]
struct Worker;

impl Actor for Worker {
    type Msg = ();
    type State = Work;
    type Arguments = Work;

    async fn pre_start(&self, myself: ActorRef<()>, work: Work) -> Result<Work, ActorProcessingErr> {
        myself.send_message(())?;
        Ok(work)
    }

    async fn handle(&self, myself: ActorRef<()>, (): (), work: &mut Work) -> Result<(), ActorProcessingErr> {
        work().await?;
        myself.stop(None);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
