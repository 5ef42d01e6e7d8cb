//! A computer that is in use: kept open, followed, watched and served, by supervised parts.
//!
//! A [`OpenComputer`] is a cheap handle on one user's computer and on nothing else: whoever has one can reach that user's
//! events, files and terminals only. It is what every route of [`crate::api`] is given.

mod activity;
mod bus;
mod cell;
mod input_queue;
mod marks;
mod parts;
mod process;
mod shell;
mod terminal;
mod terminals;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event_log::EventLog;
use kernel::run::{Run, RunPhase, Task, TaskState};
use models::Gateway;
use projector::Views;
use ractor::{Actor, ActorRef};
use shared_types::{RunId, Seq, TaskId};
use tokio::sync::{broadcast, mpsc, watch};

pub use bus::{Backlog, EventBus};
pub use computer::commands::Commands;
pub use computer::output_feed::{Attachment, Output};
pub use parts::{PARTS, Part, Policy};
pub use process::{Control, Process, Size};
pub use terminals::Terminals;

use activity::Activity;

use agent_host::agent_services::{AgentServices, LocalModelHost};
use agent_host::mcp_tools::McpTools;
use agent_host::runs::RunHost;
use agent_host::services::UserServices;
use computer::error::{ComputerError, ErrorCode};
use computer::{AgentSpeech, Computer};
use parts::Supervisor;

/// Notices that wait for a tab at most; a tab that misses some has lost nothing that is in the log.
const NOTICES: usize = 64;

/// A handle on one user's open computer.
#[derive(Debug, Clone)]
pub struct OpenComputer(Arc<Inner>);

struct Inner {
    computer: Arc<Computer>,
    bus: Arc<EventBus>,
    views: Mutex<Views>,
    terminals: Terminals,
    commands: Arc<Commands>,
    gateway: Gateway,
    tools: McpTools,
    services: UserServices,
    local: Option<Arc<dyn LocalModelHost>>,
    notices: broadcast::Sender<String>,
    supervisor: ActorRef<parts::Message>,
    /// Ends when the last part has ended.
    parts: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenComputer").field("place", &self.computer.place).finish_non_exhaustive()
    }
}

/// Where nobody closed it, the parts end with the last handle.
impl Drop for Inner {
    fn drop(&mut self) {
        self.computer.end();
    }
}

/// What the parts of a desk share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) computer: Arc<Computer>,
    pub(crate) bus: Arc<EventBus>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) notices: broadcast::Sender<String>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) minds: AgentServices,
    pub(crate) gateway: Gateway,
    pub(crate) tools: McpTools,
    /// Nothing is ever sent; that it is there says that a part runs.
    _running: mpsc::Sender<Infallible>,
}

impl Shared {
    /// What carries out the runs of agents.
    fn run_host(&self) -> RunHost {
        RunHost {
            computer: Arc::clone(&self.computer),
            commands: Arc::clone(&self.commands),
            minds: self.minds.clone(),
            gateway: self.gateway.clone(),
            tools: self.tools.clone(),
            projected: self.bus.projected(),
        }
    }
}

impl OpenComputer {
    /// Opens the parts around a computer: what was edited outside is recorded, what is owed is run, then everything
    /// is followed until [`OpenComputer::close`].
    pub async fn open(computer: Computer, minds: &AgentServices) -> Result<Self, ComputerError> {
        let computer = Arc::new(computer);
        let gateway = minds.gateway(computer.log().user());
        let tools = minds.tools(&computer);
        let services = minds.services(computer.log().user());
        let commands = Arc::new(Commands::default());
        computer.set_watched();
        computer.cells().backend().keep_warm();
        let start = Arc::clone(&computer);
        blocking(move || start.run_owed(&|_, _, _| ()).map(drop)).await?;
        let views = Views::open_read_only(&computer.place.state)?;
        let bus = Arc::new(EventBus::new(computer.log().head().seq));
        let activity = Arc::new(Activity::default());
        let (notices, _) = broadcast::channel(NOTICES);
        let (_running, parts) = mpsc::channel(1);
        let shared = Shared {
            computer: Arc::clone(&computer),
            bus: Arc::clone(&bus),
            activity: Arc::clone(&activity),
            notices: notices.clone(),
            commands: Arc::clone(&commands),
            minds: minds.clone(),
            gateway: gateway.clone(),
            tools: tools.clone(),
            _running,
        };
        let (supervisor, _) = Actor::spawn(None, Supervisor, shared).await.map_err(|e| {
            ComputerError::new(ErrorCode::Failed, format!("the computer could not be started: {e}"))
        })?;
        let terminals = Terminals::new(Arc::clone(&computer), activity);
        let (views, parts) = (Mutex::new(views), parts.into());
        Ok(Self(Arc::new(Inner {
            computer,
            bus,
            views,
            terminals,
            commands,
            gateway,
            tools,
            services,
            local: minds.outside.local.clone(),
            notices,
            supervisor,
            parts,
        })))
    }

    /// Whether there is another handle on it, or something runs: a request, a tab or a person is still there.
    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
            || !self.0.terminals.list().is_empty()
            || self.0.commands.any_runs()
            || self.has_work()
    }

    /// Whether a run goes on without the person.
    fn has_work(&self) -> bool {
        let works = |view: &mut kernel::View| {
            let goes_on = |run: &Run| {
                let asks = |task: &Task| run.questions().any(|ask| ask.task == task.id);
                let works = |task: &Task| task.state == TaskState::Working && !asks(task);
                run.phase == RunPhase::Working && (run.tasks.is_empty() || run.tasks.iter().any(works))
            };
            view.runs.iter().any(|(_, run)| goes_on(run))
        };
        self.0.computer.writer().inspect(works).unwrap_or(false)
    }

    /// Ends the parts, brings the disk up to date and lets go of the computer, which can then be opened again.
    /// Nothing is lost if this never runs.
    pub async fn close(self) {
        self.0.computer.end();
        // Both wait until nothing is left, and what a command came to is recorded while there is a log.
        let same = Arc::clone(&self.0);
        let _ = blocking(move || {
            same.terminals.end_all();
            same.commands.end_all(&same.computer);
            Ok(())
        })
        .await;
        let _ = self.0.supervisor.stop_and_wait(None, None).await;
        self.0.parts.lock().await.recv().await;
        self.0.tools.end().await;
        // Letting go waits for the writer's thread.
        let _ = blocking(move || self.0.computer.project(&|_, _, _| ()).map(drop)).await;
    }

    pub fn computer(&self) -> &Arc<Computer> {
        &self.0.computer
    }

    pub fn bus(&self) -> &Arc<EventBus> {
        &self.0.bus
    }

    pub fn terminals(&self) -> &Terminals {
        &self.0.terminals
    }

    /// The model of this machine, if there is one.
    pub fn local(&self) -> Option<&Arc<dyn LocalModelHost>> {
        self.0.local.as_ref()
    }

    /// The models that this user's agents reach.
    pub fn gateway(&self) -> &Gateway {
        &self.0.gateway
    }

    /// Tools that others run.
    pub fn tools(&self) -> &McpTools {
        &self.0.tools
    }

    /// Who searches the web, and where spans go.
    pub fn services(&self) -> &UserServices {
        &self.0.services
    }

    pub fn commands(&self) -> &Commands {
        &self.0.commands
    }

    pub fn notices(&self) -> broadcast::Receiver<String> {
        self.0.notices.subscribe()
    }

    /// Says what an agent says just now to whoever looks. It never waits and nothing of it is kept: the whole reply
    /// is an event.
    pub fn say(&self, run: RunId, task: TaskId, text: impl Into<String>) {
        self.0.computer.say(AgentSpeech { run, task, text: text.into() });
    }

    pub fn said(&self) -> broadcast::Receiver<AgentSpeech> {
        self.0.computer.voices()
    }

    /// Told whenever lists, search and disk have caught up.
    pub fn projected(&self) -> watch::Receiver<Seq> {
        self.0.bus.projected()
    }

    /// The read models, beside the projector that keeps them.
    pub fn views(&self) -> MutexGuard<'_, Views> {
        self.0.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs something that blocks, away from the threads that serve.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ComputerError> + Send + 'static,
) -> Result<T, ComputerError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => {
            Err(ComputerError::new(ErrorCode::Failed, "a part of the server failed; it was started again"))
        }
    }
}
