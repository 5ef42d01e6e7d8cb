//! Ends the work of an agent, or a run.

use kernel::RunAction;
use shared_types::payload::run::RunComplete;
use shared_types::payload::task::{MessageKind, TaskEnd, TaskMessage, TaskOutcome};
use shared_types::payload::tool::ToolStatus;
use shared_types::{Seq, TaskId};

use super::Job;
use crate::history::{HistoryEntry, TaskHistory};
use crate::plan::FinalText;
use crate::port::PortError;
use crate::tool_kind::ToolKind;

/// How many files a run lists as its results.
const MAX_RESULTS: usize = 100;
/// How many commands a report lists.
const MAX_COMMANDS: usize = 10;

impl Job {
    pub(super) async fn end_task(
        &self,
        task: TaskId,
        outcome: TaskOutcome,
        text: FinalText,
    ) -> Result<Option<Seq>, PortError> {
        let ended = self.history.tasks.get(&task);
        let (report, contents) = match (ended, ended.and_then(|ended| ended.parent), &outcome) {
            (Some(ended), Some(parent), TaskOutcome::Done | TaskOutcome::Failed(_)) => {
                let kind =
                    if outcome == TaskOutcome::Done { MessageKind::Completion } else { MessageKind::Failure };
                let text = format!("{}{}", self.final_text(text).await?, self.recorded_commands(ended));
                let (body, contents) = self.stage_message(text).await?;
                (Some(TaskMessage { from: task, to: parent, kind, body }), contents)
            }
            (_, _, TaskOutcome::Done | TaskOutcome::Failed(_) | TaskOutcome::Cancelled) => (None, Vec::new()),
        };
        // An agent that is done has read all messages of the person; one that failed may not have.
        let seen = ended.and_then(TaskHistory::last_turn).map(|turn| turn.seen);
        let seen = seen.filter(|_| outcome == TaskOutcome::Done);
        let end = TaskEnd { task, outcome };
        let known = self.history.seq();
        self.record_by(task, RunAction::EndTask { end, report, seen, known }, contents).await
    }

    pub(super) async fn complete(&self, text: FinalText) -> Result<Option<Seq>, PortError> {
        let (summary, contents) = self.stage_message(self.final_text(text).await?).await?;
        let mut results = Vec::new();
        for path in self.history.changed_files.iter() {
            if results.len() < MAX_RESULTS && self.port().file(path.clone()).await?.is_some() {
                results.push(path.clone());
            }
        }
        self.record(RunAction::Complete(RunComplete { summary, results }), contents).await
    }

    /// The final text itself.
    async fn final_text(&self, text: FinalText) -> Result<String, PortError> {
        let text = match text {
            FinalText::Fixed(text) => text.into(),
            FinalText::Reply(reply) => self.reply(reply).await?.map(|reply| reply.text).unwrap_or_default(),
            FinalText::FinishSummary(reply, index) => {
                let reply = self.reply(reply).await?;
                let call = reply.and_then(|reply| reply.calls.into_iter().nth(index));
                let summary = call.and_then(|call| call.input.get("summary")?.as_str().map(str::to_owned));
                summary.unwrap_or_default()
            }
        };
        Ok(if text.trim().is_empty() { "It is done.".into() } else { text })
    }

    /// The newest commands of an agent with their exit codes, from the log: the agent's own text may be wrong.
    fn recorded_commands(&self, task: &TaskHistory) -> String {
        let commands = task.entries.iter().filter_map(|entry| match entry {
            HistoryEntry::ToolResult { call, tool, status, .. } if &**tool == ToolKind::Exec.name() => {
                let title = self.history.call_titles.get(call).map_or("a command", |title| title);
                let ending = match status {
                    ToolStatus::Exited { code } => format!("exit code {code}"),
                    ToolStatus::Killed { .. }
                    | ToolStatus::Stopped { .. }
                    | ToolStatus::Failed { .. }
                    | ToolStatus::Interrupted { .. }
                    | ToolStatus::Discarded => "it did not come to its end".into(),
                };
                Some(format!("- `{title}`: {ending}"))
            }
            HistoryEntry::ToolResult { .. }
            | HistoryEntry::ModelReply { .. }
            | HistoryEntry::Message { .. } => None,
        });
        let commands: Vec<String> = commands.collect();
        if commands.is_empty() {
            return String::new();
        }
        let newest = commands.len().saturating_sub(MAX_COMMANDS);
        format!("\n\nRecorded by the computer, not by the agent:\n{}", commands[newest..].join("\n"))
    }
}
