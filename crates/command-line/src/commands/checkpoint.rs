//! `choir checkpoint`: make, list, compare, restore.

use anyhow::{Result, bail};
use event_log::EventLog;
use projector::Views;
use projector::query::CheckpointRow;
use shared_types::{Seq, Timestamp};

use super::{Context, diff};
use crate::cli::{Checkpoint, CheckpointAction};
use crate::render::{done, json, line, safe, time};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::Request;

pub(crate) fn run(context: &Context, args: &Checkpoint) -> Result<()> {
    match &args.action {
        None => {
            let message = args.message.clone().unwrap_or_else(|| "Checkpoint".into());
            let answer = context.change(Request::Checkpoint { message }, &mut std::io::empty())?;
            done(context.style, "saved", &answer);
            Ok(())
        }
        Some(CheckpointAction::List) => list(context),
        Some(CheckpointAction::Diff { from, to }) => {
            let rows = rows(context)?;
            let log = context.reading()?;
            let from = find(&rows, from)?;
            let to = to.as_deref().map_or(Ok(log.head().seq), |to| find(&rows, to))?;
            diff::between(context, &log, from, to, false)
        }
        Some(CheckpointAction::Restore { commit, preview }) => {
            let seq = find(&rows(context)?, commit)?;
            let answer =
                context.change(Request::Restore { seq, preview: *preview }, &mut std::io::empty())?;
            done(context.style, if *preview { "restore" } else { "restored" }, &answer);
            Ok(())
        }
    }
}

fn rows(context: &Context) -> Result<Vec<CheckpointRow>> {
    context.ask(Request::Status, &mut std::io::empty())?;
    let views = Views::open_read_only(&context.paths()?.state).map_err(ComputerError::from)?;
    Ok(views.checkpoints().map_err(ComputerError::from)?)
}

fn list(context: &Context) -> Result<()> {
    let rows = rows(context)?;
    if context.style.is_json() {
        for row in &rows {
            json(&serde_json::json!({
                "commit": row.commit, "seq": row.seq, "ts": row.ts, "message": row.message,
            }));
        }
        return Ok(());
    }
    if rows.is_empty() {
        line("no checkpoint yet; create one with: choir checkpoint -m 'why'");
    }
    for row in &rows {
        line(&format!(
            "{} {} event {:<6} {}",
            context.style.paint("33", &row.commit[..12.min(row.commit.len())]),
            context.style.dim(&time(Timestamp::from_millis(row.ts))),
            row.seq.0,
            safe(&row.message)
        ));
    }
    Ok(())
}

fn find(rows: &[CheckpointRow], part: &str) -> Result<Seq> {
    let mut seqs: Vec<Seq> = rows
        .iter()
        .filter(|row| part.len() >= 4 && row.commit.starts_with(part))
        .map(|row| row.seq)
        .collect();
    seqs.dedup();
    match seqs.as_slice() {
        [seq] => Ok(*seq),
        [] => bail!(ComputerError::new(
            ErrorCode::NotFound,
            format!(
                "there is no checkpoint {part} (four digits or more); list them with: choir checkpoint list"
            )
        )),
        _ => bail!(ComputerError::new(
            ErrorCode::BadRequest,
            format!("several checkpoints match {part}; give more digits")
        )),
    }
}
