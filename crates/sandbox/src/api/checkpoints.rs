//! Checkpoints, and the differences between two events.

use axum::Json;
use event_log::EventLog;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::{ChangeResult, Checkpoint, Comparison, NewCheckpoint};
use shared_types::{FilePath, Seq, Timestamp};

use super::CurrentComputer;
use super::change::ChangeContext;
use super::problem::{Body, Params, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::Request;
use computer::{differences, unified};

/// How many changes are listed, and how many of them with their diffs.
const MAX_LISTED_CHANGES: usize = 1000;
const MAX_DIFFS: usize = 200;

pub(super) async fn list(open_computer: CurrentComputer) -> Result<Json<Vec<Checkpoint>>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    let rows = blocking(move || Ok(open_computer.views().checkpoints()?)).await?;
    let checkpoint = |row: projector::query::CheckpointRow| Checkpoint {
        commit: row.commit,
        seq: row.seq,
        ts: Timestamp::from_millis(row.ts),
        message: row.message,
    };
    Ok(Json(rows.into_iter().map(checkpoint).collect()))
}

pub(super) async fn make(
    change: ChangeContext,
    Body(new): Body<NewCheckpoint>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.apply(Request::Checkpoint { message: new.message }).await?))
}

/// Two events, and a path to restrict the comparison to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareQuery {
    from: Seq,
    to: Option<Seq>,
    path: Option<FilePath>,
}

pub(super) async fn compare(
    open_computer: CurrentComputer,
    Params(query): Params<CompareQuery>,
) -> Result<Json<Comparison>, RouteError> {
    let open_computer = open_computer.0;
    Ok(Json(blocking(move || comparison(&open_computer, &query)).await?))
}

fn comparison(open_computer: &OpenComputer, query: &CompareQuery) -> Result<Comparison, ComputerError> {
    let log = &**open_computer.computer().log();
    let head = log.head().seq;
    let to = query.to.unwrap_or(head);
    if query.from.max(to) > head {
        return Err(ComputerError::new(ErrorCode::NotFound, format!("the log ends at event {head}")));
    }
    let mut changes = differences(log, query.from, to)?;
    if let Some(path) = &query.path {
        changes.retain(|change| change.path.is_within(path));
    }
    let total = changes.len() as u64;
    changes.truncate(MAX_LISTED_CHANGES);
    for change in changes.iter_mut().take(MAX_DIFFS) {
        change.diff = unified(log, &|_| None, change.before.as_ref(), change.after.as_ref());
    }
    Ok(Comparison { changes, total })
}
