//! Carries out the runs of one computer: follows the log and sends each run its events. Runs receive nothing in any
//! other way.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use agents::OpenRuns;
use event_log::{EventLog, decode_event};
use shared_types::{Event, RunId, Seq};

use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::running_commands::Commands;
use models::Gateway;
use tokio::sync::watch;

use crate::agent_services::AgentServices;
use crate::computer_adapter::ComputerAdapter;
use crate::mcp_tools::McpTools;
use crate::telemetry::RunTelemetry;

/// The runs of one computer, and the position up to which the log was read for them.
#[derive(Debug)]
pub struct RunHost {
    computer: Arc<Computer>,
    services: AgentServices,
    gateway: Gateway,
    runs: OpenRuns,
    /// All events up to here were sent to their runs.
    seen: Mutex<Seq>,
}

impl RunHost {
    /// `projected` is the position up to which lists and search reflect the log.
    pub fn new(
        computer: &Arc<Computer>,
        commands: &Arc<Commands>,
        services: &AgentServices,
        gateway: &Gateway,
        tools: &McpTools,
        projected: watch::Receiver<Seq>,
    ) -> Self {
        let seen = Mutex::new(computer.log().head().seq);
        let port = ComputerAdapter::new(Arc::clone(computer), Arc::clone(commands), projected);
        let environment =
            services.agent_environment(Arc::new(port), gateway.clone(), computer.log().user(), tools);
        let (computer, services) = (Arc::clone(computer), services.clone());
        Self { computer, services, gateway: gateway.clone(), runs: OpenRuns::new(environment), seen }
    }

    /// Follows the log until the computer is closed. `appended` changes with events of runs; `start` is called with each
    /// run that has to be carried out.
    pub async fn follow(
        self: &Arc<Self>,
        mut appended: watch::Receiver<Seq>,
        mut closing: watch::Receiver<bool>,
        start: impl Fn(RunId),
    ) -> Result<(), ComputerError> {
        let failed = |e: agents::PortError| ComputerError::new(ErrorCode::Failed, e.to_string());
        self.runs.resume().await.map_err(failed)?.into_iter().for_each(&start);
        let telemetry = self.services.telemetry.as_ref();
        let mut run_telemetry =
            telemetry.map(|telemetry| RunTelemetry::new(telemetry, self.gateway.catalog()));
        loop {
            let host = Arc::clone(self);
            let unread = tokio::task::spawn_blocking(move || host.unread_events());
            let (events, through) = unread.await.map_err(join_error)??;
            self.runs.dispatch(&events).into_iter().for_each(&start);
            // Only now: if this part fails before, the next one dispatches the same events again.
            self.set_seen(through);
            if let Some(mut telemetry) = run_telemetry.take() {
                let host = Arc::clone(self);
                let added = tokio::task::spawn_blocking(move || {
                    telemetry.add_events(&events, &**host.computer.log());
                    telemetry
                });
                run_telemetry = Some(added.await.map_err(join_error)?);
            }
            tokio::select! {
                _ = closing.wait_for(|closing| *closing) => break,
                changed = appended.changed() => if changed.is_err() { break },
            }
        }
        if let Some(run_telemetry) = run_telemetry {
            run_telemetry.close().await;
        }
        Ok(())
    }

    /// Carries out one run until it is over.
    pub async fn carry_out(&self, run: RunId) -> Result<(), ComputerError> {
        let carried = self.runs.carry_out(run).await;
        carried.map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))
    }

    /// Events of runs that were not dispatched yet, and how far the log was read for them.
    fn unread_events(&self) -> Result<(Vec<Event>, Seq), ComputerError> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        of_runs(&**self.computer.log(), seen)
    }

    fn set_seen(&self, through: Seq) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = through;
    }
}

/// A task that panicked or was cut off.
fn join_error(error: tokio::task::JoinError) -> ComputerError {
    ComputerError::new(ErrorCode::Failed, error.to_string())
}

/// Events of runs after a seq, and the position up to which was read.
fn of_runs(log: &dyn EventLog, after: Seq) -> Result<(Vec<Event>, Seq), ComputerError> {
    let (mut events, mut through) = (Vec::new(), after);
    let mut broken = None;
    log.scan(after.next(), &mut |stored| {
        through = stored.seq;
        if stored.run_id.is_some() {
            match decode_event(log, stored) {
                Ok(event) => events.push(event),
                Err(e) => broken = Some(e),
            }
        }
        ControlFlow::Continue(())
    })?;
    match broken {
        Some(error) => Err(error.into()),
        None => Ok((events, through)),
    }
}
