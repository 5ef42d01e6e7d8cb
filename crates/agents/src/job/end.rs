//! The end of an agent's work, and of a run.

use kernel::RunAction;
use shared_types::payload::run::RunComplete;
use shared_types::payload::task::{MessageKind, TaskEnd, TaskMessage, TaskOutcome};
use shared_types::payload::tool::ToolStatus;
use shared_types::{Seq, TaskId};

use super::Job;
use crate::history::{Entry, TaskHistory};
use crate::plan::Words;
use crate::port::PortError;
use crate::tools::ToolKind;

/// Files that a run names as its results.
const RESULTS: usize = 100;
/// Commands that a report tells of.
const COMMANDS: usize = 10;

impl Job {
    pub(super) async fn end(
        &self,
        task: TaskId,
        outcome: TaskOutcome,
        words: Words,
    ) -> Result<Option<Seq>, PortError> {
        let own = self.history.tasks.get(&task);
        let (report, contents) = match (own, own.and_then(|own| own.parent), &outcome) {
            (Some(own), Some(parent), TaskOutcome::Done | TaskOutcome::Failed(_)) => {
                let kind =
                    if outcome == TaskOutcome::Done { MessageKind::Completion } else { MessageKind::Failure };
                let text = format!("{}{}", self.spoken(words).await?, self.facts(own));
                let (body, contents) = self.words(text).await?;
                (Some(TaskMessage { from: task, to: parent, kind, body }), contents)
            }
            (_, _, TaskOutcome::Done | TaskOutcome::Failed(_) | TaskOutcome::Cancelled) => (None, Vec::new()),
        };
        // Whoever is done has heard everything that the person said to it; whoever gives up may not have.
        let seen = own.and_then(TaskHistory::last_turn).map(|turn| turn.seen);
        let seen = seen.filter(|_| outcome == TaskOutcome::Done);
        let end = TaskEnd { task, outcome };
        let known = self.history.seq();
        self.record_by(task, RunAction::EndTask { end, report, seen, known }, contents).await
    }

    pub(super) async fn complete(&self, words: Words) -> Result<Option<Seq>, PortError> {
        let (summary, contents) = self.words(self.spoken(words).await?).await?;
        let mut results = Vec::new();
        for path in self.history.changed.iter() {
            if results.len() < RESULTS && self.port().file(path.clone()).await?.is_some() {
                results.push(path.clone());
            }
        }
        self.record(RunAction::Complete(RunComplete { summary, results }), contents).await
    }

    async fn spoken(&self, words: Words) -> Result<String, PortError> {
        let text = match words {
            Words::These(text) => text.into(),
            Words::Of(reply) => self.reply(reply).await?.map(|reply| reply.text).unwrap_or_default(),
            Words::In(reply, place) => {
                let reply = self.reply(reply).await?;
                let call = reply.and_then(|reply| reply.calls.into_iter().nth(place));
                let summary = call.and_then(|call| call.input.get("summary")?.as_str().map(str::to_owned));
                summary.unwrap_or_default()
            }
        };
        Ok(if text.trim().is_empty() { "It is done.".into() } else { text })
    }

    /// What the log knows of an agent's work, beside what it says itself.
    fn facts(&self, task: &TaskHistory) -> String {
        let commands = task.entries.iter().filter_map(|entry| match entry {
            Entry::Got { call, tool, status, .. } if &**tool == ToolKind::Exec.name() => {
                let title = self.history.titles.get(call).map_or("a command", |title| title);
                let came = match status {
                    ToolStatus::Exited { code } => format!("exit code {code}"),
                    ToolStatus::Killed { .. }
                    | ToolStatus::Stopped { .. }
                    | ToolStatus::Failed { .. }
                    | ToolStatus::Interrupted { .. }
                    | ToolStatus::Discarded => "it did not come to its end".into(),
                };
                Some(format!("- `{title}`: {came}"))
            }
            Entry::Got { .. } | Entry::Said { .. } | Entry::Heard { .. } => None,
        });
        let commands: Vec<String> = commands.collect();
        if commands.is_empty() {
            return String::new();
        }
        let newest = commands.len().saturating_sub(COMMANDS);
        format!("\n\nRecorded by the computer, not by the agent:\n{}", commands[newest..].join("\n"))
    }
}
