//! The timeline: operations, their changes, undo, redo and restore.

use axum::Json;
use event_log::{EventLog, ReadError, decode_event};
use kernel::Choice;
use projector::query::{OperationFilter, OperationRow};
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::{
    ChangeResult, Operation, OperationDetails, Operations, RestoreRequest, RevertOptions, Side,
};
use shared_types::{OpId, Seq, Source, Timestamp};

use super::CurrentComputer;
use super::change::ChangeContext;
use super::problem::{Body, Params, PathParam, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::{Choices, Request};
use computer::{call_details, changes, other_changes};

/// Which operations to list, and how many.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationsQuery {
    /// Only those that ended before this event.
    before: Option<Seq>,
    /// 100 if absent, 1,000 at most.
    limit: Option<u32>,
    offset: Option<u32>,
    source: Option<Source>,
    /// Of events: `file`, `window`, `setting`, `tool` and so on; `work` is all but `window`.
    family: Option<String>,
    /// Text in the label.
    q: Option<String>,
}

pub(super) async fn list(
    open_computer: CurrentComputer,
    Params(query): Params<OperationsQuery>,
) -> Result<Json<Operations>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    let filter = OperationFilter {
        source: query.source.map(|source| source.as_str().to_owned()),
        family: query.family.filter(|family| !family.is_empty()),
        text: query.q.filter(|text| !text.is_empty()),
        before: query.before,
    };
    let (offset, limit) = (query.offset.unwrap_or(0), query.limit.unwrap_or(100).min(1000));
    let (rows, total) = blocking(move || Ok(open_computer.views().page(&filter, offset, limit)?)).await?;
    Ok(Json(Operations { rows: rows.into_iter().map(operation).collect(), total }))
}

fn operation(row: OperationRow) -> Operation {
    Operation {
        op: row.op,
        first: row.first,
        last: row.last,
        ts: Timestamp::from_millis(row.ts),
        // An unknown source cannot be in the log.
        source: Source::parse(&row.source).unwrap_or(Source::System),
        actor: row.actor,
        family: row.family,
        label: row.label,
        events: row.events,
        files: row.files,
        reversible: row.reversible,
        undone: row.undone,
        call: row.call,
        title: row.title,
        reverts: row.reverts,
    }
}

pub(super) async fn show(
    open_computer: CurrentComputer,
    PathParam(op): PathParam<OpId>,
) -> Result<Json<OperationDetails>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    Ok(Json(blocking(move || detail(&open_computer, op)).await?))
}

pub(super) fn detail(open_computer: &OpenComputer, op: OpId) -> Result<OperationDetails, ComputerError> {
    let row = open_computer.views().operation(op)?;
    let Some(row) = row else {
        return Err(ComputerError::new(ErrorCode::NotFound, format!("there is no operation {op}")));
    };
    let log = &**open_computer.computer().log();
    let events: Result<Vec<_>, ReadError> =
        log.operation(op)?.iter().map(|stored| decode_event(log, stored)).collect();
    let events = events?;
    let (mut changes, mut total) = changes(log, &events, &|_| None, true);
    let (mut notes, call) = (other_changes(&events), call_details(log, &events));
    // For an open dry run, a preview of its changes.
    if call.as_ref().is_some_and(|call| call.dry_run_changes.is_some() && call.status.is_none())
        && let Ok(would) = open_computer.commands().preview_dry_run(open_computer.computer(), op)
    {
        (changes, total) = (would.changes, would.total);
        notes.extend(would.notes);
    }
    Ok(OperationDetails { operation: operation(row), changes, total, notes, call })
}

pub(super) fn choices(revert: &RevertOptions) -> Choices {
    let choice = |side: Side| match side {
        Side::Keep => Choice::Keep,
        Side::Take => Choice::Take,
    };
    let each = revert.each.iter().map(|(subject, side)| (subject.clone(), choice(*side)));
    Choices { each: each.collect(), others: revert.others.map(choice) }
}

pub(super) async fn undo(
    change: ChangeContext,
    PathParam(op): PathParam<OpId>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (target, choices) = (Some(op.to_string()), choices(&revert));
    Ok(Json(change.apply(Request::Undo { target, choices, preview: revert.preview }).await?))
}

pub(super) async fn redo(
    change: ChangeContext,
    PathParam(op): PathParam<OpId>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (target, choices) = (Some(op.to_string()), choices(&revert));
    Ok(Json(change.apply(Request::Redo { target, choices, preview: revert.preview }).await?))
}

pub(super) async fn undo_latest(
    change: ChangeContext,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let choices = choices(&revert);
    Ok(Json(change.apply(Request::Undo { target: None, choices, preview: revert.preview }).await?))
}

pub(super) async fn redo_latest(
    change: ChangeContext,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let choices = choices(&revert);
    Ok(Json(change.apply(Request::Redo { target: None, choices, preview: revert.preview }).await?))
}

pub(super) async fn restore(
    change: ChangeContext,
    Body(to): Body<RestoreRequest>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.apply(Request::Restore { seq: to.seq, preview: to.preview }).await?))
}
