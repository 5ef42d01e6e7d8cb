//! `run.*`: an objective that agents work on. Which run an event belongs to stands in its envelope, here as everywhere.

use serde::{Deserialize, Serialize};

use crate::{AskId, ContentRef, FilePath, OpId, Seq, Taint, TaskId, Timestamp};

/// What a run may take, from its start. What is absent is not bounded. Every field is written, since a snapshot, which
/// has no names of fields, holds it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Budget {
    /// Turns of models.
    pub steps: Option<u64>,
    /// Seconds in which it works; while it waits for the person the clock stands still.
    pub seconds: Option<u64>,
    pub tokens: Option<u64>,
    /// Millionths of a dollar.
    pub micros: Option<u64>,
}

/// Somebody stated an objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// One line for lists.
    pub title: Box<str>,
    /// The objective in the person's words.
    pub objective: ContentRef,
    /// Files that the person put beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<FilePath>,
    /// The model that the person chose for all roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    #[serde(default)]
    pub budget: Budget,
}

/// The person said something while agents worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSteer {
    /// Whom it is for; the first agent, if nobody in particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub words: ContentRef,
}

/// Why a run stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// The person wanted it.
    Person,
    /// The person works on it alone now.
    TakenOver,
    /// Going on would go beyond what it may take; the sentence says which bound.
    Budget(Box<str>),
    /// No model answers; the sentence says why.
    Model(Box<str>),
}

/// A run stands still: nothing new begins in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPause {
    pub why: PauseReason,
}

/// A run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunResume {
    /// What it may take from now on, if that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// The server was started again, and takes a run up that was under way when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunWake {}

/// What is asked.
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
        /// Which rule asks.
        why: Box<str>,
        /// What a grant for more than once would allow.
        pattern: Box<str>,
        /// Whether it could not be taken back.
        is_final: bool,
    },
    /// An agent wants to know something.
    Question { call: OpId, text: Box<str>, choices: Vec<Box<str>> },
    /// The server ended while this call ran, and it may have reached the outside. Is it to be made again?
    Interrupted { call: OpId, tool: Box<str>, title: Box<str> },
    /// A call that is allowed and cannot be taken back lies in the outbox. Silence until then is a yes.
    Outgoing { call: OpId, tool: Box<str>, title: Box<str>, input: ContentRef, until: Timestamp },
}

impl AskKind {
    /// Whether nothing goes on before the person has said something.
    pub fn needs_answer(&self) -> bool {
        match self {
            Self::Approval { .. } | Self::Question { .. } | Self::Interrupted { .. } => true,
            Self::Outgoing { .. } => false,
        }
    }
}

/// An agent waits for the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAsk {
    pub ask: AskId,
    pub task: TaskId,
    pub about: AskKind,
}

/// For how long an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Once,
    Run,
    Always,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Yes, once, in this run, or from now on.
    Allow(Scope),
    /// No, and why.
    Deny(Box<str>),
    /// An answer in words.
    Words(Box<str>),
    /// Nothing, until the time was up.
    Silence,
}

/// The person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAnswer {
    pub ask: AskId,
    pub task: TaskId,
    pub reply: Reply,
}

/// A run is again as it was before a turn of a model: whatever began with that turn or later counts no more, but for
/// what it took. What its calls did to files is taken back beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRewind {
    /// The turn that is taken again.
    pub to: Seq,
    /// Who works again, and the labels of each as they were.
    pub again: Vec<WorksAgain>,
    /// Agents that began since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<TaskId>,
    /// Calls that were wanted since and not made. Nobody makes them any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<OpId>,
}

/// An agent that works again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorksAgain {
    pub task: TaskId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<Taint>,
}

/// The person ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunCancel {}

/// A run came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFail {
    pub reason: Box<str>,
}

/// A run came to its end, with nothing pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunComplete {
    /// What the person is told.
    pub summary: ContentRef,
    /// What it made, for the person to open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<FilePath>,
}

events! {
    /// Objectives, and what becomes of them.
    RunEvent {
        /// Somebody stated an objective.
        "run.start" v 1 Final => Start(RunStart),
        /// The person said something while agents worked.
        "run.steer" v 1 Final => Steer(RunSteer),
        /// A run stands still.
        "run.pause" v 1 Final => Pause(RunPause),
        /// A run goes on.
        "run.resume" v 1 Final => Resume(RunResume),
        /// The server was started again and takes a run up; the time in between is nobody's.
        "run.wake" v 1 Final => Wake(RunWake),
        /// An agent waits for the person.
        "run.ask" v 1 Final => Ask(RunAsk),
        /// The person answered.
        "run.answer" v 1 Final => Answer(RunAnswer),
        /// A run is again as it was before a turn of a model.
        "run.rewind" v 1 Final => Rewind(RunRewind),
        /// The person ended a run.
        "run.cancel" v 1 Final => Cancel(RunCancel),
        /// A run came to nothing.
        "run.fail" v 1 Final => Fail(RunFail),
        /// A run came to its end, with nothing pending.
        "run.complete" v 1 Final => Complete(RunComplete),
    }
}
