//! What an unclean stop left: calls that nobody will answer any more, layers that nobody reads.

use std::fs;

use event_log::writer::{Intent, Mode};
use kernel::{Action, CallState};
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{Actor, OpId};

use super::{folder, folders, ignored};
use crate::computer::{Caller, Computer};
use crate::failure::Failure;

/// Settles all of it. Nothing can run now: a command ends with the process that started it.
pub(crate) fn settle(computer: &Computer) -> Result<(), Failure> {
    let open: Vec<(OpId, CallState)> =
        computer.writer().inspect(|view| view.calls.iter().map(|(op, call)| (*op, call.state)).collect())?;
    for (op, state) in &open {
        match state {
            CallState::Running => interrupt(computer, *op)?,
            CallState::Held => {}
        }
    }
    let is_held = |op: &OpId| open.iter().any(|(held, state)| held == op && *state == CallState::Held);
    for entry in fs::read_dir(folders(&computer.place)).into_iter().flatten().flatten() {
        let op = entry.file_name().to_str().and_then(|name| name.parse::<OpId>().ok());
        if op.as_ref().is_some_and(is_held) {
            continue;
        }
        // An answered call whose ignored files are still on their way; any other layer is of no use.
        if let Some(op) = op
            && computer.call_is_answered(op)?
        {
            ignored::carry_out(&computer.place, op, computer.cells().settings.trash)?;
        }
        isolation::layer::remove(&entry.path())?;
    }
    Ok(())
}

fn interrupt(computer: &Computer, op: OpId) -> Result<(), Failure> {
    let status = ToolStatus::Interrupted {
        reason: "the computer stopped while it ran; nothing of it was kept".into(),
    };
    let action = Action::FinishCall { status, report: ToolReport::default(), edits: Vec::new() };
    let caller = Caller { op, ..Caller::system(Actor::CELLS) };
    computer.submit(&caller, Intent::Do(action), Vec::new(), Mode::Commit)?;
    isolation::layer::remove(&folder(&computer.place, op))?;
    Ok(())
}
