//! `choir diff`: compares the files at two events.

use anyhow::{Result, bail};
use event_log::EventLog;
use shared_types::Seq;

use super::Context;
use crate::cli::Diff;
use crate::render::{self, json, line};
use computer::error::{ComputerError, ErrorCode};
use computer::{differences, unified};

pub(crate) fn run(context: &Context, args: &Diff) -> Result<()> {
    let log = context.reading()?;
    let (from, to) = parse(&args.range, log.head().seq)?;
    between(context, &log, from, to, args.names)
}

/// Shows what differs between two seqs.
pub(crate) fn between(context: &Context, log: &dyn EventLog, from: Seq, to: Seq, names: bool) -> Result<()> {
    let head = log.head().seq;
    if from.max(to) > head {
        bail!(ComputerError::new(ErrorCode::NotFound, format!("the log ends at event {head}")));
    }
    let mut changed = differences(log, from, to).map_err(ComputerError::from)?;
    if !names {
        for change in &mut changed {
            change.diff = unified(log, &|_| None, change.before.as_ref(), change.after.as_ref());
        }
    }
    if context.style.is_json() {
        changed.iter().for_each(json);
        return Ok(());
    }
    if changed.is_empty() {
        line(&format!("no file differs between event {from} and event {to}"));
    }
    let total = changed.len() as u64;
    render::changes(context.style, &changed, total);
    Ok(())
}

fn parse(range: &str, head: Seq) -> Result<(Seq, Seq)> {
    let bad = || {
        ComputerError::new(
            ErrorCode::BadRequest,
            format!("{range:?} is not a range: expected FROM..TO, such as 10..20"),
        )
    };
    let (from, to) = range.split_once("..").ok_or_else(bad)?;
    let number =
        |text: &str, empty: Seq| if text.is_empty() { Ok(empty) } else { text.parse().map_err(|_| bad()) };
    Ok((number(from, Seq::ZERO)?, number(to, head)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_end_is_the_beginning_or_now() {
        assert_eq!(parse("3..5", Seq(9)).unwrap(), (Seq(3), Seq(5)));
        assert_eq!(parse("3..", Seq(9)).unwrap(), (Seq(3), Seq(9)));
        assert_eq!(parse("..", Seq(9)).unwrap(), (Seq(0), Seq(9)));
        for bad in ["", "3", "a..b", "3...5", "-1..2"] {
            assert!(parse(bad, Seq(9)).is_err(), "{bad}");
        }
    }
}
