//! `run.*`: an objective that agents work on. The run of an event is in its envelope, for all event types.

use serde::{Deserialize, Serialize};

use crate::{AskId, ContentRef, FilePath, OpId, Seq, Taint, TaskId, Timestamp};

/// The limits of a run, counted from its start. An absent limit is none. Every field is always written, because
/// snapshots hold it too and have no field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Budget {
    /// Model turns.
    pub steps: Option<u64>,
    /// Seconds of work; the clock stops while the run waits for the person.
    pub seconds: Option<u64>,
    pub tokens: Option<u64>,
    /// Millionths of a dollar.
    pub micros: Option<u64>,
}

/// A run was started with an objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// One line for lists.
    pub title: Box<str>,
    /// The objective in the person's words.
    pub objective: ContentRef,
    /// Files that the person attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<FilePath>,
    /// The model that the person chose for all roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    #[serde(default)]
    pub budget: Budget,
}

/// The person sent a message to a working agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSteer {
    /// The agent that it is for; the first agent if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub words: ContentRef,
}

/// Why a run is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// The person paused it.
    Person,
    /// The person took over and works alone.
    TakenOver,
    /// The next step would exceed the budget; the text says which limit.
    Budget(Box<str>),
    /// No model answers; the text says why.
    Model(Box<str>),
}

/// A run was paused: nothing new starts in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPause {
    pub why: PauseReason,
}

/// A run was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunResume {
    /// The new budget, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// The server was restarted and continues a run that was working when it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunWake {}

/// The subject of a question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// May this call be made?
    Approval {
        call: OpId,
        tool: Box<str>,
        /// The exact command, address or path.
        title: Box<str>,
        input: ContentRef,
        /// The rule that requires the question.
        why: Box<str>,
        /// What a lasting permission would allow.
        pattern: Box<str>,
        /// Whether the call cannot be undone.
        is_final: bool,
    },
    /// A question of an agent.
    Question { call: OpId, text: Box<str>, choices: Vec<Box<str>> },
    /// The server stopped while this call ran, and the call may have reached the network. Should it run again?
    Interrupted { call: OpId, tool: Box<str>, title: Box<str> },
    /// An allowed call that cannot be undone waits in the outbox. No answer until `until` means yes.
    Outgoing { call: OpId, tool: Box<str>, title: Box<str>, input: ContentRef, until: Timestamp },
}

impl AskKind {
    /// Whether the agent waits until the person answers.
    pub fn needs_answer(&self) -> bool {
        match self {
            Self::Approval { .. } | Self::Question { .. } | Self::Interrupted { .. } => true,
            Self::Outgoing { .. } => false,
        }
    }
}

/// An agent asked the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAsk {
    pub ask: AskId,
    pub task: TaskId,
    pub about: AskKind,
}

/// How long an approval is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalScope {
    Once,
    Run,
    Always,
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Yes: once, in this run, or always.
    Allow(ApprovalScope),
    /// No, with the reason.
    Deny(Box<str>),
    /// An answer as text.
    Words(Box<str>),
    /// No answer until the time was up.
    Silence,
}

/// The person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAnswer {
    pub ask: AskId,
    pub task: TaskId,
    pub reply: Reply,
}

/// A run was rewound to before a model turn: that turn and everything that started later do not count any more, except
/// for their cost. What its calls did to files is undone in the same operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRewind {
    /// The turn that is repeated.
    pub to: Seq,
    /// The agents that work again, with their taint labels at that point.
    pub again: Vec<ResumedTask>,
    /// Agents that were started since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<TaskId>,
    /// Calls that were requested since and not made. They are never made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<OpId>,
}

/// An agent that works again after a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumedTask {
    pub task: TaskId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<Taint>,
}

/// The person ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunCancel {}

/// A run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFail {
    pub reason: Box<str>,
}

/// A run was completed, with nothing unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunComplete {
    /// The report to the person.
    pub summary: ContentRef,
    /// The files it made, for the person to open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<FilePath>,
}

events! {
    /// Runs of agents.
    RunEvent {
        /// A run was started with an objective.
        "run.start" v 1 Final => Start(RunStart),
        /// The person sent a message to a working agent.
        "run.steer" v 1 Final => Steer(RunSteer),
        /// A run was paused.
        "run.pause" v 1 Final => Pause(RunPause),
        /// A run was resumed.
        "run.resume" v 1 Final => Resume(RunResume),
        /// The server was restarted and continues a run; the time in between does not count.
        "run.wake" v 1 Final => Wake(RunWake),
        /// An agent asked the person.
        "run.ask" v 1 Final => Ask(RunAsk),
        /// The person answered.
        "run.answer" v 1 Final => Answer(RunAnswer),
        /// A run was rewound to before a model turn.
        "run.rewind" v 1 Final => Rewind(RunRewind),
        /// The person ended a run.
        "run.cancel" v 1 Final => Cancel(RunCancel),
        /// A run failed.
        "run.fail" v 1 Final => Fail(RunFail),
        /// A run was completed, with nothing unfinished.
        "run.complete" v 1 Final => Complete(RunComplete),
    }
}
