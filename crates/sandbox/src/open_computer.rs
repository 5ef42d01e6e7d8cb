//! An open computer with its supervised parts.
//!
//! An [`OpenComputer`] is a cheap handle on one user's computer. It gives access to that user's events, files and
//! terminals only. Every route of [`crate::api`] gets one.

mod activity;
mod bus;
mod cell_process;
mod input_queue;
mod marks;
mod parts;
mod process;
mod shell_process;
mod terminal;
mod terminals;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event_log::EventLog;
use kernel::run::{Run, RunPhase, Task, TaskState};
use models::Gateway;
use projector::Views;
use shared_types::wire::{PartKind, PartsReport};
use shared_types::{RunId, Seq, TaskId};
use tokio::sync::{broadcast, watch};

pub use bus::{Backlog, EventBus};
pub use computer::output_feed::{Attachment, Output};
pub use computer::running_commands::Commands;
pub use process::{Process, ProcessControl, Size};
pub use terminals::Terminals;

use activity::TerminalActivity;

use crate::supervision::{Application, PartSupervisor};
use agent_host::agent_services::{AgentServices, LocalModelHost};
use agent_host::mcp_tools::McpTools;
use agent_host::runs::RunHost;
use agent_host::services::UserServices;
use computer::error::{ComputerError, ErrorCode};
use computer::{AgentSpeech, Computer};

/// Notices that wait for a tab at most; a tab that misses some has lost nothing that is in the log.
const NOTICE_BUFFER: usize = 64;

/// How long a reader waits for the projector.
const CATCH_UP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// A handle on one user's open computer.
#[derive(Debug, Clone)]
pub struct OpenComputer(Arc<OpenComputerInner>);

struct OpenComputerInner {
    shared: Arc<PartsContext>,
    terminals: Terminals,
    services: UserServices,
    local: Option<Arc<dyn LocalModelHost>>,
}

impl std::fmt::Debug for OpenComputerInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenComputer").field("paths", &self.shared.computer.paths).finish_non_exhaustive()
    }
}

/// Dropping the last handle stops a computer that was not closed.
impl Drop for OpenComputerInner {
    fn drop(&mut self) {
        self.shared.computer.begin_close();
        self.shared.parts.request_stop();
    }
}

/// What the parts of an open computer share.
#[derive(Debug)]
pub(crate) struct PartsContext {
    pub(crate) computer: Arc<Computer>,
    pub(crate) parts: PartSupervisor,
    /// The newest event, as the log reports it.
    pub(crate) head: watch::Sender<Seq>,
    pub(crate) bus: Arc<EventBus>,
    views: Mutex<Views>,
    pub(crate) activity: Arc<TerminalActivity>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) runs: Arc<RunHost>,
    gateway: Gateway,
    tools: McpTools,
    notices: broadcast::Sender<String>,
    /// True once the computer is being closed.
    pub(crate) closing: watch::Sender<bool>,
}

impl PartsContext {
    /// Waits until the computer is being closed.
    pub(crate) async fn closed(&self) {
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// The read models, beside the projector that keeps them.
    pub(crate) fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a problem to the person who looks, and to the server's log.
    pub(crate) fn report(&self, problem: String) {
        tracing::warn!(user = %self.computer.log().user(), problem);
        let _ = self.notices.send(problem);
    }
}

impl OpenComputer {
    /// Opens a computer that is the only one of this process.
    pub async fn open(computer: Computer, services: &AgentServices) -> Result<Self, ComputerError> {
        let application = Application::start().await.map_err(not_started)?;
        Self::open_supervised(computer, services, &application).await
    }

    /// Opens the parts around a computer: pending effects run, edits made outside are recorded, then everything is
    /// followed until [`OpenComputer::close`].
    pub async fn open_supervised(
        computer: Computer,
        services: &AgentServices,
        application: &Application,
    ) -> Result<Self, ComputerError> {
        let computer = Arc::new(computer);
        let (log, user) = (Arc::clone(computer.log()), computer.log().user().clone());
        computer.cells().backend().keep_warm();
        let start = Arc::clone(&computer);
        blocking(move || start.run_due_effects(&|_, _, _| ()).map(drop)).await?;
        let (notices, _) = broadcast::channel(NOTICE_BUFFER);
        let supervised = PartSupervisor::supervise(application, user.clone(), notices.clone()).await;
        let parts = supervised.map_err(not_started)?;
        let views = Mutex::new(Views::open_read_only(&computer.paths.state)?);
        let (head, closing) = (watch::Sender::new(log.head().seq), watch::Sender::new(false));
        let (heads, closes) = (head.clone(), closing.clone());
        log.on_append(Box::new(move |seq| {
            heads.send_replace(seq);
        }));
        computer.on_close(move || {
            closes.send_replace(true);
        });
        let bus = Arc::new(EventBus::new(log.head().seq));
        let activity = Arc::new(TerminalActivity::default());
        let supervisor = parts.clone();
        let commands = Arc::new(Commands::new(Box::new(move |op| {
            Box::new(supervisor.guard(PartKind::Command, op.to_string()))
        })));
        let supervisor = parts.clone();
        let tools = services.mcp_tools(
            &computer,
            Arc::new(move |name| Box::new(supervisor.guard(PartKind::McpServer, name.to_owned()))),
        );
        let gateway = services.gateway(&user);
        let runs = Arc::new(RunHost::new(&computer, &commands, services, &gateway, &tools, bus.projected()));
        let terminals = Terminals::new(Arc::clone(&computer), Arc::clone(&activity), parts.clone());
        let shared = Arc::new(PartsContext {
            computer,
            parts,
            head,
            bus,
            views,
            activity,
            commands,
            runs,
            gateway,
            tools,
            notices,
            closing,
        });
        parts::start_all(&shared);
        let (services, local) = (services.services(&user), services.local_services.local.clone());
        Ok(Self(Arc::new(OpenComputerInner { shared, terminals, services, local })))
    }

    /// Whether there is another handle (of a request or a tab), or something is running.
    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
            || !self.0.terminals.list().is_empty()
            || self.0.shared.commands.any_runs()
            || self.has_work()
    }

    /// Whether a run continues without the person.
    fn has_work(&self) -> bool {
        let works = |view: &mut kernel::View| {
            let goes_on = |run: &Run| {
                let asks = |task: &Task| run.questions().any(|ask| ask.task == task.id);
                let works = |task: &Task| task.state == TaskState::Working && !asks(task);
                run.phase == RunPhase::Working && (run.tasks.is_empty() || run.tasks.iter().any(works))
            };
            view.runs.iter().any(|(_, run)| goes_on(run))
        };
        self.0.shared.computer.writer().inspect(works).unwrap_or(false)
    }

    /// Stops the parts, brings the disk up to date and releases the computer, which can then be opened again. Nothing
    /// is lost if this never runs.
    pub async fn close(self) {
        let shared = Arc::clone(&self.0.shared);
        shared.computer.begin_close();
        // Both wait for the end, so that results of commands are recorded while the log is open.
        let same = Arc::clone(&self.0);
        let _ = blocking(move || {
            same.terminals.end_all();
            same.shared.commands.end_all(&same.shared.computer);
            Ok(())
        })
        .await;
        shared.parts.stop().await;
        shared.tools.end().await;
        // Dropping the computer waits for the writer's thread.
        let _ = blocking(move || {
            let projected = shared.computer.project(&|_, _, _| ()).map(drop);
            drop((self, shared));
            projected
        })
        .await;
    }

    /// Waits until the computer is being closed.
    pub(crate) async fn closed(&self) {
        self.0.shared.closed().await;
    }

    /// How the supervised parts are doing.
    pub async fn parts(&self) -> PartsReport {
        self.0.shared.parts.report().await
    }

    pub fn computer(&self) -> &Arc<Computer> {
        &self.0.shared.computer
    }

    pub fn bus(&self) -> &Arc<EventBus> {
        &self.0.shared.bus
    }

    pub fn terminals(&self) -> &Terminals {
        &self.0.terminals
    }

    /// The local model, if there is one.
    pub fn local_model(&self) -> Option<&Arc<dyn LocalModelHost>> {
        self.0.local.as_ref()
    }

    /// The models that this user's agents reach.
    pub fn gateway(&self) -> &Gateway {
        &self.0.shared.gateway
    }

    /// The MCP servers of this user.
    pub fn mcp_tools(&self) -> &McpTools {
        &self.0.shared.tools
    }

    /// Web search and telemetry.
    pub fn services(&self) -> &UserServices {
        &self.0.services
    }

    pub fn commands(&self) -> &Commands {
        &self.0.shared.commands
    }

    pub fn notices(&self) -> broadcast::Receiver<String> {
        self.0.shared.notices.subscribe()
    }

    /// Sends streamed text of an agent to the tabs that listen now. It never waits, and nothing is stored: the whole
    /// reply is an event.
    pub fn stream_speech(&self, run: RunId, task: TaskId, text: impl Into<String>) {
        self.0.shared.computer.stream_speech(AgentSpeech { run, task, text: text.into() });
    }

    pub fn subscribe_speech(&self) -> broadcast::Receiver<AgentSpeech> {
        self.0.shared.computer.subscribe_speech()
    }

    /// Changes whenever lists, search and disk have caught up.
    pub fn projected(&self) -> watch::Receiver<Seq> {
        self.0.shared.bus.projected()
    }

    /// Waits until the read models hold every event that was acknowledged before this call: what a caller wrote is in
    /// the lists that it reads next. If the projector is far behind, they are read as they are.
    pub async fn wait_until_projected(&self) {
        let head = self.0.shared.computer.log().head().seq;
        let mut projected = self.projected();
        let _ = tokio::time::timeout(CATCH_UP_TIMEOUT, projected.wait_for(|seq| *seq >= head)).await;
    }

    /// The read models, beside the projector that keeps them.
    pub fn views(&self) -> MutexGuard<'_, Views> {
        self.0.shared.views()
    }
}

pub(crate) fn not_started(error: ractor::SpawnErr) -> ComputerError {
    ComputerError::new(ErrorCode::Failed, format!("the computer could not be started: {error}"))
}

/// Runs a blocking function on a thread for blocking work.
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
