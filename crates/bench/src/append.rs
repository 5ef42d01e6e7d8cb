//! Append: decide, validate, hash, commit with a flush, acknowledge; against bare group commit.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use anyhow::Context;
use event_log::SqliteLog;
use event_log::writer::{ChangeRequest, Mode, Options, Origin, Submission, Writer};
use kernel::{Action, Base};
use shared_types::payload::file::FileNode;
use shared_types::{Actor, CommandId, ContentRef, OpId, Source};

use super::closed_loop::{Round, closed_loop};
use super::figures::{median, rounded};
use super::history::{Prng, now, path, user};
use super::reference::{GroupCommit, Rows, recorded_rows};
use super::{CaseResult, Scale};

const PATHS: u64 = 1000;
const FILE_SIZE: usize = 200;
const BAR: &str = "ratio >= 0.9, p99_ratio <= 2";

struct Case {
    writers: usize,
    commands: usize,
}

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let (rounds, share) = match scale {
        Scale::Full => (9, 1),
        Scale::Quick => (2, 20),
    };
    for (writers, commands) in [(1, 3_000), (64, 40_000), (512, 60_000)] {
        let case = Case { writers, commands: commands / share };
        emit(&case.measure(rounds, folder)?);
    }
    Ok(())
}

impl Case {
    fn measure(&self, rounds: usize, folder: &Path) -> anyhow::Result<CaseResult> {
        let rows = self.record(&folder.join("recorded"))?;
        let (mut ours, mut reference) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // The order may matter to the disk, so they take turns in going first.
            for first in [true, false] {
                let place = folder.join("round");
                if (round % 2 == 0) == first {
                    ours.push(self.ours(&place)?);
                } else {
                    reference.push(self.reference(&place, rows.clone())?);
                }
                std::fs::remove_dir_all(&place)?;
            }
        }
        let rate = |all: &[Round]| median(all.iter().map(|round| round.per_second).collect());
        let p99 = |all: &[Round]| median(all.iter().map(|round| round.p99_ms).collect());
        let plural = if self.writers == 1 { "writer" } else { "writers" };
        let case = format!("{} {plural}", self.writers);
        let mut line = CaseResult::new("append", case, rate(&ours), rate(&reference), "events/s")
            .p99(p99(&ours), p99(&reference));
        // What slows the machine for a while slows both of a round, so they are compared round by round.
        let by_round = ours.iter().zip(&reference).map(|(ours, other)| ours.per_second / other.per_second);
        line.ratio = rounded(median(by_round.collect()));
        let met = line.ratio >= 0.9 && line.p99_ratio.is_some_and(|ratio| ratio <= 2.0);
        // A single writer has no target: it waits for every flush alone.
        Ok(if self.writers == 1 { line } else { line.bar(BAR, met) })
    }

    /// The rows that the commands lead to, as one log recorded them.
    fn record(&self, folder: &Path) -> anyhow::Result<Vec<Rows>> {
        let (writer, thread) = start_writer(folder)?;
        let (answered, answers) = mpsc::channel();
        for submission in self.submissions()? {
            let answered = answered.clone();
            writer.submit_with(submission, Mode::Commit, move |answer| drop(answered.send(answer)));
        }
        for answer in answers.into_iter().take(self.commands) {
            answer?;
        }
        let rows = recorded_rows(folder)?;
        drop(writer);
        join(thread)?;
        std::fs::remove_dir_all(folder)?;
        Ok(rows)
    }

    fn ours(&self, folder: &Path) -> anyhow::Result<Round> {
        let (writer, thread) = start_writer(folder)?;
        let jobs: Vec<_> = self.submissions()?.into_iter().map(|job| Mutex::new(Some(job))).collect();
        let round = closed_loop(self.writers, self.commands, &|job| {
            let submission = jobs[job].lock().unwrap_or_else(PoisonError::into_inner).take();
            let outcome = writer.submit(submission.context("every job is done once")?, Mode::Commit)?;
            anyhow::ensure!(outcome.appended.is_some(), "every command of the load writes an event");
            Ok(())
        })?;
        // Closing the database takes time too, which must not fall into the next round.
        drop(writer);
        join(thread)?;
        Ok(round)
    }

    fn reference(&self, folder: &Path, rows: Vec<Rows>) -> anyhow::Result<Round> {
        let (group_commit, thread) = GroupCommit::start(folder, rows)?;
        let round = closed_loop(self.writers, self.commands, &|_| group_commit.commit_next())?;
        drop(group_commit);
        join(thread)?;
        Ok(round)
    }

    /// Mostly small files, each with bytes of its own, and some settings.
    fn submissions(&self) -> anyhow::Result<Vec<Submission>> {
        let mut dice = Prng::new(self.writers as u64);
        (0..self.commands).map(|number| submission(&mut dice, number)).collect()
    }
}

fn submission(dice: &mut Prng, number: usize) -> anyhow::Result<Submission> {
    let mut contents = Vec::new();
    let action = if number.is_multiple_of(10) {
        let key = format!("bench.setting-{}", dice.below(100)).into();
        Action::SetSetting { key, value: number.into() }
    } else {
        let bytes = dice.text(FILE_SIZE);
        let content = ContentRef::of(&bytes);
        contents.push((content.hash, bytes));
        let node = FileNode::file(content, FileNode::DEFAULT_MODE);
        Action::WriteFile { path: path(dice.below(PATHS))?, node, base: Base::Any }
    };
    Ok(Submission::new(
        Origin::new(
            CommandId::mint(now(), dice.bits()),
            OpId::mint(now(), dice.bits()),
            Source::User,
            Actor::CLI,
        ),
        ChangeRequest::Do(action),
        contents,
    ))
}

fn start_writer(folder: &Path) -> anyhow::Result<(Writer, JoinHandle<()>)> {
    let log = SqliteLog::create(folder, user()?)?;
    let options = Options::new(now);
    Ok(Writer::start(Arc::new(log), options)?)
}

fn join(thread: JoinHandle<()>) -> anyhow::Result<()> {
    thread.join().map_err(|_| anyhow::anyhow!("a thread of the benchmark panicked"))
}
