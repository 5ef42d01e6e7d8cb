//! The computer as agents see it: what lasts is recorded, what is there is read, commands run in cells.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kernel::Action;
use kernel::run::{DaySpent, Spent};
use shared_types::payload::capability::Grant;
use shared_types::payload::file::FileNode;
use shared_types::payload::run::Budget;
use shared_types::wire::RunCommand;
use shared_types::{
    Actor, CommandId, ContentHash, ContentRef, Event, EventId, FilePath, OpId, RunId, Seq, Taint, TaskId,
    Timestamp,
};
use thiserror::Error;

use crate::rules::Rules;

/// What a computer answers, in its own time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, PortError>> + Send + 'a>>;

/// Why a computer did not do what it was asked.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PortError {
    /// The present does not allow it. Asking again does not help.
    #[error("{0}")]
    Refused(String),
    /// It cannot be recorded or read now: the disk is full, the computer is being closed.
    #[error("{0}")]
    Unavailable(String),
}

/// Something to be recorded, with everything that deciding needs.
#[derive(Debug, Clone)]
pub struct AgentSubmission {
    /// Minted by whoever does it; a resend is recognised by it.
    pub command: CommandId,
    pub op: OpId,
    pub run: RunId,
    pub actor: Actor,
    pub cause: Option<EventId>,
    pub taint: Vec<Taint>,
    pub action: Action,
    /// Contents that the action names.
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

/// Who makes a call, and where it came from.
#[derive(Debug, Clone)]
pub struct CallOrigin {
    pub run: RunId,
    pub task: TaskId,
    pub call: OpId,
    pub actor: Actor,
    pub taint: Vec<Taint>,
    pub read_policy: ReadPolicy,
    /// What a command may take, where a budget sets a bound to it.
    pub left: Option<Duration>,
}

/// Which files an agent may read without being asked.
#[derive(Clone)]
pub struct ReadPolicy {
    own: MayRead,
    everyone: MayRead,
}

type MayRead = Arc<dyn Fn(&FilePath) -> bool + Send + Sync>;

impl ReadPolicy {
    /// What one agent may read: never less than every agent may.
    pub fn of_one(rules: &Arc<Rules>, own: impl Fn(&FilePath) -> bool + Send + Sync + 'static) -> Self {
        Self { own: Arc::new(own), ..Self::of_everyone(rules) }
    }

    /// What every agent may read.
    pub fn of_everyone(rules: &Arc<Rules>) -> Self {
        let rules = Arc::clone(rules);
        let everyone: MayRead = Arc::new(move |path| rules.may_everyone_read(path));
        Self { own: Arc::clone(&everyone), everyone }
    }

    /// Nothing at all.
    pub fn of_nobody() -> Self {
        let nobody: MayRead = Arc::new(|_| false);
        Self { own: Arc::clone(&nobody), everyone: nobody }
    }

    pub fn may_read(&self, path: &FilePath) -> bool {
        (self.own)(path)
    }

    /// Whether nobody has to be asked, whichever agent reads it.
    pub fn may_everyone_read(&self, path: &FilePath) -> bool {
        (self.everyone)(path)
    }
}

impl std::fmt::Debug for ReadPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadPolicy")
    }
}

/// A file as the log has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub node: FileNode,
    /// Labels of whatever wrote it last.
    pub taint: Vec<Taint>,
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Those of folders have a slash at their end.
    pub names: Vec<String>,
    /// Labels of what has these names: whoever chose them may have read anything.
    pub taint: Vec<Taint>,
}

/// A place where words were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHit {
    pub path: FilePath,
    /// The line that holds them, where the words are in the file and not in its name.
    pub line: Option<String>,
    /// Labels of the file.
    pub taint: Vec<Taint>,
}

/// What holds for a run beyond itself.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// What the person allowed: in this run, or in all.
    pub grants: Vec<Grant>,
    /// What the run took.
    pub spent: Option<Spent>,
    /// What all runs took today.
    pub today: DaySpent,
    /// What all runs of a day may take, as the person set it.
    pub daily: Budget,
    /// What one agent of a role may take, as the person set it.
    pub agents: Vec<(String, Budget)>,
    /// For how long calls that cannot be taken back lie in the outbox.
    pub outbox: Duration,
    /// Which model each role gets, as the person set it.
    pub roles: Vec<(String, String)>,
}

/// The computer. Whatever blocks does so on threads of its own.
pub trait ComputerPort: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    fn new_command(&self) -> CommandId;
    fn new_op(&self) -> OpId;

    /// Records something; where its last event stands, if it made any.
    fn record(&self, deed: AgentSubmission) -> Answer<'_, Option<Seq>>;
    /// Keeps bytes that are too many to travel with what names them.
    fn keep(&self, bytes: Vec<u8>) -> Answer<'_, ContentRef>;
    fn content(&self, hash: ContentHash) -> Answer<'_, Vec<u8>>;

    /// Runs that are not over.
    fn open_runs(&self) -> Answer<'_, Vec<RunId>>;
    /// All events of a run, in order.
    fn events_of(&self, run: RunId) -> Answer<'_, Vec<Event>>;
    fn standing(&self, run: RunId) -> Answer<'_, RunContext>;

    fn file(&self, path: FilePath) -> Answer<'_, Option<Found>>;
    /// Nothing, if there is no such folder.
    fn list(&self, folder: Option<FilePath>) -> Answer<'_, Option<FolderListing>>;
    fn search(&self, words: String) -> Answer<'_, Vec<FileHit>>;

    /// Runs a command in a cell as one call, from its record to its result; again, if it is recorded already and
    /// nothing of it took effect. Files that its agent may not read are not readable in the cell, and what it prints
    /// and writes carries the labels of whatever it could read. Where its result stands.
    fn exec(&self, by: CallOrigin, command: RunCommand) -> Answer<'_, Seq>;
    /// Whether a command of this call runs, or is about to.
    fn is_running(&self, call: OpId) -> bool;
    /// Ends a command that runs.
    fn stop(&self, call: OpId);

    /// Says what an agent is saying just now to whoever listens. No words at all make void what it said so far.
    fn say(&self, run: RunId, task: TaskId, text: &str);
}
