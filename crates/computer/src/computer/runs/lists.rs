//! Lists of runs and grants, the details of a run, and undoing a run.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use event_log::writer::ChangeRequest;
use kernel::run::{OperationStarts, RunPhase};
use projector::query::RunRow;
use shared_types::payload::file::{FileChange, FileNode};
use shared_types::payload::run::{RunComplete, RunEvent, RunStart};
use shared_types::payload::tool::ToolEvent;
use shared_types::wire::{
    ChangeResult, GrantLine, GrantList, RunCost, RunDetails, RunLine, RunList, Step, StepDetail,
};
use shared_types::{Event, FilePath, GrantId, OpId, Payload, RunId, Seq, Timestamp};

use super::run_record::{self, RunRecord, events_of};
use super::steps::{self, StepDescriber};
use super::{Caller, Computer, Progress, display, operation_of, role_model_setting, unique_match};
use crate::computer::{resolutions, reverted};
use crate::error::{ComputerError, ErrorCode};
use crate::protocol::Choices;

/// The number of runs and of steps in one answer.
const RUNS_PER_PAGE: usize = 50;
const STEPS_PER_PAGE: usize = 200;
/// The number of files that are listed as results of a run.
const MAX_RESULTS: usize = 200;

impl Computer {
    /// A run with all its events.
    pub(super) fn run_record(&self, run: RunId) -> Result<RunRecord, ComputerError> {
        let events = events_of(&**self.log(), run, Seq::ZERO)?;
        RunRecord::of(run, events).ok_or_else(|| kernel::Rejection::NoRun { run }.into())
    }

    pub(super) fn is_undone(&self, op: OpId) -> Result<bool, ComputerError> {
        Ok(self.writer.inspect(move |view| view.undone.contains(&op))?)
    }

    /// The calls of a run that are undone.
    pub(super) fn undone_of(&self, record: &RunRecord) -> Result<HashSet<OpId>, ComputerError> {
        let calls = steps::calls(&record.events);
        let undone =
            move |view: &mut kernel::View| calls.into_iter().filter(|op| view.undone.contains(op)).collect();
        Ok(self.writer.inspect(undone)?)
    }

    pub(super) fn run_line(&self, run: RunId) -> Result<RunLine, ComputerError> {
        Ok(self.run_record(run)?.line(self.is_undone(operation_of(run))?))
    }

    /// The newest runs, or those that began before an event.
    pub(super) fn run_list(&self, before: Option<Seq>) -> Result<RunList, ComputerError> {
        let before = before.unwrap_or(Seq(u64::MAX));
        let kept = self.writer.inspect(move |view| {
            let line = |(id, run): (&RunId, &kernel::run::Run)| {
                run_record::line(*id, run, None, view.undone.contains(&operation_of(*id)))
            };
            let mut kept: Vec<RunLine> =
                view.runs.iter().filter(|(_, run)| run.seq < before).map(line).collect();
            kept.sort_unstable_by_key(|line| std::cmp::Reverse(line.seq));
            kept
        })?;
        // The read model lists all runs but lags behind, so the view's entry takes precedence.
        let views = projector::Views::open_read_only(&self.paths.state)?;
        let rows = views.runs(Some(before), RUNS_PER_PAGE as u32 + 1)?;
        let mut runs = kept;
        for row in rows {
            match runs.iter_mut().find(|line| line.run == row.run) {
                Some(line) => line.ended = row.ended.map(Timestamp::from_millis),
                None => runs.push(of_row(row)),
            }
        }
        runs.sort_unstable_by_key(|line| std::cmp::Reverse(line.seq));
        let more = runs.len() > RUNS_PER_PAGE;
        runs.truncate(RUNS_PER_PAGE);
        for line in runs.iter_mut().filter(|line| line.state.is_over() && line.ended.is_none()) {
            line.ended = self.run_record(line.run)?.ended();
        }
        let before = if more { runs.last().map(|line| line.seq) } else { None };
        Ok(RunList { runs, before })
    }

    pub(super) fn run_details(&self, run: RunId) -> Result<RunDetails, ComputerError> {
        let log = &**self.log();
        let record = self.run_record(run)?;
        let describer = StepDescriber::new(log, &record.events, self.undone_of(&record)?);
        let start = find(&record.events, |event| match event {
            RunEvent::Start(p) => Some(p),
            _ => None,
        });
        let complete = find(&record.events, |event| match event {
            RunEvent::Complete(p) => Some(p),
            _ => None,
        });
        // Results from before a rewind do not count.
        let complete = complete.filter(|_| record.run.phase == RunPhase::Completed);
        let shown = |content| display::show(log, content).text;
        let all: Vec<&Event> = record.events.iter().filter(|event| steps::is_step(event)).collect();
        let earlier = all.len().saturating_sub(STEPS_PER_PAGE);
        Ok(RunDetails {
            line: record.line(self.is_undone(operation_of(run))?),
            objective: start.and_then(|RunStart { objective, .. }| shown(objective)).unwrap_or_default(),
            model: record.run.model.as_deref().map(ToOwned::to_owned),
            budget: record.run.budget,
            agents: record.agents(),
            questions: self.questions(Some(run))?.questions,
            steps: all[earlier..].iter().map(|event| describer.step(event)).collect(),
            earlier: earlier as u64,
            summary: complete.and_then(|RunComplete { summary, .. }| shown(summary)),
            results: self.results(&record, complete)?,
        })
    }

    /// The files that a run created or changed and that exist now. Those that the run names as results come first.
    fn results(
        &self,
        record: &RunRecord,
        complete: Option<&RunComplete>,
    ) -> Result<Vec<FilePath>, ComputerError> {
        let named = complete.map(|complete| complete.results.clone()).unwrap_or_default();
        let changed = record.events.iter().filter_map(|event| match &event.payload {
            Payload::File(file) => Some(file.changes()),
            _ => None,
        });
        let made = changed.flat_map(Cow::into_owned).filter_map(|change| match change {
            FileChange::Write(p) => Some(p.path),
            FileChange::Move(p) => Some(p.to),
            FileChange::Delete(_) => None,
        });
        let mut known = BTreeSet::new();
        let paths: Vec<FilePath> =
            named.into_iter().chain(made).filter(|path| known.insert(path.clone())).collect();
        Ok(self.writer.inspect(|view| {
            let is_there = |path: &FilePath| {
                matches!(view.files.get(path), Some(FileNode::File { .. } | FileNode::Symlink { .. }))
            };
            paths.into_iter().filter(is_there).take(MAX_RESULTS).collect()
        })?)
    }

    /// The newest steps of a run, in order, or those before an event.
    pub(super) fn run_steps(&self, run: RunId, before: Option<Seq>) -> Result<Vec<Step>, ComputerError> {
        let record = self.run_record(run)?;
        let describer = StepDescriber::new(&**self.log(), &record.events, self.undone_of(&record)?);
        let wanted = |event: &&Event| steps::is_step(event) && before.is_none_or(|before| event.seq < before);
        let all: Vec<&Event> = record.events.iter().filter(wanted).collect();
        Ok(all[all.len().saturating_sub(STEPS_PER_PAGE)..]
            .iter()
            .map(|event| describer.step(event))
            .collect())
    }

    pub(super) fn step_detail(&self, run: RunId, seq: Seq) -> Result<StepDetail, ComputerError> {
        let record = self.run_record(run)?;
        let is_it = |event: &&Event| event.seq == seq && steps::is_step(event);
        let unknown =
            || ComputerError::new(ErrorCode::NotFound, format!("event {seq} is no step of run {run}"));
        let event = record.events.iter().find(is_it).ok_or_else(unknown)?;
        let is_result = |other: &&Event| {
            other.op == event.op && matches!(other.payload, Payload::Tool(ToolEvent::Result(_)))
        };
        let result = record.events.iter().find(is_result);
        let describer = StepDescriber::new(&**self.log(), &record.events, self.undone_of(&record)?);
        Ok(describer.parts(event, result))
    }

    pub(super) fn model_of_role(&self, role: &str) -> Result<Option<String>, ComputerError> {
        let key = role_model_setting(role);
        Ok(self.writer.inspect(move |view| view.setting(&key)?.as_str().map(str::to_owned))?)
    }

    pub(super) fn grants(&self) -> Result<GrantList, ComputerError> {
        let grants = self.writer.inspect(|view| {
            let line = |(id, grant): (&GrantId, &shared_types::payload::capability::Grant)| GrantLine {
                grant: *id,
                tool: grant.tool.to_string(),
                pattern: grant.pattern.to_string(),
                run: grant.run,
            };
            let mut all: Vec<GrantLine> = view.grants.iter().map(line).collect();
            all.sort_unstable_by_key(|line| line.grant);
            all
        })?;
        Ok(GrantList { grants })
    }

    pub(super) fn grant_named(&self, text: &str) -> Result<GrantId, ComputerError> {
        if let Ok(grant) = text.parse() {
            return Ok(grant);
        }
        let known = self.grants()?.grants.into_iter().map(|line| line.grant).collect();
        unique_match(text, known, "grant")?.ok_or_else(|| {
            ComputerError::new(
                ErrorCode::NoGrant,
                format!("there is no grant {text}; choir approve --grants lists them"),
            )
        })
    }

    /// Undoes all calls of a run as one operation, which has the id of the run.
    pub(super) fn undo_run(
        &self,
        caller: &Caller,
        run: RunId,
        choices: &Choices,
        preview: bool,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let mut calls = match preview {
            true => Vec::new(),
            false => steps::calls(&self.run_record(run)?.events),
        };
        calls.reverse();
        let change = ChangeRequest::UndoRun { run, resolutions: resolutions(choices) };
        let mut done = self.revert_with_ignored_files(caller, change, &calls, preview, progress)?;
        done.target = Some(operation_of(run));
        Ok(done)
    }

    /// Rewinds a run to before a step and resumes it.
    pub(super) fn retry_run(
        &self,
        caller: &Caller,
        run: RunId,
        step: Seq,
        choices: &Choices,
        preview: bool,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let record = self.run_record(run)?;
        let to = steps::turn_of(&record.events, step).ok_or_else(|| {
            ComputerError::new(
                ErrorCode::NotFound,
                format!("event {step} is neither a turn nor a call of an agent in this run"),
            )
        })?;
        let begun = OperationStarts::of(run, &record.events);
        let since: Vec<Event> =
            record.events.iter().filter(|event| begun.of_event(event) >= to).cloned().collect();
        let mut calls = steps::calls(&since);
        calls.reverse();
        let change = ChangeRequest::RetryRun { run, to, resolutions: resolutions(choices) };
        let caller = &caller.clone().in_run(run);
        let mut done = self.revert_with_ignored_files(caller, change, &calls, preview, progress)?;
        done.target = Some(operation_of(run));
        Ok(done)
    }

    pub(super) fn redo_run(
        &self,
        caller: &Caller,
        run: RunId,
        choices: &Choices,
        preview: bool,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        let root = operation_of(run);
        let undone = || {
            let undone_by = self.writer.inspect(move |view| view.undone.get(&root).copied())?;
            undone_by.ok_or_else(|| kernel::Rejection::NotUndone { op: root }.into())
        };
        let target = self.target(caller, reverted, undone)?;
        let change = ChangeRequest::Undo { target, resolutions: resolutions(choices) };
        let mut done = self.revert_with_ignored_files(caller, change, &[target], preview, progress)?;
        done.target = Some(root);
        Ok(done)
    }
}

fn of_row(row: RunRow) -> RunLine {
    RunLine {
        run: row.run,
        title: row.title,
        state: row.state,
        reason: row.reason,
        seq: row.first,
        started: Timestamp::from_millis(row.started),
        ended: row.ended.map(Timestamp::from_millis),
        cost: RunCost { turns: row.steps, tokens: row.tokens, micros: row.micros, unpriced: row.unpriced },
        open_questions: row.asks,
        undone: row.undone,
    }
}

/// The newest event of a kind.
fn find<'e, T>(events: &'e [Event], which: impl Fn(&'e RunEvent) -> Option<&'e T>) -> Option<&'e T> {
    events.iter().rev().find_map(|event| match &event.payload {
        Payload::Run(event) => which(event),
        _ => None,
    })
}
