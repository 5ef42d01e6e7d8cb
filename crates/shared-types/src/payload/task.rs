//! `task.*`: the agents of a run, and what they tell each other.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, TaskId};

/// An agent was given something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStart {
    pub task: TaskId,
    /// Who asked for it; the first agent of a run was asked by the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// `conductor`, `writer`, `researcher`, `terminal`.
    pub role: Box<str>,
    /// One line for lists.
    pub title: Box<str>,
    pub instruction: ContentRef,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// Something was found out.
    Finding,
    /// The requester has to answer.
    Question,
    /// An answer to a question.
    Answer,
    Progress,
    /// The work is done.
    Completion,
    /// The work came to nothing.
    Failure,
}

/// An agent told another something.
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
    /// Because the run was.
    Cancelled,
}

/// The work of an agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    pub task: TaskId,
    pub outcome: TaskOutcome,
}

/// The person looked at what an agent has read, and trusts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTrust {
    pub task: TaskId,
}

events! {
    /// The agents of a run, and what they tell each other.
    TaskEvent {
        /// An agent was given something to do.
        "task.start" v 1 Final => Start(TaskStart),
        /// An agent told another something.
        "task.message" v 1 Final => Message(TaskMessage),
        /// The work of an agent ended.
        "task.end" v 1 Final => End(TaskEnd),
        /// The person trusts what an agent has read.
        "task.trust" v 1 Final => Trust(TaskTrust),
    }
}
