//! Commands: what somebody wants to happen, with everything that deciding needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemImport;
use shared_types::payload::tool::{ToolCall, ToolReport, ToolRequest, ToolStatus};
use shared_types::payload::window::Window;
use shared_types::{
    Actor, CommandId, ContentHash, EffectId, Event, EventId, FilePath, GrantId, OpId, RunId, Seq, Source, Subject, Taint, Timestamp, WindowId,
};

use crate::{RunAction, View};

/// Contents that a decision may need, by hash. What is missing is asked for by name.
pub type Contents = BTreeMap<ContentHash, Vec<u8>>;

/// A command in its envelope. The id is minted by the caller: a resend is recognised by it.
#[derive(Debug, Clone)]
pub struct Command {
    pub id: CommandId,
    pub op: OpId,
    /// Stamped by the writer, once.
    pub ts: Timestamp,
    pub source: Source,
    pub actor: Actor,
    pub run_id: Option<RunId>,
    pub cause: Option<EventId>,
    pub taint: Vec<Taint>,
    pub action: Action,
    pub contents: Contents,
}

/// What the caller believed was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// The caller does not care.
    Any,
    /// Nothing may be there.
    Absent,
    /// Exactly this content was seen.
    Content(ContentHash),
}

/// One edit that happened outside the log: on disk, or in the copy that a command ran on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideEdit {
    pub path: FilePath,
    /// What was there when the log last knew it.
    pub base: Option<FileNode>,
    /// What is there now.
    pub now: Option<FileNode>,
}

/// Which side of a conflict to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Leave it as it is today.
    Keep,
    /// Put there what the undo would.
    Take,
}

/// What the person chose for conflicts: one by one, or for all the others.
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

/// What somebody wants.
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
    /// A file, or a folder with all below it.
    DeletePath {
        path: FilePath,
    },
    /// A file or a folder; the place it goes to must be free.
    MovePath {
        from: FilePath,
        to: FilePath,
    },
    /// Edits found on disk. A file that also changed in the log is merged; if that fails, both versions are kept.
    CaptureEdits {
        edits: Vec<OutsideEdit>,
    },
    /// Files of an export; paths that are taken by something else are refused.
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

    /// Calls a tool: the command's operation is the call's id, and new.
    StartCall(ToolCall),
    /// A call that is made and answered at once, with what it changed and what it did in its run.
    MakeCall {
        call: ToolCall,
        status: ToolStatus,
        report: ToolReport,
        edits: Vec<OutsideEdit>,
        also: Option<Box<RunAction>>,
    },
    /// Something happens in the run that the command names.
    Run(RunAction),
    /// Takes back what was allowed for more than once.
    Revoke {
        grant: GrantId,
    },
    /// Something inside an open call asked for the network.
    RecordRequest {
        call: OpId,
        request: ToolRequest,
    },
    /// A dry run has ended: what it changed waits.
    HoldCall {
        report: ToolReport,
        changes: u64,
        code: Option<i32>,
    },
    /// Closes the call that the operation is, with what it changed. A file that also changed in the log is merged;
    /// if that fails, the log's version keeps the path and the call's goes beside it.
    FinishCall {
        status: ToolStatus,
        report: ToolReport,
        edits: Vec<OutsideEdit>,
    },

    /// Takes an operation back, or brings it back if it is itself an undo. The shell supplies the events.
    Undo {
        target: OpId,
        events: Vec<Event>,
        resolutions: Resolutions,
    },
    /// Takes all of a run back that is not undone yet, as one operation: that with the id of the run. The shell
    /// supplies the events of the run.
    UndoRun {
        run: RunId,
        events: Vec<Event>,
        resolutions: Resolutions,
    },
    /// Lets a run go on from before a turn of a model, whether it is over or not. What its calls did since is taken
    /// back. The shell supplies the events of the run.
    RetryRun {
        run: RunId,
        to: Seq,
        events: Vec<Event>,
        resolutions: Resolutions,
    },
    /// Returns files, windows, settings and notes to how they stood at a seq. The shell supplies that view.
    Restore {
        seq: Seq,
        target: Arc<View>,
    },
}
