//! The part that carries out runs of agents: it follows the log and tells the choir, and nothing reaches the choir in
//! any other way.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use agents::RunSupervisor;
use event_log::{EventLog, decode_event};
use shared_types::{Event, Seq};

use computer::Computer;
use computer::commands::Commands;
use computer::error::{ComputerError, ErrorCode};
use models::Gateway;
use tokio::sync::watch;

use crate::agent_services::AgentServices;
use crate::computer_adapter::ComputerAdapter;
use crate::mcp_tools::McpTools;
use crate::telemetry::Traced;

/// How long it waits for an event at most; it waits again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What runs of agents on one computer need.
#[derive(Debug, Clone)]
pub struct RunHost {
    pub computer: Arc<Computer>,
    pub commands: Arc<Commands>,
    pub minds: AgentServices,
    pub gateway: Gateway,
    pub tools: McpTools,
    /// How far lists and search have followed the log.
    pub projected: watch::Receiver<Seq>,
}

/// Carries out runs until the computer is closed. Blocks, inside a runtime.
pub fn run(host: &RunHost) -> Result<(), ComputerError> {
    let runtime = tokio::runtime::Handle::current();
    let _inside = runtime.enter();
    let RunHost { computer, commands, minds, gateway, tools, projected } = host;
    let log = &**computer.log();
    let mut seen = log.head().seq;
    let port = ComputerAdapter::new(Arc::clone(computer), Arc::clone(commands), projected.clone());
    let opened =
        runtime.block_on(RunSupervisor::open(minds.kit(Arc::new(port), gateway.clone(), log.user(), tools)));
    let mut traced = minds.telemetry.as_ref().map(|telemetry| Traced::new(telemetry, gateway.catalog()));
    let choir = opened.map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
    while !computer.is_ending() {
        if log.wait(seen, PATIENCE) > seen {
            let (events, through) = of_runs(log, seen)?;
            choir.tell(&events);
            if let Some(traced) = &mut traced {
                traced.tell(&events, log);
            }
            seen = through;
        }
    }
    runtime.block_on(choir.close());
    if let Some(traced) = traced {
        runtime.block_on(traced.close());
    }
    Ok(())
}

/// Events of runs after a seq, and how far was read.
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
