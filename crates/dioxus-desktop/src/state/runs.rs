//! The runs that this tab knows, and which of them changed.

use std::collections::HashMap;

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use shared_types::payload::DesktopEvent;
use shared_types::wire::{RunLine, RunQuestion, RunState, SentEvent};
use shared_types::{RunId, Seq, TaskId};

use crate::api;

/// Milliseconds in which events are collected before anything is fetched again.
const GATHER_MS: u32 = 90;
/// Bytes of streamed text that are kept for an agent.
const STREAM_BYTES: usize = 4000;

/// The shared state of runs. Cheap to copy.
#[derive(Clone, Copy)]
pub(crate) struct RunsState {
    /// The newest runs, the newest first, with those that were just started here.
    pub newest: Signal<Vec<RunLine>>,
    /// Runs of `newest` that were started here and that the server has not recorded yet.
    pub unrecorded: Signal<Vec<RunId>>,
    /// Older runs come before this.
    pub before: Signal<Option<Seq>>,
    pub questions: Signal<Vec<RunQuestion>>,
    /// The text that agents stream, by task.
    pub streamed: Signal<HashMap<TaskId, String>>,
    /// How often a run changed; under `None`, the number of events that concern runs without naming one.
    revisions: Signal<HashMap<Option<RunId>, u64>>,
    /// How often any run changed.
    pub revision: Signal<u64>,
    /// Runs with events since they were last fetched.
    marked: CopyValue<Vec<Option<RunId>>>,
    is_gathering: CopyValue<bool>,
}

impl RunsState {
    pub(crate) fn new() -> Self {
        Self {
            newest: Signal::new(Vec::new()),
            unrecorded: Signal::new(Vec::new()),
            before: Signal::new(None),
            questions: Signal::new(Vec::new()),
            streamed: Signal::new(HashMap::new()),
            revisions: Signal::new(HashMap::new()),
            revision: Signal::new(0),
            marked: CopyValue::new(Vec::new()),
            is_gathering: CopyValue::new(false),
        }
    }

    /// Marks the run of an event.
    pub(crate) fn on_event(mut self, event: &SentEvent, what: &DesktopEvent) {
        // These concern runs without naming one.
        let family = event.name.split('.').next().unwrap_or_default();
        let names_none = matches!(family, "capability" | "undo" | "redo" | "restore");
        if event.run_id.is_some() || names_none {
            self.marked.write().push(event.run_id);
        }
        if event.run_id.is_some() {
            self.gather();
        }
        if let DesktopEvent::ModelAnswered(task) = what {
            self.streamed.write().remove(task);
        }
    }

    /// After a short delay, makes every component that shows a marked run fetch it again.
    pub(crate) fn gather(mut self) {
        if self.marked.read().is_empty() || *self.is_gathering.read() {
            return;
        }
        self.is_gathering.set(true);
        api::run(async move {
            TimeoutFuture::new(GATHER_MS).await;
            self.is_gathering.set(false);
            let marked = std::mem::take(&mut *self.marked.write());
            {
                let mut revisions = self.revisions.write();
                for run in marked {
                    *revisions.entry(run).or_default() += 1;
                }
            }
            *self.revision.write() += 1;
        });
    }

    /// Makes every component fetch its run again: events may have been missed.
    pub(crate) fn refresh(mut self) {
        self.marked.write().push(None);
        self.gather();
    }

    /// Appends text that an agent streams. An empty text discards what it streamed so far.
    pub(crate) fn stream(mut self, task: TaskId, text: &str) {
        let mut streamed = self.streamed.write();
        if text.is_empty() {
            streamed.remove(&task);
            return;
        }
        let all = streamed.entry(task).or_default();
        all.push_str(text);
        if all.len() > STREAM_BYTES {
            let cut = (all.len() - STREAM_BYTES / 2..all.len())
                .find(|at| all.is_char_boundary(*at))
                .unwrap_or_default();
            all.drain(..cut);
        }
    }

    /// Changes when something happened in a run.
    pub(crate) fn revision_of(self, run: RunId) -> u64 {
        let revisions = self.revisions.read();
        let of = |run| revisions.get(&run).copied().unwrap_or_default();
        of(Some(run)) + of(None)
    }

    /// Whether the person stopped a run before the server recorded it.
    pub(crate) fn is_called_off(self, run: RunId) -> bool {
        self.is_unrecorded(run) && self.line(run).is_some_and(|line| line.state == RunState::Cancelled)
    }

    /// Whether a run was started here and the server has not recorded it yet.
    pub(crate) fn is_unrecorded(self, run: RunId) -> bool {
        self.unrecorded.read().contains(&run)
    }

    /// The server has recorded these runs.
    pub(crate) fn mark_recorded(mut self, runs: &[RunLine]) {
        let is_recorded = |run: &RunId| runs.iter().any(|line| line.run == *run);
        if self.unrecorded.peek().iter().any(is_recorded) {
            self.unrecorded.write().retain(|run| !is_recorded(run));
        }
    }

    /// The line of a run, if it is among the newest.
    pub(crate) fn line(self, run: RunId) -> Option<RunLine> {
        self.newest.read().iter().find(|line| line.run == run).cloned()
    }
}
