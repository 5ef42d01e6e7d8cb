//! One run being carried out: owns its history, starts what the plan says, takes in what the log says.
//!
//! The [`OpenRuns`](crate::OpenRuns) starts it. It keeps nothing that is not in the log, so a
//! failure or a crash costs the turns that were under way and nothing else.

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
use crate::plan::{Act, Key, plan};
use crate::port::PortError;
use crate::transcript::Texts;

/// How long a step rests that could not be read or recorded.
const REST: std::time::Duration = std::time::Duration::from_millis(500);

pub(crate) struct Runner {
    kit: Arc<AgentEnvironment>,
    history: Arc<History>,
    texts: Arc<Mutex<Texts>>,
    reserved: Arc<Mutex<Reserved>>,
    /// Events of this run, in order.
    events: mpsc::UnboundedReceiver<Event>,
    jobs: JoinSet<(Key, Result<Option<Seq>, PortError>)>,
    under_way: BTreeMap<Key, Step>,
    /// Steps that were refused, with what was known then: they are tried again when more is known.
    refused: BTreeMap<Key, Seq>,
    /// Why the last of them was.
    why: Box<str>,
    /// The run went back to an earlier step: what is known here is too much.
    went_back: bool,
}

/// A step that is under way.
struct Step {
    job: AbortHandle,
    /// Tells a turn that nobody waits for it. It records what it took, and ends.
    unwanted: Arc<Notify>,
    /// What was known when it began.
    began: Seq,
}

impl Drop for Runner {
    fn drop(&mut self) {
        // First, so that none of them takes it up once more.
        self.jobs.abort_all();
        self.kit.local.leave(self.history.id, |_| false);
    }
}

/// Why a runner is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is over, as far as this event.
    Over(Seq),
    /// The run has to be read once more.
    WentBack,
}

impl Runner {
    /// Reads the run from the log.
    pub(crate) async fn load(
        kit: Arc<AgentEnvironment>,
        run: RunId,
        events: mpsc::UnboundedReceiver<Event>,
    ) -> Result<Self, PortError> {
        let past = kit.port.events_of(run).await?;
        Ok(Self {
            kit,
            history: Arc::new(History::of(run, &past)),
            texts: Arc::default(),
            reserved: Arc::default(),
            events,
            jobs: JoinSet::new(),
            under_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            why: "".into(),
            went_back: false,
        })
    }

    /// Carries the run out until it is over. Whatever is under way ends with it.
    pub(crate) async fn run(mut self) -> Ended {
        loop {
            self.take_in();
            if self.went_back {
                self.end_steps().await;
                return Ended::WentBack;
            }
            self.start_steps();
            self.kit.local.leave(self.history.id, |task| self.is_busy(task));
            if self.under_way.is_empty() && self.is_over() {
                return Ended::Over(self.history.seq());
            }
            if self.is_stuck() {
                self.pause();
            }
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.add(&event),
                    // Nobody will tell us any more: the computer is being closed.
                    None => return Ended::Over(self.history.seq()),
                },
                Some(ended) = self.jobs.join_next(), if !self.jobs.is_empty() => match ended {
                    Ok((key, came)) => self.ended(key, came).await,
                    Err(error) => self.broke(&error),
                },
            }
        }
    }

    /// Whether a turn or a call of an agent is under way.
    fn is_busy(&self, task: TaskId) -> bool {
        let turn = self.history.tasks.get(&task).and_then(|task| task.last_turn());
        let mut calls = turn.iter().flat_map(|turn| turn.calls.iter().map(|wanted| Key::Call(wanted.call)));
        self.under_way.contains_key(&Key::Task(task)) || calls.any(|key| self.under_way.contains_key(&key))
    }

    fn is_over(&self) -> bool {
        self.history.run().is_none_or(|run| run.phase.is_over()) && plan(&self.history).is_empty()
    }

    /// Whether there is something to do, all of it was refused, and nobody will change that.
    fn is_stuck(&self) -> bool {
        let waits = |run: &kernel::run::Run| run.phase == RunPhase::Working && !run.waits_for_person();
        self.under_way.is_empty() && self.history.run().is_some_and(waits) && !plan(&self.history).is_empty()
    }

    /// Stands still, with the reason, rather than for ever.
    fn pause(&mut self) {
        let job = self.job(false);
        let (why, unwanted) = (std::mem::take(&mut self.why), Arc::clone(&job.unwanted));
        let handle = self.jobs.spawn(async move { (Key::Run, job.pause(why).await) });
        self.under_way.insert(Key::Run, Step { job: handle, unwanted, began: self.history.seq() });
    }

    fn job(&self, is_orphan: bool) -> Job {
        Job {
            kit: Arc::clone(&self.kit),
            history: Arc::clone(&self.history),
            texts: Arc::clone(&self.texts),
            reserved: Arc::clone(&self.reserved),
            is_orphan,
            unwanted: Arc::default(),
        }
    }

    fn add(&mut self, event: &Event) {
        if event.seq > self.history.seq() {
            self.went_back |= matches!(event.payload, Payload::Run(RunEvent::Rewind(_)));
            Arc::make_mut(&mut self.history).add(event);
        }
    }

    /// Takes in everything that was told already.
    fn take_in(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.add(&event);
        }
    }

    /// Reads what the log has and we were not told yet: whatever was refused may have been so because of it.
    async fn catch_up(&mut self) {
        if let Ok(events) = self.kit.port.events_of(self.history.id).await {
            events.iter().for_each(|event| self.add(event));
        }
    }

    fn start_steps(&mut self) {
        let is_cancelled = self.history.run().is_some_and(|run| run.phase == RunPhase::Cancelled);
        let acts = plan(&self.history);
        self.end_waits(&acts);
        for act in acts {
            let key = act.key();
            if let Some(step) = self.under_way.get(&key) {
                // Nobody waits for a model on behalf of an agent that is to end.
                if matches!(act, Act::End { .. }) && is_cancelled {
                    step.unwanted.notify_one();
                }
                continue;
            }
            if self.refused.get(&key).is_some_and(|known| *known == self.history.seq()) {
                continue;
            }
            let is_orphan = if let Act::Stop { call } = &act {
                let runs = self.kit.port.is_running(*call);
                if let Some(step) = self.under_way.get(&Key::Call(*call)).filter(|_| !runs) {
                    // Whatever it waits for, nobody does any more; then the call is answered.
                    step.job.abort();
                    continue;
                }
                !runs
            } else {
                false
            };
            let job = self.job(is_orphan);
            let unwanted = Arc::clone(&job.unwanted);
            let handle = self.jobs.spawn(async move { (key, job.run(act).await) });
            self.under_way.insert(key, Step { job: handle, unwanted, began: self.history.seq() });
        }
    }

    /// Ends what is under way in a run that is read once more. Turns record what they took before.
    async fn end_steps(&mut self) {
        for (key, step) in &self.under_way {
            match key {
                Key::Task(_) => step.unwanted.notify_one(),
                Key::Run | Key::Call(_) | Key::Release(_) | Key::Stop(_) => step.job.abort(),
            }
        }
        while self.jobs.join_next().await.is_some() {}
    }

    /// Nobody waits for the time of a call to be up that was let go or called off.
    fn end_waits(&self, acts: &[Act]) {
        for (key, step) in &self.under_way {
            if matches!(key, Key::Release(_)) && !acts.iter().any(|act| act.key() == *key) {
                step.job.abort();
            }
        }
    }

    /// A step is over when what it came to has reached us, so that it is not taken twice.
    async fn ended(&mut self, key: Key, came: Result<Option<Seq>, PortError>) {
        let began = self.under_way.remove(&key).map_or(Seq::ZERO, |step| step.began);
        match came {
            Ok(Some(seq)) => {
                while self.history.seq() < seq {
                    let Some(event) = self.events.recv().await else { return };
                    self.add(&event);
                }
                self.refused.remove(&key);
            }
            // It came to nothing with what was known; something else has to happen first.
            Ok(None) => drop(self.refused.insert(key, began)),
            Err(PortError::Refused(why)) => {
                tracing::debug!(run = %self.history.id, ?key, why, "a step was refused");
                self.why = why.into();
                self.catch_up().await;
                self.refused.insert(key, began);
            }
            Err(PortError::Unavailable(why)) => {
                tracing::warn!(run = %self.history.id, ?key, why, "a step could not be recorded; it is tried again");
                tokio::time::sleep(REST).await;
            }
        }
    }

    /// A job was aborted, or failed in a way that nobody foresaw.
    fn broke(&mut self, error: &tokio::task::JoinError) {
        let broken: Vec<Key> = self
            .under_way
            .iter()
            .filter(|(_, step)| step.job.id() == error.id())
            .map(|(key, _)| *key)
            .collect();
        for key in broken {
            self.under_way.remove(&key);
            if error.is_panic() {
                tracing::error!(run = %self.history.id, ?key, %error, "a step of a run failed");
                self.why = "a part of the harness failed; let it go on to try again".into();
                self.refused.insert(key, self.history.seq());
            }
        }
    }
}
