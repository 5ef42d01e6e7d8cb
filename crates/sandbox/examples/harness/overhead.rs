//! The time of a step beyond its model.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use computer::Computer;
use event_log::{EventLog, decode_event};
use sandbox::open_computer::OpenComputer;
use scripted_model::{ScriptedServer, Wire};
use serde_json::json;
use shared_types::payload::llm::LlmEvent;
use shared_types::{Payload, RunId, Seq, TaskId};

use crate::figures::Figures;
use crate::machine::{agent_services, computer, script, start};

const PATIENCE: Duration = Duration::from_secs(300);
const GLANCE: Duration = Duration::from_millis(2);

/// Runs at once, the steps of each, and what a model takes for a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) runs: usize,
    pub(crate) steps: usize,
    pub(crate) millis: u64,
}

/// What has to be reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OverheadTarget {
    /// One run that has the machine for itself.
    Alone,
    /// Many at once; a run that waits for a second for its turn is taken to starve.
    Crowd,
}

impl OverheadTarget {
    fn words(self) -> &'static str {
        match self {
            Self::Alone => "p50 < 5 ms",
            Self::Crowd => "no error, p99 < 50 ms, no step over 1 s",
        }
    }

    fn is_met(self, sorted: &[i64]) -> bool {
        let is_met = match self {
            Self::Alone => at(sorted, 0.5) < 5,
            Self::Crowd => at(sorted, 0.99) < 50 && at(sorted, 1.0) <= 1000,
        };
        is_met && !sorted.is_empty()
    }
}

pub(crate) fn measure(load: Load, bar: OverheadTarget, figures: &mut Figures) -> Result<()> {
    let Load { runs, steps, millis } = load;
    let folder = tempfile::tempdir()?;
    let server = ScriptedServer::start(script(steps, millis)?);
    let agent_services = agent_services(&server.url(Wire::Anthropic), server.key())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let open_computer = runtime.block_on(OpenComputer::open(computer(folder.path())?, &agent_services))?;
    let started = Instant::now();
    for _ in 0..runs {
        start(open_computer.computer())?;
    }
    wait_until_completed(open_computer.computer(), runs)?;
    let all = started.elapsed();
    let steps = overheads(open_computer.computer())?;
    let told = json!({
        "steps": steps.len(),
        "p50_ms": at(&steps, 0.5),
        "p99_ms": at(&steps, 0.99),
        "most_ms": at(&steps, 1.0),
        "all_ms": all.as_millis() as u64,
    });
    let case = format!("{runs} at once, models that take {millis} ms: a step beyond its model");
    figures.tell(&case, told, bar.words(), bar.is_met(&steps));
    runtime.block_on(open_computer.close());
    Ok(())
}

/// Waits until so many runs are completed. It looks rarely and decodes nothing else, so that it takes little from what
/// is measured.
fn wait_until_completed(computer: &Computer, runs: usize) -> Result<()> {
    let (log, started) = (&**computer.log(), Instant::now());
    let (mut seen, mut completed) = (Seq::ZERO, 0);
    while completed < runs {
        if started.elapsed() > PATIENCE {
            bail!("only {completed} of {runs} runs are completed");
        }
        std::thread::sleep(GLANCE);
        let mut failure = None;
        log.scan(seen.next(), &mut |stored| {
            seen = stored.seq;
            match &*stored.name {
                "run.complete" => completed += 1,
                "run.fail" | "run.pause" => {
                    failure = Some(format!("a run is not completed: {}", stored.payload))
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        if let Some(failure) = failure {
            bail!(failure);
        }
    }
    Ok(())
}

/// Milliseconds of each step beyond its model: from one reply of an agent's to its next, without the model's own time.
fn overheads(computer: &Computer) -> Result<Vec<i64>> {
    let log = &**computer.log();
    let mut last: HashMap<(Option<RunId>, TaskId), i64> = HashMap::new();
    let mut steps = Vec::new();
    log.scan(Seq(1), &mut |stored| {
        if let Ok(event) = decode_event(log, stored)
            && let Payload::Llm(LlmEvent::Reply(p)) = &event.payload
            && let Some(before) = last.insert((event.run_id, p.task), event.ts.millis())
            && !p.calls.is_empty()
            && p.calls.iter().all(|call| &*call.tool == "read")
        {
            steps.push(event.ts.millis() - before - i64::try_from(p.millis).unwrap_or_default());
        }
        ControlFlow::Continue(())
    })?;
    steps.sort_unstable();
    Ok(steps)
}

fn at(sorted: &[i64], share: f64) -> i64 {
    sorted.get(((sorted.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default()
}
