//! `choir show`: one operation with its diff.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use event_log::{EventLog, decode_event};
use shared_types::payload::tool::ToolEvent;
use shared_types::{Event, OpId, Payload, Reversibility, Seq};

use super::Context;
use crate::cli::Show;
use crate::render::{self, json, line, safe};
use computer::error::{ComputerError, ErrorCode};
use computer::{changes, operation_at, other_changes};

pub(crate) fn run(context: &Context, args: &Show) -> Result<()> {
    let log = context.reading()?;
    let op = find(&log, &args.op)?;
    let stored = log.operation(op).map_err(ComputerError::from)?;
    let events: Vec<Event> = stored
        .iter()
        .map(|s| decode_event(&log, s))
        .collect::<Result<_, _>>()
        .map_err(ComputerError::from)?;
    let Some(first) = events.first() else {
        bail!(ComputerError::new(ErrorCode::NotFound, format!("there is no operation {}", args.op)));
    };
    let (changed, total) = changes(&log, &events, &|_| None, true);
    if context.style.is_json() {
        json(&serde_json::json!({ "op": op, "events": stored, "changes": changed, "total": total }));
        return Ok(());
    }
    let is_file = matches!(first.payload, Payload::File(_));
    let more = match events.len() - 1 {
        more if more > 0 && is_file => format!(" and {more} more"),
        _ => String::new(),
    };
    line(&context.style.bold(&format!("{}{more}", safe(&projector::label(&first.payload)))));
    line(&format!("  operation  {op}"));
    line(&format!("  when       {}", render::time(first.ts)));
    line(&format!("  who        {}/{}", first.source, first.actor));
    if let Some(ending) = ending(&events) {
        line(&format!("  ended      {}", safe(&ending)));
    }
    let last = events.last().map_or(first.seq, |event| event.seq);
    line(&format!("  log        {}", render::span(first.seq, last)));
    line(&format!("  undo       {}", undo_words(&events)));
    if !first.taint.is_empty() {
        let labels: Vec<_> = first.taint.iter().map(ToString::to_string).collect();
        line(&format!("  taint      {}", labels.join(", ")));
    }
    for note in other_changes(&events) {
        line(&format!("  {}", safe(&note)));
    }
    render::changes(context.style, &changed, total);
    Ok(())
}

/// The result of the command that made an operation, if a command made it and has ended.
fn ending(events: &[Event]) -> Option<String> {
    let is_end =
        |event: &&Event| matches!(event.payload, Payload::Tool(ToolEvent::Hold(_) | ToolEvent::Result(_)));
    events.iter().rfind(is_end).map(|event| projector::label(&event.payload))
}

fn undo_words(events: &[Event]) -> &'static str {
    let is_mark = |event: &Event| matches!(event.payload, Payload::Revert(_));
    if events.iter().any(|e| e.payload.reversibility() == Reversibility::Reversible && !is_mark(e)) {
        "can be undone"
    } else if events.iter().any(|e| e.payload.reversibility() == Reversibility::Compensable) {
        "cannot be undone, only compensated"
    } else {
        "stays done"
    }
}

/// Finds an operation in the log itself, so that it works without read models.
pub(crate) fn find(log: &dyn EventLog, text: &str) -> Result<OpId> {
    if let Ok(op) = text.parse() {
        return Ok(op);
    }
    if let Some(seq) = text.strip_prefix('@').and_then(|seq| seq.parse::<Seq>().ok()) {
        return Ok(operation_at(log, seq)?);
    }
    let part: String = text.chars().filter(|c| *c != '-').collect::<String>().to_lowercase();
    if part.len() < 4 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
        bail!(ComputerError::new(
            ErrorCode::BadRequest,
            format!("{text:?} is not an operation: give four or more digits of its id, or @SEQ")
        ));
    }
    let mut found: Vec<OpId> = Vec::new();
    let scanned = log.scan(Seq(1), &mut |stored| {
        let id = stored.op.to_string().replace('-', "");
        let shown = &id[id.len().saturating_sub(8)..];
        let fits = id.ends_with(&part) || id.starts_with(&part) || shown.starts_with(&part);
        if fits && !found.contains(&stored.op) {
            found.push(stored.op);
        }
        ControlFlow::Continue(())
    });
    match (found.as_slice(), scanned) {
        ([op], _) => Ok(*op),
        (_, Err(e)) => Err(ComputerError::from(e).into()),
        ([], _) => {
            bail!(ComputerError::new(
                ErrorCode::NotFound,
                format!("there is no operation {text}; list them with: choir log")
            ))
        }
        (_, _) => bail!(ComputerError::new(
            ErrorCode::BadRequest,
            format!("several operations match {text}; give more digits")
        )),
    }
}
