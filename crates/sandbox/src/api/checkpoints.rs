//! Checkpoints, and what differs between two moments.

use axum::Json;
use event_log::EventLog;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::{ChangeResult, Checkpoint, Comparison, NewCheckpoint};
use shared_types::{FilePath, Seq, Timestamp};

use super::Of;
use super::change::Change;
use super::problem::{Body, Params, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::Request;
use computer::{differences, unified};

/// Changes that are listed, and those that are shown with their lines.
const LISTED: usize = 1000;
const SHOWN: usize = 200;

pub(super) async fn list(desk: Of) -> Result<Json<Vec<Checkpoint>>, RouteError> {
    let desk = desk.0;
    desk.caught_up().await;
    let rows = blocking(move || Ok(desk.views().checkpoints()?)).await?;
    let checkpoint = |row: projector::query::CheckpointRow| Checkpoint {
        commit: row.commit,
        seq: row.seq,
        ts: Timestamp::from_millis(row.ts),
        message: row.message,
    };
    Ok(Json(rows.into_iter().map(checkpoint).collect()))
}

pub(super) async fn make(
    change: Change,
    Body(new): Body<NewCheckpoint>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.make(Request::Checkpoint { message: new.message }).await?))
}

/// Two moments, and a path to look at alone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Moments {
    from: Seq,
    to: Option<Seq>,
    path: Option<FilePath>,
}

pub(super) async fn compare(
    desk: Of,
    Params(moments): Params<Moments>,
) -> Result<Json<Comparison>, RouteError> {
    let desk = desk.0;
    Ok(Json(blocking(move || comparison(&desk, &moments)).await?))
}

fn comparison(desk: &OpenComputer, moments: &Moments) -> Result<Comparison, ComputerError> {
    let log = &**desk.computer().log();
    let head = log.head().seq;
    let to = moments.to.unwrap_or(head);
    if moments.from.max(to) > head {
        return Err(ComputerError::new(ErrorCode::NotFound, format!("the log ends at event {head}")));
    }
    let mut changes = differences(log, moments.from, to)?;
    if let Some(path) = &moments.path {
        changes.retain(|change| change.path.is_within(path));
    }
    let total = changes.len() as u64;
    changes.truncate(LISTED);
    for change in changes.iter_mut().take(SHOWN) {
        change.diff = unified(log, &|_| None, change.before.as_ref(), change.after.as_ref());
    }
    Ok(Comparison { changes, total })
}
