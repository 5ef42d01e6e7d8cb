//! Runs of agents, as the desktop and the command line see them.

use serde::{Deserialize, Serialize};

use crate::payload::run::{AskKind, Budget, Reply};
use crate::{AskId, CommandId, FilePath, GrantId, OpId, RunId, Seq, Taint, TaskId, Timestamp};

/// An objective to work on. The caller mints both ids, so a resend starts nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartRun {
    pub command: CommandId,
    pub run: RunId,
    pub objective: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<FilePath>,
    /// A model of the catalog for all roles; absent for the defaults of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Absent limits come from the settings.
    #[serde(default)]
    pub budget: Budget,
}

/// What a person can do to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunControl {
    /// Sends a message to an agent; without a task, to the lead agent.
    Steer {
        task: Option<TaskId>,
        words: String,
    },
    Pause,
    /// Pauses the agents so that the person can do the work.
    TakeOver,
    /// Resumes the run, with another budget if one is given.
    Resume {
        budget: Option<Budget>,
    },
    Stop,
    Answer {
        ask: AskId,
        reply: Reply,
    },
    /// Clears the taint of an agent.
    Trust {
        task: TaskId,
    },
}

/// A body of `POST /runs/{run}/gestures`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlRun {
    pub command: CommandId,
    #[serde(rename = "gesture")]
    pub control: RunControl,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Running,
    /// It waits for an answer of the person.
    Waiting,
    Paused,
    Cancelled,
    Failed,
    Completed,
}

impl RunState {
    pub fn is_over(self) -> bool {
        match self {
            Self::Running | Self::Waiting | Self::Paused => false,
            Self::Cancelled | Self::Failed | Self::Completed => true,
        }
    }
}

/// What was used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunCost {
    /// Turns of models.
    #[serde(rename = "steps")]
    pub turns: u64,
    pub tokens: u64,
    /// Millionths of a dollar, as far as prices are known.
    pub micros: u64,
    /// Turns without a known price.
    pub unpriced: u64,
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunLine {
    pub run: RunId,
    pub title: String,
    pub state: RunState,
    /// Why it is paused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub seq: Seq,
    pub started: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    pub cost: RunCost,
    /// Questions that wait for the person.
    #[serde(rename = "asks")]
    pub open_questions: u64,
    /// Whether its changes to files are undone.
    pub undone: bool,
}

/// Runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunList {
    pub runs: Vec<RunLine>,
    /// Present if there are older runs: request those before this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
}

/// The state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    Working,
    Done,
    Failed,
    Cancelled,
}

/// One agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    #[serde(rename = "task")]
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    pub role: String,
    pub title: String,
    pub state: AgentState,
    /// What it does now, in a few words.
    pub doing: String,
    pub cost: RunCost,
    /// Sources of untrusted text that it has read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub taint: Vec<Taint>,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// A model answered.
    Reply,
    /// A tool was used.
    Call,
    /// An agent or the person sent a message.
    Message,
    /// A question to the person, or its answer.
    Ask,
    /// A run or an agent started, paused, resumed or ended.
    #[serde(rename = "turn")]
    Lifecycle,
}

/// One step of a run, as a line. `StepDetail` has the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    pub seq: Seq,
    pub ts: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub kind: StepKind,
    /// In a few words.
    pub label: String,
    /// The operation, if the step can be shown and undone by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    /// Whether it is undone.
    pub undone: bool,
    pub failed: bool,
    /// How many files it changed.
    pub files: u64,
    pub cost: RunCost,
}

/// Input and output of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepDetail {
    pub step: Step,
    /// The input as text: the arguments of a call, the text of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The output as text: the output of a call, the reply of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunQuestion {
    #[serde(rename = "ask")]
    pub id: AskId,
    pub run: RunId,
    pub task: TaskId,
    /// The role of the agent that asks.
    pub role: String,
    pub about: AskKind,
    /// The arguments of the call, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The expected change as a unified diff, if it is known in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Sources of untrusted text that the agent has read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub taint: Vec<Taint>,
    /// Milliseconds until a call in the outbox is sent, by the clock of the computer. It is not sent while the run is
    /// paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_in: Option<u64>,
}

/// The open questions of all runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Questions {
    pub questions: Vec<RunQuestion>,
}

/// A run with its newest steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDetails {
    pub line: RunLine,
    pub objective: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub budget: Budget,
    pub agents: Vec<Agent>,
    pub questions: Vec<RunQuestion>,
    /// The newest, in order.
    pub steps: Vec<Step>,
    /// How many older steps there are.
    pub earlier: u64,
    /// The final summary for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Files that it created or changed, for the person to open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<FilePath>,
}

/// A grant, for one run or for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrantLine {
    pub grant: GrantId,
    pub tool: String,
    pub pattern: String,
    /// The run in which it is valid; absent for all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// All grants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrantList {
    pub grants: Vec<GrantLine>,
}

/// A model of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelLine {
    /// Its name in the catalog.
    pub name: String,
    pub provider: String,
    /// Whether it can be used now: there is a key for it, or it runs on this machine.
    pub usable: bool,
    /// Why it cannot be used, and what to do.
    #[serde(rename = "obstacle", default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why not, without what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Millionths of a dollar per million tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<u64>,
    pub context: u64,
}

/// The model of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleLine {
    pub role: String,
    /// The model that the settings or the catalog name.
    pub model: String,
    /// The model that would be used now.
    #[serde(rename = "gets", default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
}

/// The state of the local model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalModelLine {
    pub name: String,
    /// Bytes of its weights, and how many of them are downloaded.
    pub bytes: u64,
    #[serde(rename = "here")]
    pub downloaded: u64,
    /// Whether a download is running.
    pub fetching: bool,
    /// Whether the person declined the download, so that it is not offered again.
    #[serde(default)]
    pub declined: bool,
    /// Whether it can be used: all weights are downloaded and verified.
    pub ready: bool,
    /// Why it cannot be used.
    #[serde(rename = "obstacle", default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why it cannot run, although nothing has to be downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Tokens per hundred seconds, as measured on this machine: read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<(u64, u64)>,
}

/// Models, roles and budgets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelList {
    pub models: Vec<ModelLine>,
    pub roles: Vec<RoleLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalModelLine>,
    /// The default budget of a run.
    pub budget: Budget,
    /// The budget of all runs of a day.
    pub daily: Budget,
    /// What the runs of today have used.
    pub today: RunCost,
}

/// The result of a test of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelTestResult {
    pub model: String,
    pub ok: bool,
    /// Its reply, or the error.
    #[serde(rename = "words")]
    pub text: String,
    pub millis: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}
