//! `choir log`: events, filtered, newest last, and as they happen.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use event_log::{EventLog, ReadError, Subscription, decode_event};
use shared_types::payload::file::FileChange;
use shared_types::{Event, FilePath, Payload, Seq, StoredEvent, Timestamp};

use super::Context;
use crate::cli::Log;
use crate::render::{self, Style, line, safe, short};
use computer::error::{ComputerError, ErrorCode};
use computer::ids;

/// How long one wait for new events lasts before the loop checks whether to stop.
const WAIT_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn run(context: &Context, args: &Log) -> Result<()> {
    let log = Arc::new(context.reading()?);
    let filter = Filter::new(context, args, &*log)?;
    let head = log.head().seq;
    let limit = if args.all { usize::MAX } else { args.limit };
    let shown = past(&*log, &filter, limit, context.style);
    if let Err(e) = shown {
        return Err(ComputerError::from(e).into());
    }
    if !args.follow {
        return Ok(());
    }
    let mut subscription = Subscription::new(Arc::clone(&log) as Arc<dyn EventLog>, head);
    loop {
        for stored in subscription.next(WAIT_TIMEOUT).map_err(ComputerError::from)? {
            if let Some(event) = filter.take(&*log, &stored).map_err(ComputerError::from)? {
                show(context.style, &stored, &event);
            }
        }
    }
}

/// The newest events that match. Events before a break in the chain are printed before the break is reported.
fn past(log: &dyn EventLog, filter: &Filter, limit: usize, style: Style) -> Result<(), ReadError> {
    let from = if filter.is_open() { Seq(log.head().seq.0.saturating_sub(limit as u64) + 1) } else { Seq(1) };
    let mut newest: VecDeque<(StoredEvent<'static>, Event)> = VecDeque::new();
    let mut failure = None;
    let scanned = log.scan(from, &mut |stored| {
        match filter.take(log, stored) {
            Ok(Some(event)) if limit == usize::MAX => show(style, stored, &event),
            Ok(Some(event)) => {
                if newest.len() == limit {
                    newest.pop_front();
                }
                newest.push_back((stored.clone().into_owned(), event));
            }
            Ok(None) => {}
            Err(e) => {
                failure = Some(e);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    for (stored, event) in &newest {
        show(style, stored, event);
    }
    scanned?;
    failure.map_or(Ok(()), Err)
}

fn show(style: Style, stored: &StoredEvent<'_>, event: &Event) {
    if style.is_json() {
        return render::json(stored);
    }
    let seq = format!("{:>6}", stored.seq);
    let who = format!("{}/{}", stored.source, stored.actor);
    line(&format!(
        "{} {} {} {} {}",
        style.paint("33", &seq),
        style.dim(&render::time(stored.ts)),
        style.dim(&short(&stored.op)),
        style.paint("36", &format!("{:<18}", safe(&who))),
        safe(&projector::label(&event.payload))
    ));
}

struct Filter {
    path: Option<FilePath>,
    op: Option<String>,
    name: Option<String>,
    since: Option<Timestamp>,
}

impl Filter {
    fn new(context: &Context, args: &Log, log: &dyn EventLog) -> Result<Self> {
        let path = args.path.as_ref().map(|path| context.paths()?.path(path)).transpose()?;
        let name = args.name.as_ref().map(|name| shared_types::EventName::parse(name)).transpose();
        let name = name.map_err(|e| ComputerError::new(ErrorCode::BadRequest, e.to_string()))?;
        let op = match &args.op {
            Some(text) => Some(super::show::find(log, text)?.to_string()),
            None => None,
        };
        let since = args.since.as_deref().map(|text| since(text, ids::now())).transpose()?;
        Ok(Self { path, op, name: name.map(|n| n.to_string()), since })
    }

    /// True if every event matches, so that only the end of the log must be read.
    fn is_open(&self) -> bool {
        self.path.is_none() && self.op.is_none() && self.name.is_none() && self.since.is_none()
    }

    fn take(&self, log: &dyn EventLog, stored: &StoredEvent<'_>) -> Result<Option<Event>, ReadError> {
        let by_name = self.name.as_ref().is_none_or(|name| {
            stored.name == *name || stored.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        });
        let by_time = self.since.is_none_or(|since| stored.ts >= since);
        let by_op = self.op.as_ref().is_none_or(|op| stored.op.to_string() == *op);
        if !(by_name && by_time && by_op) {
            return Ok(None);
        }
        let event = decode_event(log, stored)?;
        Ok(self.path.as_ref().is_none_or(|path| touches(&event, path)).then_some(event))
    }
}

fn touches(event: &Event, path: &FilePath) -> bool {
    let Payload::File(file) = &event.payload else { return false };
    file.changes().iter().any(|change| match change {
        FileChange::Write(p) => p.path.is_within(path),
        FileChange::Delete(p) => p.path.is_within(path),
        FileChange::Move(p) => p.from.is_within(path) || p.to.is_within(path),
    })
}

/// A moment, as a span before now or as a date in local time.
fn since(text: &str, now: Timestamp) -> Result<Timestamp> {
    if let Ok(span) = text.parse::<jiff::SignedDuration>() {
        let millis = i64::try_from(span.abs().as_millis()).unwrap_or(i64::MAX);
        return Ok(Timestamp::from_millis(now.millis().saturating_sub(millis)));
    }
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok()) {
        return Ok(Timestamp::from_millis(now.millis().saturating_sub(days.saturating_mul(86_400_000))));
    }
    let zone = jiff::tz::TimeZone::system();
    let moment = text
        .parse::<jiff::Timestamp>()
        .ok()
        .or_else(|| {
            text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(zone.clone()).ok().map(|z| z.timestamp())
        })
        .or_else(|| text.parse::<jiff::civil::Date>().ok()?.to_zoned(zone).ok().map(|z| z.timestamp()));
    match moment {
        Some(at) => Ok(Timestamp::from_millis(at.as_millisecond())),
        None => bail!(ComputerError::new(
            ErrorCode::BadRequest,
            format!("--since {text:?}: expected 90s, 2h, 3d, 2026-11-15 or 2026-11-15T08:00")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_spans_and_dates_and_names_what_it_does_not() {
        let now = Timestamp::from_millis(1_000_000_000);
        assert_eq!(since("90s", now).unwrap().millis(), 1_000_000_000 - 90_000);
        assert_eq!(since("2h", now).unwrap().millis(), 1_000_000_000 - 7_200_000);
        assert_eq!(since("3d", now).unwrap().millis(), 1_000_000_000 - 259_200_000);
        assert_eq!(since("1970-01-02T00:00:00Z", now).unwrap().millis(), 86_400_000);
        assert!(since("2026-11-15", now).is_ok());
        assert!(since("yesterday-ish", now).unwrap_err().to_string().contains("yesterday-ish"));
    }
}
