//! Follows a run step by step.

use std::io;
use std::time::Duration;

use event_log::EventLog;
use shared_types::Seq;
use shared_types::wire::{RunLine, RunState};
use tokio::sync::broadcast::error::TryRecvError;

use super::run_record::{RunRecord, events_of};
use super::steps::{StepDescriber, touched};
use super::{Computer, operation_of};
use crate::error::ComputerError;
use crate::protocol::RunUpdate;

/// How long streamed text may wait, and how soon a follower that left is noticed.
const FLUSH_INTERVAL: Duration = Duration::from_millis(40);

impl Computer {
    /// Reports the steps of a run after an event, until the run is over, waits for the person or is paused, or until
    /// the follower has left.
    pub(crate) fn follow_run(
        &self,
        run: &str,
        after: Seq,
        is_wanted: &dyn Fn() -> bool,
        on_update: &mut dyn FnMut(RunUpdate) -> io::Result<()>,
    ) -> Result<RunLine, ComputerError> {
        let id = self.run_named(run)?;
        let mut speech = self.subscribe_speech();
        let mut seen = self.log().head().seq;
        let mut record = self.run_record(id)?;
        let mut new: Vec<_> = record.events.iter().filter(|event| event.seq > after).cloned().collect();
        loop {
            if !new.is_empty() {
                let undone = self.undone_of(&record)?;
                let describer = StepDescriber::new(&**self.log(), &record.events, undone);
                for event in touched(&record.events, &new) {
                    on_update(RunUpdate::Step(Box::new(describer.step(event))))?;
                }
            }
            match record.state() {
                RunState::Running if is_wanted() && !self.is_closing() => {}
                RunState::Running
                | RunState::Waiting
                | RunState::Paused
                | RunState::Cancelled
                | RunState::Failed
                | RunState::Completed => {
                    let undone = self.is_undone(operation_of(id))?;
                    return Ok(record.line(undone));
                }
            }
            let head = self.log().wait(seen, FLUSH_INTERVAL);
            loop {
                match speech.try_recv() {
                    Ok(part) if part.run == id => {
                        on_update(RunUpdate::StreamedText { task: part.task, text: part.text })?;
                    }
                    Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            new = if head > seen { events_of(&**self.log(), id, record.last(seen))? } else { Vec::new() };
            seen = seen.max(head);
            record.extend(new.clone());
        }
    }
}

impl RunRecord {
    /// The last event that was read or looked for.
    fn last(&self, seen: Seq) -> Seq {
        self.events.last().map_or(seen, |event| event.seq.max(seen))
    }
}
