//! Runs of agents as the desktop and the command line see them.

use serde::{Deserialize, Serialize};

use crate::payload::run::{AskKind, Budget, Reply};
use crate::{AskId, CommandId, FilePath, GrantId, OpId, RunId, Seq, Taint, TaskId, Timestamp};

/// An objective to work on. Both ids are minted by the caller: a resend starts nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartRun {
    pub command: CommandId,
    pub run: RunId,
    pub objective: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<FilePath>,
    /// A model of the catalog for all roles; what the catalog says, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is absent is as the settings say.
    #[serde(default)]
    pub budget: Budget,
}

/// What the person does to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunGesture {
    /// Says something to an agent, or to the first one.
    Steer {
        task: Option<TaskId>,
        words: String,
    },
    Pause,
    /// Lets agents stand still, to work alone.
    TakeOver,
    /// Goes on, with another budget if one is given.
    Resume {
        budget: Option<Budget>,
    },
    Stop,
    Answer {
        ask: AskId,
        reply: Reply,
    },
    /// Clears the labels of what an agent has read.
    Trust {
        task: TaskId,
    },
}

/// A gesture with its ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GestureOnRun {
    pub command: CommandId,
    pub gesture: RunGesture,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Running,
    /// The person was asked something.
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

/// What was taken so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunCost {
    pub steps: u64,
    pub tokens: u64,
    /// Millionths of a dollar, as far as prices are known.
    pub micros: u64,
    /// Steps whose price nobody knows.
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
    pub asks: u64,
    /// Whether what it did to files is taken back.
    pub undone: bool,
}

/// Runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunList {
    pub runs: Vec<RunLine>,
    /// There are older ones: ask for those before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
}

/// How an agent stands.
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
    pub task: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    pub role: String,
    pub title: String,
    pub state: AgentState,
    /// What it does now, in a few words.
    pub doing: String,
    pub cost: RunCost,
    /// Where untrusted words that it has read came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub taint: Vec<Taint>,
}

/// What a step of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// A model answered.
    Reply,
    /// A tool was used.
    Call,
    /// An agent told another something, or the person did.
    Message,
    /// The person was asked, or answered.
    Ask,
    /// The run or an agent began, stood still, went on or ended.
    Turn,
}

/// One step of a run, as a line; its parts are read when it is opened.
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
    /// The operation, if it can be looked at and undone by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    /// Whether it is taken back.
    pub undone: bool,
    pub failed: bool,
    /// How many files it changed.
    pub files: u64,
    pub cost: RunCost,
}

/// What went in and what came out of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepParts {
    pub step: Step,
    /// What it was given, as text: the arguments of a call, the words of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What came of it, as text: the output of a call, the reply of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Something that the person has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunQuestion {
    pub ask: AskId,
    pub run: RunId,
    pub task: TaskId,
    /// Which role asks.
    pub role: String,
    pub about: AskKind,
    /// The arguments of the call, as text to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What it would change, as a unified diff, where that can be said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Where untrusted words that the agent has read came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub taint: Vec<Taint>,
    /// Milliseconds after which a call in the outbox leaves by itself, by the clock of the computer. Nothing leaves while
    /// its run stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_in: Option<u64>,
}

/// All questions that wait, of all runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Questions {
    pub questions: Vec<RunQuestion>,
}

/// A run, whole but for its oldest steps.
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
    /// What the person was told at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Files that it made or changed, for the person to open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<FilePath>,
}

/// Something allowed for more than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrantLine {
    pub grant: GrantId,
    pub tool: String,
    pub pattern: String,
    /// The one run in which it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// All of them.
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
    /// Whether it could answer now: there is a key for it, or it runs here.
    pub usable: bool,
    /// Why not, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Why not, without what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Millionths of a dollar for a million tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<u64>,
    pub context: u64,
}

/// Which model a role gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleLine {
    pub role: String,
    /// What is wanted: by the person's settings, or by the catalog.
    pub model: String,
    /// What it would get now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gets: Option<String>,
}

/// How the model that runs on this machine stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalModelLine {
    pub name: String,
    /// Bytes of its weights, and how many of them are here.
    pub bytes: u64,
    pub here: u64,
    /// Whether they are being fetched.
    pub fetching: bool,
    /// Whether the person does not want them; then nobody is asked about it again.
    #[serde(default)]
    pub declined: bool,
    /// Whether it can answer: all weights are here and whole.
    pub ready: bool,
    /// Why it cannot be used, if that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Why it cannot run, although nothing has to be downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Tokens in a hundred seconds, as measured on this machine: read, and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<(u64, u64)>,
}

/// What there is to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelList {
    pub models: Vec<ModelLine>,
    pub roles: Vec<RoleLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalModelLine>,
    /// What a run may take where nobody says otherwise.
    pub budget: Budget,
    /// What all runs of a day may take together.
    pub daily: Budget,
    /// What they took today.
    pub today: RunCost,
}

/// What came of trying a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelTried {
    pub model: String,
    pub ok: bool,
    /// What it said, or why it did not.
    pub words: String,
    pub millis: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}
