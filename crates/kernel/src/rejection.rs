//! Why a command is refused. A refused command changes nothing.

use serde::Serialize;
use shared_types::{
    AskId, ContentHash, EffectId, FilePath, GrantId, OpId, PathError, RunId, Seq, TaskId, WindowId,
};
use thiserror::Error;

use crate::Conflict;

/// The typed reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Rejection {
    #[error("there is nothing at {path}")]
    NotFound { path: FilePath },
    #[error("{path} is in the way: it is not a folder")]
    NotAFolder { path: FilePath },
    #[error("{path} is a folder with files in it")]
    IsAFolder { path: FilePath },
    #[error("there is already something at {path}; remove or rename it first")]
    Occupied { path: FilePath },
    #[error("{path} cannot be moved into itself")]
    IntoItself { path: FilePath },
    #[error("the moved path would not be valid")]
    BadPath { reason: PathError },
    #[error("the link {path} would point out of the workspace")]
    LinkLeaves { path: FilePath },
    #[error("{path} has changed since you last read it; read it again, then repeat the change")]
    Stale { path: FilePath, expected: Option<ContentHash>, actual: Option<ContentHash> },
    #[error("{what} is {size} bytes, the limit is {limit}")]
    TooLarge { what: &'static str, size: u64, limit: u64 },
    #[error("{what} is not valid: {reason}")]
    Invalid { what: &'static str, reason: String },
    #[error("{0} paths of the import are taken; import into another folder", paths.len())]
    Taken { paths: Vec<FilePath> },
    #[error("this computer has an owner already")]
    AlreadySetUp,
    #[error("window {window} is not open")]
    NoWindow { window: WindowId },
    #[error("setting {key} is not set")]
    NoSetting { key: Box<str> },
    #[error("effect {effect} is not pending")]
    NotOwed { effect: EffectId },
    #[error("operation {op} does not exist")]
    NoOperation { op: OpId },
    #[error("operation {op} is undone already")]
    AlreadyUndone { op: OpId },
    #[error("operation {op} is not undone, or something else undid it since")]
    NotUndone { op: OpId },
    #[error("nothing in this operation can be undone")]
    NotReversible { op: OpId },
    #[error("call {call} is not open")]
    NoSuchCall { call: OpId },
    #[error("operation {call} exists already; a call needs an id of its own")]
    CallTaken { call: OpId },
    #[error("call {call} is not finished; stop, accept or discard it first")]
    CallIsOpen { call: OpId },
    #[error("call {call} has ended; its changes wait to be accepted or discarded")]
    CallIsHeld { call: OpId },
    #[error("run {run} does not exist")]
    NoRun { run: RunId },
    #[error("run {run} exists already; a run needs an id of its own")]
    RunTaken { run: RunId },
    #[error("this run is over")]
    RunIsOver { run: RunId },
    #[error("this run is paused; resume it first")]
    RunIsPaused { run: RunId },
    #[error("not possible in this run now: {what}")]
    RunIsBusy { run: RunId, what: &'static str },
    #[error("task {task} does not exist")]
    NoTask { task: TaskId },
    #[error("task {task} exists already")]
    TaskTaken { task: TaskId },
    #[error("this agent has finished and reads no more messages")]
    TaskIsOver { task: TaskId },
    #[error("task {task} cannot end: one of its helpers is working, or a call is open")]
    TaskIsBusy { task: TaskId },
    #[error("task {task} has not read the person's last message yet")]
    NotHeard { task: TaskId },
    #[error("question {ask} is not open; it may be answered already")]
    NoAsk { ask: AskId },
    #[error("grant {grant} does not exist; it may be revoked already")]
    NoGrant { grant: GrantId },
    #[error("{} later change(s) are in conflict; nothing was changed", conflicts.len())]
    Conflicts { conflicts: Vec<Conflict> },
    #[error("the log has no event {seq} yet")]
    NotYet { seq: Seq },
    #[error("{} contents are needed to decide", hashes.len())]
    Missing { hashes: Vec<ContentHash> },
}
