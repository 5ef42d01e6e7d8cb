//! Executes one run: owns its history, starts the planned steps and follows the events of the log.
//!
//! [`OpenRuns`](crate::OpenRuns) starts it, and again if it fails. All of its state is in the log, so a failure or a
//! crash costs only the turns in progress.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kernel::run::RunPhase;
use shared_types::payload::run::RunEvent;
use shared_types::{Event, Payload, RunId, Seq, TaskId};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use crate::budget::Reserved;
use crate::environment::AgentEnvironment;
use crate::history::History;
use crate::job::Job;
use crate::plan::{PlannedStep, StepKey, plan};
use crate::port::PortError;
use crate::transcript::Texts;

/// The pause before a step that could not be read or recorded is started again.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_millis(500);

pub(crate) struct Runner {
    environment: Arc<AgentEnvironment>,
    history: Arc<History>,
    texts: Arc<Mutex<Texts>>,
    reserved: Arc<Mutex<Reserved>>,
    /// Events of this run, in order.
    events: mpsc::UnboundedReceiver<Event>,
    jobs: JoinSet<(StepKey, Result<Option<Seq>, PortError>)>,
    in_progress: BTreeMap<StepKey, RunningStep>,
    /// Steps that were refused or had no effect, with the newest event known at their start: they are tried again when
    /// there are newer events.
    refused: BTreeMap<StepKey, Seq>,
    /// Why the last step was refused.
    refusal: Box<str>,
    /// The run was rewound to an earlier step, so its history must be read again.
    was_rewound: bool,
}

/// A step in progress.
struct RunningStep {
    job: AbortHandle,
    /// Cancels a turn, which then records its usage and ends.
    cancelled: Arc<Notify>,
    /// The newest event when it started.
    started_at: Seq,
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Abort the jobs first, so that none of them takes the lock again.
        self.jobs.abort_all();
        self.environment.local.release_if_idle(self.history.id, |_| false);
    }
}

/// Why a runner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The run is over, according to the events up to this one.
    Over(Seq),
    /// The run was rewound and must be loaded again.
    WentBack,
}

impl Runner {
    /// Loads the run from the log.
    pub(crate) async fn load(
        environment: Arc<AgentEnvironment>,
        run: RunId,
        events: mpsc::UnboundedReceiver<Event>,
    ) -> Result<Self, PortError> {
        let past = environment.port.events_of(run).await?;
        Ok(Self {
            environment,
            history: Arc::new(History::from_events(run, &past)),
            texts: Arc::default(),
            reserved: Arc::default(),
            events,
            jobs: JoinSet::new(),
            in_progress: BTreeMap::new(),
            refused: BTreeMap::new(),
            refusal: "".into(),
            was_rewound: false,
        })
    }

    /// Executes the run until it is over or rewound. Steps in progress end with it.
    pub(crate) async fn run(mut self) -> Ended {
        loop {
            self.add_received_events();
            if self.was_rewound {
                self.end_steps().await;
                return Ended::WentBack;
            }
            self.start_steps();
            self.environment.local.release_if_idle(self.history.id, |task| self.is_busy(task));
            if self.in_progress.is_empty() && self.is_over() {
                return Ended::Over(self.history.seq());
            }
            if self.is_stuck() {
                self.pause();
            }
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.add(&event),
                    // The sender is gone: the computer is closing.
                    None => return Ended::Over(self.history.seq()),
                },
                Some(ended) = self.jobs.join_next(), if !self.jobs.is_empty() => match ended {
                    Ok((key, result)) => self.step_ended(key, result).await,
                    Err(error) => self.step_failed(&error),
                },
            }
        }
    }

    /// Whether a turn or a call of an agent is in progress.
    fn is_busy(&self, task: TaskId) -> bool {
        let turn = self.history.tasks.get(&task).and_then(|task| task.last_turn());
        let mut calls =
            turn.iter().flat_map(|turn| turn.calls.iter().map(|requested| StepKey::Call(requested.call)));
        self.in_progress.contains_key(&StepKey::Task(task))
            || calls.any(|key| self.in_progress.contains_key(&key))
    }

    fn is_over(&self) -> bool {
        self.history.run().is_none_or(|run| run.phase.is_over()) && plan(&self.history).is_empty()
    }

    /// Whether all planned steps were refused and no event is expected that would change that.
    fn is_stuck(&self) -> bool {
        let is_working = |run: &kernel::run::Run| run.phase == RunPhase::Working && !run.waits_for_person();
        self.in_progress.is_empty()
            && self.history.run().is_some_and(is_working)
            && !plan(&self.history).is_empty()
    }

    /// Pauses the run with the reason of the last refusal, so that it does not hang.
    fn pause(&mut self) {
        let job = self.job(false);
        let (reason, cancelled) = (std::mem::take(&mut self.refusal), Arc::clone(&job.cancelled));
        let handle = self.jobs.spawn(async move { (StepKey::Run, job.pause(reason).await) });
        self.in_progress
            .insert(StepKey::Run, RunningStep { job: handle, cancelled, started_at: self.history.seq() });
    }

    fn job(&self, is_orphaned: bool) -> Job {
        Job {
            environment: Arc::clone(&self.environment),
            history: Arc::clone(&self.history),
            texts: Arc::clone(&self.texts),
            reserved: Arc::clone(&self.reserved),
            is_orphaned,
            cancelled: Arc::default(),
        }
    }

    /// Adds the next event, unless it is known already.
    fn add(&mut self, event: &Event) {
        if event.seq > self.history.seq() {
            self.was_rewound |= matches!(event.payload, Payload::Run(RunEvent::Rewind(_)));
            Arc::make_mut(&mut self.history).add(event);
        }
    }

    /// Adds all events that have arrived already.
    fn add_received_events(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.add(&event);
        }
    }

    /// Reads events from the log that have not arrived yet: one of them may be the cause of a refusal.
    async fn catch_up(&mut self) {
        if let Ok(events) = self.environment.port.events_of(self.history.id).await {
            events.iter().for_each(|event| self.add(event));
        }
    }

    fn start_steps(&mut self) {
        let is_cancelled = self.history.run().is_some_and(|run| run.phase == RunPhase::Cancelled);
        let steps = plan(&self.history);
        self.end_outbox_waits(&steps);
        for step in steps {
            let key = step.key();
            if let Some(running) = self.in_progress.get(&key) {
                // In a cancelled run an agent ends without waiting for its model.
                if matches!(step, PlannedStep::EndTask { .. }) && is_cancelled {
                    running.cancelled.notify_one();
                }
                continue;
            }
            if self.refused.get(&key).is_some_and(|known| *known == self.history.seq()) {
                continue;
            }
            let is_orphaned = if let PlannedStep::StopCall { call } = &step {
                let is_running = self.environment.port.is_running(*call);
                if let Some(running) = self.in_progress.get(&StepKey::Call(*call)).filter(|_| !is_running) {
                    // The job waits for something else than a command. Once it is gone, the call gets its result.
                    running.job.abort();
                    continue;
                }
                !is_running
            } else {
                false
            };
            let job = self.job(is_orphaned);
            let cancelled = Arc::clone(&job.cancelled);
            let handle = self.jobs.spawn(async move { (key, job.run(step).await) });
            self.in_progress
                .insert(key, RunningStep { job: handle, cancelled, started_at: self.history.seq() });
        }
    }

    /// Ends all steps before the run is loaded again. Turns record their usage first.
    async fn end_steps(&mut self) {
        for (key, step) in &self.in_progress {
            match key {
                StepKey::Task(_) => step.cancelled.notify_one(),
                StepKey::Run | StepKey::Call(_) | StepKey::Release(_) | StepKey::Stop(_) => step.job.abort(),
            }
        }
        while self.jobs.join_next().await.is_some() {}
    }

    /// Ends waits in the outbox for calls that the person released or called off.
    fn end_outbox_waits(&self, planned: &[PlannedStep]) {
        for (key, step) in &self.in_progress {
            if matches!(key, StepKey::Release(_)) && !planned.iter().any(|step| step.key() == *key) {
                step.job.abort();
            }
        }
    }

    /// A step is over when its events are in the history, so that it is not taken twice.
    async fn step_ended(&mut self, key: StepKey, result: Result<Option<Seq>, PortError>) {
        let started_at = self.in_progress.remove(&key).map_or(Seq::ZERO, |step| step.started_at);
        match result {
            Ok(Some(seq)) => {
                while self.history.seq() < seq {
                    let Some(event) = self.events.recv().await else { return };
                    self.add(&event);
                }
                self.refused.remove(&key);
            }
            // The step had no effect; it is tried again after the next event.
            Ok(None) => drop(self.refused.insert(key, started_at)),
            Err(PortError::Refused(why)) => {
                tracing::debug!(run = %self.history.id, ?key, why, "a step was refused");
                self.refusal = why.into();
                self.catch_up().await;
                self.refused.insert(key, started_at);
            }
            Err(PortError::Unavailable(why)) => {
                tracing::warn!(run = %self.history.id, ?key, why, "cannot record a step; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    /// A job was aborted or panicked.
    fn step_failed(&mut self, error: &tokio::task::JoinError) {
        let failed: Vec<StepKey> = self
            .in_progress
            .iter()
            .filter(|(_, step)| step.job.id() == error.id())
            .map(|(key, _)| *key)
            .collect();
        for key in failed {
            self.in_progress.remove(&key);
            if error.is_panic() {
                tracing::error!(run = %self.history.id, ?key, %error, "a step of a run panicked");
                self.refusal = "an internal error stopped the run; resume it to try again".into();
                self.refused.insert(key, self.history.seq());
            }
        }
    }
}
