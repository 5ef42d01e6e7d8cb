//! `task.*`: the agents of a run and the messages between them.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, TaskId};

/// An agent was started with an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStart {
    pub task: TaskId,
    /// The agent that requested it; none for the first agent of a run, which the person requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// `conductor`, `writer`, `researcher`, `terminal`.
    pub role: Box<str>,
    /// One line for lists.
    pub title: Box<str>,
    pub instruction: ContentRef,
}

/// The kind of a message between agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// A finding.
    Finding,
    /// The requester has to answer.
    Question,
    /// An answer to a question.
    Answer,
    Progress,
    /// The work is done.
    Completion,
    /// The work failed.
    Failure,
}

/// An agent sent a message to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMessage {
    pub from: TaskId,
    pub to: TaskId,
    pub kind: MessageKind,
    pub body: ContentRef,
}

/// How the work of an agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    Done,
    Failed(Box<str>),
    /// The run was cancelled.
    Cancelled,
}

/// The work of an agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    pub task: TaskId,
    pub outcome: TaskOutcome,
}

/// The person reviewed what an agent has read, and removed its taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTrust {
    pub task: TaskId,
}

events! {
    /// The agents of a run and the messages between them.
    TaskEvent {
        /// An agent was started with an instruction.
        "task.start" v 1 Final => Start(TaskStart),
        /// An agent sent a message to another.
        "task.message" v 1 Final => Message(TaskMessage),
        /// The work of an agent ended.
        "task.end" v 1 Final => End(TaskEnd),
        /// The person trusts what an agent has read; its taint is removed.
        "task.trust" v 1 Final => Trust(TaskTrust),
    }
}
