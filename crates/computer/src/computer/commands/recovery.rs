//! Recovery after an unclean stop: calls without a result, and layers that are not needed any more.

use std::fs;
use std::path::Path;

use crate::ReadPolicy;
use event_log::writer::{ChangeRequest, Mode};
use kernel::{Action, Call, CallState};
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{Actor, OpId};

use super::ignored;
use crate::cells::{cells_dir, layer_dir};
use crate::computer::{AgentCaller, Caller, Computer};
use crate::error::ComputerError;

/// Recovers all calls and layers. No command can be running: it ends with the process that started it.
pub(crate) fn recover_calls(computer: &Computer) -> Result<(), ComputerError> {
    let open: Vec<(OpId, Call)> = computer
        .writer()
        .inspect(|view| view.calls.iter().map(|(op, call)| (*op, call.clone())).collect())?;
    for (op, call) in &open {
        match call.state {
            // It had no effect, and the agent repeats the call.
            CallState::Running if !call.network && run_will_retry(computer, call)? => {}
            CallState::Running => interrupt(computer, *op, call)?,
            CallState::Held => {}
        }
    }
    let is_held = |op: &OpId| open.iter().any(|(held, call)| held == op && call.state == CallState::Held);
    for entry in fs::read_dir(cells_dir(&computer.paths)).into_iter().flatten().flatten() {
        let op = entry.file_name().to_str().and_then(|name| name.parse::<OpId>().ok());
        if op.as_ref().is_some_and(is_held) {
            continue;
        }
        // A layer that cannot be removed must not prevent the computer from opening.
        if let Err(e) = clear_layer(computer, op, &entry.path()) {
            tracing::warn!(folder = %entry.path().display(), error = %e, "the layer of a command could not be removed");
        }
    }
    Ok(())
}

/// Whether the run of a call is still open and will repeat it.
fn run_will_retry(computer: &Computer, call: &Call) -> Result<bool, ComputerError> {
    let Some(run) = call.run else { return Ok(false) };
    Ok(computer.writer().inspect(move |view| view.runs.contains(&run))?)
}

/// If the call has a result, its ignored files may still have to be moved. Any other layer is deleted.
fn clear_layer(computer: &Computer, op: Option<OpId>, layer: &Path) -> Result<(), ComputerError> {
    if let Some(op) = op
        && computer.call_completed(op)?
    {
        ignored::apply_plan(&computer.paths, op, computer.cells().settings().trash)?;
    }
    Ok(isolation::layer::remove(layer)?)
}

/// The status of a command that was running when the computer stopped.
pub(super) fn interrupted_status() -> ToolStatus {
    ToolStatus::Interrupted { reason: "the computer stopped while it ran; nothing of it was kept".into() }
}

pub(crate) fn interrupt(computer: &Computer, op: OpId, call: &Call) -> Result<(), ComputerError> {
    let status = interrupted_status();
    let action = Action::FinishCall { status, report: ToolReport::default(), edits: Vec::new() };
    // Before anything else, because the layer may be what fills the disk. If this fails, it is retried with the rest.
    let _ = isolation::layer::remove(&layer_dir(&computer.paths, op));
    let read_policy = ReadPolicy::nothing();
    let agent =
        call.run.zip(call.task).map(|(run, task)| AgentCaller { run, task, read_policy, time_left: None });
    let mut caller = Caller::system(Actor::CELLS).with_op(op);
    caller.origin.run_id = call.run;
    caller.agent = agent;
    computer.submit(&caller, ChangeRequest::Do(action), Vec::new(), Mode::Commit)?;
    Ok(())
}
