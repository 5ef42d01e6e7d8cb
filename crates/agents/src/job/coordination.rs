//! Tools with which agents coordinate: delegate, answer a helper, report, ask the person, finish.

use kernel::RunAction;
use kernel::run::{MAX_TASKS, TaskState};
use shared_types::payload::run::{AskKind, RunAsk};
use shared_types::payload::task::{MessageKind, TaskMessage, TaskStart};
use shared_types::{ContentRef, FilePath, TaskId};

use super::Job;
use super::call::{Call, CallProgress, ToolOutcome};
use crate::ask_ids::approval_ask_id;
use crate::history::{HistoryEntry, MessageSender, TaskHistory};
use crate::port::PortError;
use crate::roles::Role;
use crate::shorten::one_line;

/// How many choices a question may have, and the bytes of a choice and of a question.
const MAX_CHOICES: usize = 10;
const MAX_CHOICE_BYTES: usize = 200;
const MAX_QUESTION_BYTES: usize = 4_000;
/// Advice for a model that does not know how to continue. Small models take it literally.
const NEXT_STEP_ADVICE: &str = "if the objective is met, finish; if something is missing, delegate only that";
/// Advice for a model that can delegate no more.
const NO_DELEGATION_ADVICE: &str =
    "work with what those who work for you find, or finish and say what is missing";

impl Job {
    /// Starts a helper.
    pub(super) async fn delegate(
        &self,
        call: &Call<'_>,
        to: Role,
        task: String,
    ) -> Result<Result<ToolOutcome, String>, PortError> {
        if self.history.run().is_some_and(|run| run.tasks.len() >= MAX_TASKS) {
            return Ok(Err(format!(
                "this run has had {MAX_TASKS} agents, and may have no more; {NO_DELEGATION_ADVICE}"
            )));
        }
        let title = one_line(&task);
        let (instruction, contents) = self.stage_message(task).await?;
        if self.is_repeated_delegation(call.task, to, instruction) {
            return Ok(Err(format!(
                "the {} did exactly this already and is done; {NEXT_STEP_ADVICE}",
                to.name()
            )));
        }
        let start = TaskStart {
            task: TaskId::from_bytes(*call.op.as_bytes()),
            parent: Some(call.task),
            role: to.name().into(),
            title: title.into(),
            instruction,
        };
        let message = format!("the {} works on it and will answer by a message", to.name());
        Ok(Ok(ToolOutcome {
            also: Some(RunAction::StartTask(start)),
            contents,
            ..ToolOutcome::text(message)
        }))
    }

    /// Whether the newest helper of an agent had the same instruction and completed it.
    fn is_repeated_delegation(&self, task: TaskId, role: Role, instruction: ContentRef) -> bool {
        let tasks = self.history.run().map_or(&[][..], |run| &run.tasks);
        let newest = tasks.iter().rev().find(|other| other.parent == Some(task));
        newest.filter(|helper| helper.state == TaskState::Done && &*helper.role == role.name()).is_some_and(
            |helper| {
                self.history.tasks.get(&helper.id).is_some_and(|history| history.instruction == instruction)
            },
        )
    }

    /// Sends an answer to a helper of this role: to the one that asked last, else to the newest.
    pub(super) async fn tell(
        &self,
        call: &Call<'_>,
        to: Role,
        text: String,
    ) -> Result<Result<ToolOutcome, String>, PortError> {
        let has_role = |helper: &&TaskHistory| &*helper.role == to.name();
        let asked = self.history.tasks.get(&call.task).and_then(|task| {
            task.entries.iter().rev().find_map(|entry| match entry {
                HistoryEntry::Message {
                    from: MessageSender::Agent { task, kind: MessageKind::Question },
                    ..
                } => self.history.helpers(call.task).filter(has_role).find(|helper| helper.id == *task),
                HistoryEntry::Message { .. }
                | HistoryEntry::ModelReply { .. }
                | HistoryEntry::ToolResult { .. } => None,
            })
        });
        let helper = asked.or_else(|| self.history.helpers(call.task).filter(has_role).last());
        let Some(helper) = helper.map(|helper| helper.id) else {
            let role = to.name();
            let had_helper =
                self.history.tasks.values().any(|task| task.parent == Some(call.task) && &*task.role == role);
            let next = if had_helper {
                NEXT_STEP_ADVICE.to_owned()
            } else {
                format!("delegate to the {role} instead")
            };
            return Ok(Err(format!("no {role} works for you now, nobody hears that; {next}")));
        };
        let (body, contents) = self.stage_message(text).await?;
        let message = TaskMessage { from: call.task, to: helper, kind: MessageKind::Answer, body };
        Ok(Ok(ToolOutcome {
            also: Some(RunAction::Tell(message)),
            contents,
            ..ToolOutcome::text("it was told")
        }))
    }

    /// Sends a message to the requester.
    pub(super) async fn report(
        &self,
        call: &Call<'_>,
        kind: MessageKind,
        text: String,
    ) -> Result<Result<ToolOutcome, String>, PortError> {
        let Some(parent) = self.history.tasks.get(&call.task).and_then(|task| task.parent) else {
            return Ok(Err("nobody asked you but the person; ask them, or finish".into()));
        };
        let (body, contents) = self.stage_message(text).await?;
        let message = TaskMessage { from: call.task, to: parent, kind, body };
        Ok(Ok(ToolOutcome {
            also: Some(RunAction::Tell(message)),
            contents,
            ..ToolOutcome::text("it was told")
        }))
    }

    /// Asks the person a question. Their answer becomes the result of the call.
    pub(super) async fn ask_question(
        &self,
        call: &Call<'_>,
        question: String,
        choices: Vec<String>,
    ) -> Result<CallProgress, PortError> {
        let clean = |text: &str, limit: usize| -> Box<str> {
            let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
            text[..text.floor_char_boundary(limit)].into()
        };
        let about = AskKind::Question {
            call: call.op,
            text: clean(&question, MAX_QUESTION_BYTES),
            choices: choices.iter().take(MAX_CHOICES).map(|choice| clean(choice, MAX_CHOICE_BYTES)).collect(),
        };
        let ask = RunAsk { ask: approval_ask_id(call.op), task: call.task, about };
        let seq = self.record_by(call.task, RunAction::Ask(ask), Vec::new()).await?;
        Ok(CallProgress::Recorded(seq.unwrap_or_default()))
    }

    /// Finishes the run. Helpers must be done, and all files that the agent lists must exist.
    pub(super) async fn finish(
        &self,
        call: &Call<'_>,
        files: Vec<FilePath>,
    ) -> Result<Result<ToolOutcome, String>, PortError> {
        if let Some(helper) = self.history.helpers(call.task).next() {
            return Ok(Err(format!("the {} still works; wait for its answer", helper.role)));
        }
        let mut missing = Vec::new();
        for path in files {
            if self.port().file(path.clone()).await?.is_none() {
                missing.push(path.to_string());
            }
        }
        if missing.is_empty() {
            return Ok(Ok(ToolOutcome::text("finished")));
        }
        Ok(Err(format!("there is no {}; say what is true, or have it made", missing.join(", "))))
    }
}
