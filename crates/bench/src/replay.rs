//! Replay: every event of a log, its chain checked, decoded and evolved, and the root; against a bare scan. And
//! what opening a log takes, in time and in memory.

use std::path::Path;
use std::sync::Arc;

use event_log::replay::view_from_nothing;
use event_log::writer::{Options, Writer};
use event_log::{EventLog, SqliteLog};

use super::figures::{median, milliseconds, timed};
use super::history::{build, now};
use super::memory::{self, Subject};
use super::reference::{bare_scan, open_reader, open_writer};
use super::{CaseResult, Scale};

const BAR: &str = "ratio >= 0.4";
const OPEN_BAR: &str = "ours <= 10 ms";
const MEMORY_BAR: &str = "ours < 100 MB";

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let (share, opens) = match scale {
        Scale::Full => (1, 41),
        Scale::Quick => (100, 5),
    };
    let small = folder.join("small");
    let log = build(&small, 1_500, 1_000)?;
    // For so few events only the time from open to ready has a target, in the next line.
    emit(&replay("1500 events", &small, &*log, 41)?);
    drop(log);
    emit(&open(&small, opens)?);

    let middle = folder.join("middle");
    emit(&with_bar(replay("100k events", &middle, &*build(&middle, 100_000 / share, 10_000)?, 9)?));

    let large = folder.join("large");
    let log = build(&large, 1_000_000 / share, 50_000)?;
    emit(&with_bar(replay("1M events", &large, &*log, 5)?));
    drop(log);
    emit(&open_memory(&large)?);
    Ok(())
}

fn replay(case: &str, folder: &Path, log: &dyn EventLog, rounds: usize) -> anyhow::Result<CaseResult> {
    let head = log.head().seq;
    let rate = |seconds: f64| head.0 as f64 / seconds;
    let (mut ours, mut reference) = (Vec::new(), Vec::new());
    let conn = open_reader(folder)?;
    // One round is not measured, so that both sides find the file in the page cache.
    bare_scan(&conn)?;
    for _ in 0..rounds {
        let (scanned, time) = timed(|| bare_scan(&conn));
        anyhow::ensure!(scanned?.0 == head.0, "the scan reads every event");
        reference.push(rate(time.as_secs_f64()));
        let (root, time) = timed(|| view_from_nothing(log, head).map(|mut view| (view.seq(), view.root())));
        anyhow::ensure!(root?.0 == head, "the replay reaches the head");
        ours.push(rate(time.as_secs_f64()));
    }
    Ok(CaseResult::new("replay", case, median(ours), median(reference), "events/s"))
}

fn with_bar(line: CaseResult) -> CaseResult {
    let met = line.ratio >= 0.4;
    line.bar(BAR, met)
}

/// The time from a closed log to one that accepts commands, against opening and scanning the database.
fn open(folder: &Path, rounds: usize) -> anyhow::Result<CaseResult> {
    let (mut ours, mut reference) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (scanned, time) = timed(|| bare_scan(&open_writer(folder)?));
        scanned?;
        reference.push(milliseconds(time));
        let (opened, time) = timed(|| -> anyhow::Result<_> {
            let log = Arc::new(SqliteLog::open(folder)?);
            Ok(Writer::start(log, Options::new(now))?)
        });
        let (writer, thread) = opened?;
        ours.push(milliseconds(time));
        // The lock is free again when the writer's thread has ended.
        drop(writer);
        thread.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?;
    }
    let line = CaseResult::new("replay", "open 1500", median(ours), median(reference), "ms");
    let met = line.ours <= 10.0;
    Ok(line.bar(OPEN_BAR, met))
}

fn open_memory(folder: &Path) -> anyhow::Result<CaseResult> {
    let ours = memory::measure(folder, Subject::Ours)?;
    let reference = memory::measure(folder, Subject::Reference)?;
    let line = CaseResult::new("replay", "memory 1M", ours, reference, "MB");
    let met = line.ours < 100.0;
    Ok(line.bar(MEMORY_BAR, met))
}
