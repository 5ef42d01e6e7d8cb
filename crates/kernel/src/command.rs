//! Commands: a requested change with everything that deciding about it needs.

mod runs;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemImport;
use shared_types::payload::tool::{ToolCall, ToolReport, ToolRequest, ToolStatus};
use shared_types::payload::window::Window;
use shared_types::{
    Actor, CommandId, ContentHash, EffectId, Event, EventId, FilePath, GrantId, OpId, RunId, Seq, Source,
    Subject, Taint, Timestamp, WindowId,
};

pub use runs::RunAction;

use crate::view::View;

/// Contents that a decision may need, by hash. [`decide`](crate::decide) asks for missing ones with
/// [`Rejection::Missing`](crate::Rejection::Missing).
pub type Contents = BTreeMap<ContentHash, Vec<u8>>;

/// Who asks for a change, in which context, and under which ids. The caller mints `command` and `op`: a resent
/// submission has the same `command` and gets the first answer again.
#[derive(Debug, Clone)]
pub struct Origin {
    pub command: CommandId,
    pub op: OpId,
    pub source: Source,
    pub actor: Actor,
    pub run_id: Option<RunId>,
    /// The event because of which this is submitted.
    pub cause: Option<EventId>,
    pub taint: Vec<Taint>,
}

impl Origin {
    /// Outside of any run, without a cause, with trusted content.
    pub fn new(command: CommandId, op: OpId, source: Source, actor: Actor) -> Self {
        Self { command, op, source, actor, run_id: None, cause: None, taint: Vec::new() }
    }
}

/// An action with its origin. The writer stamps its time once.
#[derive(Debug, Clone)]
pub struct Command {
    pub origin: Origin,
    pub ts: Timestamp,
    pub action: Action,
    pub contents: Contents,
}

/// The content that the caller expects at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// Anything.
    Any,
    /// Nothing.
    Absent,
    /// Exactly this content.
    Content(ContentHash),
}

/// One edit that was made outside the log: on disk, or in the copy of the workspace that a command ran on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideEdit {
    pub path: FilePath,
    /// The node on which the edit is based, as the log knew it.
    pub base: Option<FileNode>,
    /// The node after the edit.
    pub now: Option<FileNode>,
}

/// Which side of a conflict to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Keep the current state.
    Keep,
    /// Take the state that the undo restores.
    Take,
}

/// The person's choices for conflicts: for single subjects, and for all others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolutions {
    pub each: BTreeMap<Subject, Choice>,
    pub others: Option<Choice>,
}

impl Resolutions {
    pub(crate) fn choice(&self, subject: &Subject) -> Option<Choice> {
        self.each.get(subject).copied().or(self.others)
    }
}

/// A requested change, complete with what the kernel cannot read itself: events, contents, an old view.
#[derive(Debug, Clone)]
pub enum Action {
    CreateUser {
        name: Box<str>,
    },

    WriteFile {
        path: FilePath,
        node: FileNode,
        base: Base,
    },
    /// Writes several files, over what is there: all or nothing.
    WriteFiles {
        files: Vec<(FilePath, FileNode)>,
    },
    /// Deletes files, and folders with everything below them: all or nothing.
    DeletePaths {
        paths: Vec<FilePath>,
    },
    /// Moves files and folders, each from a path to one where nothing exists: all or nothing. What lies in a folder
    /// that is moved moves with it, and may be named, too.
    MovePaths {
        moves: Vec<(FilePath, FilePath)>,
    },
    /// Records edits found on disk. A file that also changed in the log is merged; if that fails, both versions are
    /// kept.
    CaptureEdits {
        edits: Vec<OutsideEdit>,
    },
    /// Adds the files of an export. Refused if other files exist at these paths.
    ImportFiles {
        origin: SystemImport,
        files: Vec<(FilePath, FileNode)>,
    },

    SetWindow {
        window: WindowId,
        state: Window,
    },
    CloseWindow {
        window: WindowId,
    },
    SetSetting {
        key: Box<str>,
        value: serde_json::Value,
    },
    ClearSetting {
        key: Box<str>,
    },

    RequestCheckpoint {
        effect: EffectId,
        reason: CheckpointReason,
        message: Box<str>,
    },
    RecordCheckpoint {
        effect: EffectId,
        commit: Box<str>,
        seq: Seq,
        message: Box<str>,
    },
    FailCheckpoint {
        effect: EffectId,
        reason: Box<str>,
    },
    RequestPurge {
        effect: EffectId,
        hashes: Vec<ContentHash>,
        reason: Box<str>,
    },
    RecordPurge {
        effect: EffectId,
        dropped: u64,
    },

    /// Starts a tool call. Its id is the command's operation, which must be new.
    StartCall(ToolCall),
    /// A tool call that starts and ends at once, with the files it changed and its effect on its run.
    MakeCall {
        call: ToolCall,
        status: ToolStatus,
        report: ToolReport,
        edits: Vec<OutsideEdit>,
        also: Option<Box<RunAction>>,
    },
    /// A change in the run that the command names.
    Run(RunAction),
    /// Revokes a grant.
    Revoke {
        grant: GrantId,
    },
    /// Records a network request that was made inside an open call.
    RecordRequest {
        call: OpId,
        request: ToolRequest,
    },
    /// A dry run has ended: its changes wait to be accepted or discarded.
    HoldCall {
        report: ToolReport,
        changes: u64,
        code: Option<i32>,
    },
    /// Ends the call that is this operation, with the files it changed. A file that also changed in the log is merged;
    /// if that fails, the log's version keeps the path and the call's version gets another name next to it.
    FinishCall {
        status: ToolStatus,
        report: ToolReport,
        edits: Vec<OutsideEdit>,
    },

    /// Undoes an operation; if it is itself an undo, redoes what it undid. The writer supplies its events.
    Undo {
        target: OpId,
        events: Vec<Event>,
        resolutions: Resolutions,
    },
    /// Undoes everything in a run that is not undone yet, as one operation with the id of the run. The writer supplies
    /// the events of the run.
    UndoRun {
        run: RunId,
        events: Vec<Event>,
        resolutions: Resolutions,
    },
    /// Continues a run, ended or not, from before a turn of a model, and undoes what its calls did since. The writer
    /// supplies the events of the run.
    RetryRun {
        run: RunId,
        to: Seq,
        events: Vec<Event>,
        resolutions: Resolutions,
    },
    /// Returns files, windows, settings and notes to their state at a seq. The writer supplies that view.
    Restore {
        seq: Seq,
        target: Arc<View>,
    },
}
