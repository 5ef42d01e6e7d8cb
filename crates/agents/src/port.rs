//! The interface through which agents use a computer: record events, read files and contents, run commands in cells.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kernel::run::{DaySpent, Spent};
use kernel::{Action, Origin};
use shared_types::payload::capability::Grant;
use shared_types::payload::file::FileNode;
use shared_types::payload::run::Budget;
use shared_types::wire::CellCommand;
use shared_types::{
    CommandId, ContentHash, ContentRef, Event, FilePath, OpId, RunId, Seq, Taint, TaskId, Timestamp,
};
use thiserror::Error;

use crate::rules::Rules;

/// A pending answer of the computer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, PortError>> + Send + 'a>>;

/// Why a request to the computer failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PortError {
    /// The current state does not allow it. A retry does not help.
    #[error("{0}")]
    Refused(String),
    /// Nothing can be recorded or read now: the disk is full, or the computer is closing. A retry may help.
    #[error("{0}")]
    Unavailable(String),
}

/// An action to record.
#[derive(Debug, Clone)]
pub struct AgentSubmission {
    pub origin: Origin,
    pub action: Action,
    /// Contents that the action refers to.
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

/// Which agent runs a command, and under which conditions. The operation of `origin` is its call.
#[derive(Debug, Clone)]
pub struct CommandOrigin {
    pub origin: Origin,
    pub run: RunId,
    pub task: TaskId,
    pub read_policy: AgentReadPolicy,
    /// The time that the budgets leave for the command, if they limit it.
    pub left: Option<Duration>,
}

/// Which files an agent may read without asking the person.
#[derive(Clone)]
pub struct AgentReadPolicy {
    own: MayRead,
    everyone: MayRead,
}

type MayRead = Arc<dyn Fn(&FilePath) -> bool + Send + Sync>;

impl AgentReadPolicy {
    /// The policy of one agent, which may read at least what every agent may.
    pub fn of_one(rules: &Arc<Rules>, own: impl Fn(&FilePath) -> bool + Send + Sync + 'static) -> Self {
        Self { own: Arc::new(own), ..Self::of_everyone(rules) }
    }

    /// The policy that applies to every agent.
    pub fn of_everyone(rules: &Arc<Rules>) -> Self {
        let rules = Arc::clone(rules);
        let everyone: MayRead = Arc::new(move |path| rules.may_everyone_read(path));
        Self { own: Arc::clone(&everyone), everyone }
    }

    pub fn may_read(&self, path: &FilePath) -> bool {
        (self.own)(path)
    }

    /// Whether every agent may read the file without asking the person.
    pub fn may_everyone_read(&self, path: &FilePath) -> bool {
        (self.everyone)(path)
    }
}

impl std::fmt::Debug for AgentReadPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentReadPolicy")
    }
}

/// A file, folder or link in the log's current view.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundFile {
    pub node: FileNode,
    /// Taint labels of its last write.
    pub taint: Vec<Taint>,
}

/// The entries of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// The names; folders end in a slash.
    pub names: Vec<String>,
    /// Taint labels of the entries: their names may come from a tainted agent.
    pub taint: Vec<Taint>,
}

/// A search result in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHit {
    pub path: FilePath,
    /// The matching line, if the match is in the file and not in its name.
    pub line: Option<String>,
    /// Taint labels of the file.
    pub taint: Vec<Taint>,
}

/// Settings and limits that apply to a run from outside of it.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// Grants for this run, or for all runs.
    pub grants: Vec<Grant>,
    /// What the run has used.
    pub spent: Option<Spent>,
    /// What all runs have used today.
    pub today: DaySpent,
    /// The person's budget for all runs of a day.
    pub daily: Budget,
    /// The person's budgets for one agent of a role, by role.
    pub agents: Vec<(String, Budget)>,
    /// How long final calls wait in the outbox.
    pub outbox: Duration,
    /// The person's choice of models, by role.
    pub roles: Vec<(String, String)>,
}

/// The computer. Implementations run blocking work on threads of their own.
pub trait ComputerPort: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    fn new_command(&self) -> CommandId;
    fn new_op(&self) -> OpId;

    /// Records an action. Returns the position of its last event, if it made any.
    fn record(&self, submission: AgentSubmission) -> Answer<'_, Option<Seq>>;
    /// Stores a content that is too large to be part of a submission.
    fn store_content(&self, bytes: Vec<u8>) -> Answer<'_, ContentRef>;
    fn content(&self, hash: ContentHash) -> Answer<'_, Vec<u8>>;

    /// Runs that are not over.
    fn open_runs(&self) -> Answer<'_, Vec<RunId>>;
    /// All events of a run, in order.
    fn events_of(&self, run: RunId) -> Answer<'_, Vec<Event>>;
    /// Grants, budgets and settings that apply to a run.
    fn run_context(&self, run: RunId) -> Answer<'_, RunContext>;

    fn file(&self, path: FilePath) -> Answer<'_, Option<FoundFile>>;
    /// `None`, if there is no such folder.
    fn list(&self, folder: Option<FilePath>) -> Answer<'_, Option<FolderListing>>;
    fn search(&self, words: String) -> Answer<'_, Vec<FileHit>>;

    /// Runs a command in a cell as one call, and records the call and its result; returns the position of the result. A
    /// call that is recorded already and had no effect is run again. Files that the agent may not read are not readable
    /// in the cell; its output and changes carry the taint labels of all files that it could read.
    fn exec(&self, by: CommandOrigin, command: CellCommand) -> Answer<'_, Seq>;
    /// Whether a command of this call runs or is about to start.
    fn is_running(&self, call: OpId) -> bool;
    /// Stops a running command.
    fn stop(&self, call: OpId);

    /// Streams the text that an agent's model is writing to the tabs that watch. An empty text discards the text so far.
    fn stream_text(&self, run: RunId, task: TaskId, text: &str);
}
