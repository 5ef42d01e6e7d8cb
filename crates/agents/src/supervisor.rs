//! All runs of one computer: begun when the log says so, told what the log says, begun again if they fail.
//!
//! Whoever owns it follows the log and calls [`RunSupervisor::tell`]. Dropping it ends everything that is under way; nothing is
//! lost by that, since a run is what the log says it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{Action, RunAction};
use models::Gateway;
use shared_types::payload::run::RunEvent;
use shared_types::{Actor, Event, OpId, Payload, RunId, Seq};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::budget::Reserved;
use crate::local_model_lock::LocalModelLock;
use crate::port::{AgentSubmission, ComputerPort, PortError};
use crate::rules::Rules;
use crate::runner::{Ended, Runner};
use crate::toolbox::Toolbox;
use crate::web::Web;

/// The pause before a run that failed is begun again; it doubles up to a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What runs work with.
pub struct AgentEnvironment {
    pub port: Arc<dyn ComputerPort>,
    pub gateway: Gateway,
    pub rules: Arc<Rules>,
    pub web: Option<Arc<dyn Web>>,
    /// Tools of others, where there are any.
    pub toolbox: Option<Arc<dyn Toolbox>>,
    /// What turns of all runs that are under way take at most.
    pub reserved: Mutex<Reserved>,
    /// Tokens that models read at once, by their names, where that turned out to be less than the catalog says.
    pub rooms: Mutex<HashMap<String, u64>>,
    /// Whom the machine's own model works for.
    pub local: Arc<LocalModelLock>,
}

impl std::fmt::Debug for AgentEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentEnvironment")
    }
}

/// See the module.
#[derive(Debug)]
pub struct RunSupervisor {
    kit: Arc<AgentEnvironment>,
    runs: Arc<Mutex<Runs>>,
}

#[derive(Debug, Default)]
struct Runs {
    told: HashMap<RunId, mpsc::UnboundedSender<Event>>,
    tasks: JoinSet<()>,
}

impl RunSupervisor {
    /// Begins with the runs that are not over. Whatever the log gets from now on has to be told; twice does no harm.
    pub async fn open(kit: AgentEnvironment) -> Result<Self, PortError> {
        let choir = Self { kit: Arc::new(kit), runs: Arc::default() };
        for run in choir.kit.port.open_runs().await? {
            choir.wake(run).await;
            choir.begin(run);
        }
        Ok(choir)
    }

    /// The time in which nobody carried a run out is not its own.
    async fn wake(&self, run: RunId) {
        let port = &self.kit.port;
        let deed = AgentSubmission {
            command: port.new_command(),
            op: OpId::from_bytes(*run.as_bytes()),
            run,
            actor: Actor::CHOIR,
            cause: None,
            taint: Vec::new(),
            action: Action::Run(RunAction::Wake),
            contents: Vec::new(),
        };
        if let Err(error) = port.record(deed).await {
            tracing::debug!(%run, %error, "a run is taken up without a note of it");
        }
    }

    pub fn kit(&self) -> &Arc<AgentEnvironment> {
        &self.kit
    }

    /// Whether any run is being carried out.
    pub fn is_busy(&self) -> bool {
        !self.runs().told.is_empty()
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }

    /// The next events of the log, of any kind.
    pub fn tell(&self, events: &[Event]) {
        for event in events {
            let Some(run) = event.run_id else { continue };
            if matches!(event.payload, Payload::Run(RunEvent::Start(_) | RunEvent::Rewind(_))) {
                self.begin(run);
            }
            if let Some(told) = self.runs().told.get(&run) {
                let _ = told.send(event.clone());
            }
        }
    }

    fn begin(&self, run: RunId) {
        let mut runs = self.runs();
        while runs.tasks.try_join_next().is_some() {}
        if runs.told.contains_key(&run) {
            return;
        }
        let (told, events) = mpsc::unbounded_channel();
        runs.told.insert(run, told);
        runs.tasks.spawn(supervise(Arc::clone(&self.kit), Arc::clone(&self.runs), run, events));
    }

    /// Ends everything that is under way.
    pub async fn close(&self) {
        let mut tasks = {
            let mut runs = self.runs();
            runs.told.clear();
            std::mem::take(&mut runs.tasks)
        };
        tasks.shutdown().await;
    }
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries a run out, again and again until it is over and nothing more was told of it.
async fn supervise(
    kit: Arc<AgentEnvironment>,
    runs: Arc<Mutex<Runs>>,
    run: RunId,
    mut told: mpsc::UnboundedReceiver<Event>,
) {
    let (mut pause, mut newest) = (FIRST_PAUSE, Seq::ZERO);
    loop {
        let (hand_on, events) = mpsc::unbounded_channel();
        let own = Arc::clone(&kit);
        let mut task = tokio::spawn(async move {
            let runner = Runner::load(own, run, events).await?;
            Ok::<_, PortError>(runner.run().await)
        });
        let abort = AbortOnDrop(task.abort_handle());
        let ended = loop {
            tokio::select! {
                ended = &mut task => break ended,
                event = told.recv() => match event {
                    Some(event) => {
                        newest = newest.max(event.seq);
                        let _ = hand_on.send(event);
                    }
                    None => return,
                },
            }
        };
        drop(abort);
        match ended {
            Ok(Ok(Ended::WentBack)) => continue,
            Ok(Ok(Ended::Over(known))) => {
                // Nobody tells anything meanwhile, so what was told last is not lost.
                let mut runs = lock(&runs);
                while let Ok(event) = told.try_recv() {
                    newest = newest.max(event.seq);
                }
                if newest <= known {
                    runs.told.remove(&run);
                    return;
                }
                continue;
            }
            Ok(Err(error)) => tracing::warn!(%run, %error, "a run could not be read; it is tried again"),
            Err(error) => tracing::error!(%run, %error, "a run failed; it is begun again from the log"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A task that ends with whoever started it.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
