//! Tool calls: started, held, ended. The id of a call is that of its operation, so a call is undone as one.

use shared_types::OpId;
use shared_types::payload::tool::{ToolCall, ToolHold, ToolReport, ToolRequest, ToolResult, ToolStatus};

use super::capture::{Winner, capture};
use super::runs::check_working;
use super::{Draft, check_text};
use crate::command::{Command, Contents, OutsideEdit};
use crate::view::{Call, CallState};
use crate::{Rejection, View};

/// A title is one line of a list.
const TITLE_LIMIT: u64 = 500;
/// Longer notes are cut, and more notes are left out, so that a call can always end.
const NOTE_LENGTH: usize = 1000;
const NOTES: usize = 100;

pub(super) fn start(
    view: &View,
    draft: &mut Draft,
    command: &Command,
    call: &ToolCall,
) -> Result<(), Rejection> {
    check_text("a tool's name", &call.tool, 64)?;
    check_text("a call's title", &call.title, TITLE_LIMIT)?;
    if call.title.contains('\n') {
        let reason = "it has more than one line".into();
        return Err(Rejection::Invalid { what: "a call's title", reason });
    }
    if is_used(view, command.origin.op) {
        return Err(Rejection::CallTaken { call: command.origin.op });
    }
    match (command.origin.run_id, call.task) {
        (Some(run), Some(task)) => check_working(view, run, task, command.origin.op)?,
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            let reason = "a run's calls are made by its agents, and an agent's in its run".into();
            return Err(Rejection::Invalid { what: "a call", reason });
        }
    }
    draft.event(call.clone());
    Ok(())
}

/// Whether the view knows an operation with this id. A view holds no history, so the writer also asks the log.
fn is_used(view: &View, op: OpId) -> bool {
    view.calls.contains(&op)
        || view.undone.contains(&op)
        || view.computer.last_file_change.is_some_and(|(_, last)| last == op)
}

pub(super) fn request(
    view: &View,
    draft: &mut Draft,
    op: OpId,
    call: OpId,
    request: &ToolRequest,
) -> Result<(), Rejection> {
    if op != call {
        let reason = "it is not that of the operation".into();
        return Err(Rejection::Invalid { what: "a request's call", reason });
    }
    open(view, call)?;
    check_text("a request's method", &request.method, 32)?;
    check_text("a request's host", &request.host, 255)?;
    draft.event(ToolRequest { reason: request.reason.as_deref().map(cut), ..request.clone() });
    Ok(())
}

pub(super) fn hold(view: &View, draft: &mut Draft, call: OpId, held: ToolHold) -> Result<(), Rejection> {
    match open(view, call)?.state {
        CallState::Running => draft.event(ToolHold { report: bounded(&held.report, Vec::new()), ..held }),
        CallState::Held => return Err(Rejection::CallIsHeld { call }),
    }
    Ok(())
}

pub(super) fn finish(
    view: &View,
    draft: &mut Draft,
    call: OpId,
    status: &ToolStatus,
    report: &ToolReport,
    edits: &[OutsideEdit],
    contents: &Contents,
) -> Result<(), Rejection> {
    open(view, call)?;
    answer(view, draft, status, report, edits, contents)
}

/// Records the result of a call that was open or is made at once.
pub(super) fn answer(
    view: &View,
    draft: &mut Draft,
    status: &ToolStatus,
    report: &ToolReport,
    edits: &[OutsideEdit],
    contents: &Contents,
) -> Result<(), Rejection> {
    let took_nothing = matches!(status, ToolStatus::Discarded | ToolStatus::Interrupted { .. });
    if took_nothing && !edits.is_empty() {
        let reason = "a call that was discarded or interrupted changes nothing".into();
        return Err(Rejection::Invalid { what: "a call's result", reason });
    }
    let clashes = capture(view, draft, edits, contents, Winner::Log)?;
    let status = match status {
        ToolStatus::Failed { reason } => ToolStatus::Failed { reason: cut(reason) },
        ToolStatus::Interrupted { reason } => ToolStatus::Interrupted { reason: cut(reason) },
        ToolStatus::Exited { .. }
        | ToolStatus::Killed { .. }
        | ToolStatus::Stopped { .. }
        | ToolStatus::Discarded => status.clone(),
    };
    draft.last = Some(ToolResult { status, report: bounded(report, clashes) }.into());
    Ok(())
}

fn open(view: &View, call: OpId) -> Result<&Call, Rejection> {
    view.calls.get(&call).ok_or(Rejection::NoSuchCall { call })
}

/// The report as it is recorded: with the notes about clashes, within the limits.
fn bounded(report: &ToolReport, clashes: Vec<String>) -> ToolReport {
    let mut limits = report.limits.clone();
    limits.sort_unstable();
    limits.dedup();
    let total = report.notes.len() + clashes.len();
    let all = report.notes.iter().map(|note| &**note).chain(clashes.iter().map(String::as_str));
    let mut notes: Vec<Box<str>> = all.take(NOTES).map(cut).collect();
    if total > NOTES {
        notes.push(format!("{} more notes are left out", total - NOTES).into());
    }
    ToolReport { limits, notes, ..report.clone() }
}

fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(NOTE_LENGTH)].into()
}
