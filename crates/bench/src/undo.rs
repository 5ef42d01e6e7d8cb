//! Undo of an operation on ten files, committed through the writer, in logs of different length.
//!
//! The reference is the same undo in the shortest log: the cost must be that of the operation, not of the history.

use std::path::Path;

use event_log::writer::{ChangeRequest, Mode, Options, Origin, Submission, Writer};
use kernel::command::OutsideEdit;
use kernel::{Action, Resolutions};
use shared_types::payload::file::FileNode;
use shared_types::{Actor, CommandId, ContentHash, ContentRef, FilePath, OpId, Source};

use super::figures::{median, milliseconds, timed};
use super::history::{Prng, build, now};
use super::{CaseResult, Scale};

const FILES: usize = 10;
const FILE_SIZE: usize = 2_000;
const BAR: &str = "ratio <= 2, ours < 50 ms";

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let (share, rounds) = match scale {
        Scale::Full => (1, 101),
        Scale::Quick => (20, 11),
    };
    let mut computers = Vec::new();
    for (case, events, paths) in [
        ("1k events", 1_000, 1_000),
        ("100k events", 100_000 / share, 10_000),
        ("1M events", 1_000_000 / share, 50_000),
    ] {
        computers.push(Computer::start(case, &folder.join(case), events, paths)?);
    }
    // Round by round through all logs, so that a slow moment of the disk is not one log's alone.
    for _ in 0..rounds {
        for computer in &mut computers {
            computer.change_and_undo()?;
        }
    }
    let times: Vec<_> =
        computers.into_iter().map(|computer| (computer.case, median(computer.times))).collect();
    let reference = times.first().map_or(f64::NAN, |(_, time)| *time);
    for (case, time) in times {
        let line = CaseResult::new("undo", case, time, reference, "ms");
        let met = line.ratio <= 2.0 && line.ours < 50.0;
        emit(&line.bar(BAR, met));
    }
    Ok(())
}

struct Computer {
    case: &'static str,
    writer: Writer,
    dice: Prng,
    /// Files that the history wrote and that are edited and undone here.
    files: Vec<(FilePath, FileNode)>,
    times: Vec<f64>,
}

impl Computer {
    fn start(case: &'static str, folder: &Path, events: u64, paths: u64) -> anyhow::Result<Self> {
        let log = build(folder, events, paths)?;
        let (writer, _) = Writer::start(log, Options::new(now))?;
        let files = writer.inspect(|view| {
            let sorted = view.files.sorted();
            let step = (sorted.len() / FILES).max(1);
            let chosen = sorted.into_iter().step_by(step).take(FILES);
            chosen.map(|(path, node)| (path.clone(), node.clone())).collect()
        })?;
        Ok(Self { case, writer, dice: Prng::new(events), files, times: Vec::new() })
    }

    fn change_and_undo(&mut self) -> anyhow::Result<()> {
        let mut edits = Vec::new();
        let mut contents = Vec::new();
        for (path, node) in &self.files {
            let bytes = self.dice.text(FILE_SIZE);
            let content = ContentRef::of(&bytes);
            contents.push((content.hash, bytes));
            let now = Some(FileNode::file(content, FileNode::DEFAULT_MODE));
            edits.push(OutsideEdit { path: path.clone(), base: Some(node.clone()), now });
        }
        let change = self.submission(ChangeRequest::Do(Action::CaptureEdits { edits }), contents);
        let target = change.origin.op;
        let changed = self.writer.submit(change, Mode::Commit)?;
        anyhow::ensure!(changed.decision.events.len() == FILES, "the operation changes ten files");

        let undo =
            self.submission(ChangeRequest::Undo { target, resolutions: Resolutions::default() }, Vec::new());
        let (undone, time) = timed(|| self.writer.submit(undo, Mode::Commit));
        anyhow::ensure!(undone?.decision.events.len() == FILES + 1, "the undo brings ten files back");
        self.times.push(milliseconds(time));
        Ok(())
    }

    fn submission(&mut self, change: ChangeRequest, contents: Vec<(ContentHash, Vec<u8>)>) -> Submission {
        Submission::new(
            Origin::new(
                CommandId::mint(now(), self.dice.bits()),
                OpId::mint(now(), self.dice.bits()),
                Source::User,
                Actor::CLI,
            ),
            change,
            contents,
        )
    }
}
