//! The runs of one computer that are not over, and the events that each is sent.
//!
//! The owner follows the log, hands new events to [`OpenRuns::dispatch`], and supervises one call of
//! [`OpenRuns::carry_out`] per run. A run is what the log says it is, so carrying it out can be cancelled and started
//! again at any time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{Action, Origin, RunAction};
use shared_types::payload::run::RunEvent;
use shared_types::{Actor, Event, OpId, Payload, RunId, Seq, Source};
use tokio::sync::mpsc;

use crate::environment::AgentEnvironment;
use crate::port::{AgentSubmission, PortError};
use crate::runner::{Ended, Runner};

/// See the module.
#[derive(Debug)]
pub struct OpenRuns {
    environment: Arc<AgentEnvironment>,
    open: Mutex<HashMap<RunId, OpenRun>>,
}

#[derive(Debug)]
struct OpenRun {
    /// Closed while the run is not being carried out; it reads what it missed from the log.
    events: mpsc::UnboundedSender<Event>,
    /// The newest event that the log holds of this run, as far as it was dispatched.
    newest: Seq,
}

impl OpenRuns {
    pub fn new(environment: AgentEnvironment) -> Self {
        Self { environment: Arc::new(environment), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RunId, OpenRun>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runs that the log says are not over and that are not being carried out: the caller has to start them.
    pub async fn resume(&self) -> Result<Vec<RunId>, PortError> {
        let mut begun = Vec::new();
        for run in self.environment.port.open_runs().await? {
            if self.begin(run, Seq::ZERO) {
                self.record_wake(run).await;
                begun.push(run);
            }
        }
        Ok(begun)
    }

    /// Records that a run continues, so that the time in which it was not carried out does not count as its own.
    async fn record_wake(&self, run: RunId) {
        let port = &self.environment.port;
        let op = OpId::from_bytes(*run.as_bytes());
        let origin = Origin::new(port.new_command(), op, Source::Agent, Actor::CHOIR);
        let origin = Origin { run_id: Some(run), ..origin };
        let action = Action::Run(RunAction::Wake);
        let submission = AgentSubmission { origin, action, contents: Vec::new() };
        if let Err(error) = port.record(submission).await {
            tracing::debug!(%run, %error, "a run continues without a record of it");
        }
    }

    /// Sends new events of the log to their runs; events that a run has already seen do no harm. Returns the runs that
    /// begin with these events: the caller has to start them.
    pub fn dispatch(&self, events: &[Event]) -> Vec<RunId> {
        let mut begun = Vec::new();
        for event in events {
            let Some(run) = event.run_id else { continue };
            if matches!(event.payload, Payload::Run(RunEvent::Start(_) | RunEvent::Rewind(_)))
                && self.begin(run, event.seq)
            {
                begun.push(run);
            }
            if let Some(open) = self.open().get_mut(&run) {
                open.newest = open.newest.max(event.seq);
                let _ = open.events.send(event.clone());
            }
        }
        begun
    }

    /// Adds a run to the open ones. False if it is there already.
    fn begin(&self, run: RunId, newest: Seq) -> bool {
        let mut open = self.open();
        if open.contains_key(&run) {
            return false;
        }
        let (events, _) = mpsc::unbounded_channel();
        open.insert(run, OpenRun { events, newest });
        true
    }

    /// Carries out a run until it is over. After an error it stays open and has to be carried out again.
    pub async fn carry_out(&self, run: RunId) -> Result<(), PortError> {
        loop {
            // Events from now on come through the channel, earlier ones are in the log.
            let (sender, events) = mpsc::unbounded_channel();
            match self.open().get_mut(&run) {
                Some(open) => open.events = sender,
                None => return Ok(()),
            }
            let runner = Runner::load(Arc::clone(&self.environment), run, events).await?;
            let Ended::Over(seen) = runner.run().await else { continue };
            let mut open = self.open();
            // An event that came after the runner's last look may have opened the run again.
            if open.get(&run).is_none_or(|open| open.newest <= seen) {
                open.remove(&run);
                return Ok(());
            }
        }
    }
}
