//! Errors of checkpoints. Each message says what to do about it.

use std::io;
use std::path::PathBuf;

use event_log::ContentError;
use shared_types::FilePath;
use thiserror::Error;

use super::{CommitId, CommitIdError};

/// Why an operation on the checkpoints failed. The workspace and the log are unchanged.
#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error(
        "git was not found, and checkpoints need it: install it with `apt install git`, `dnf install git` or \
         `brew install git`, or from https://git-scm.com/downloads"
    )]
    GitMissing,
    #[error("the newest checkpoint is not the expected parent; a full checkpoint is needed")]
    NeedsFull,
    #[error(
        "the checkpoints in {} are damaged: {detail}; move that folder away, and the next checkpoint will be \
         written in full from the log",
        .path.display()
    )]
    Damaged { path: PathBuf, detail: String },
    #[error(transparent)]
    CommitId(#[from] CommitIdError),
    #[error("no checkpoint has the commit {commit}")]
    NoSuchCommit { commit: CommitId },
    #[error("backup {name} already exists, at {commit}; it was not changed")]
    BackupExists { name: String, commit: CommitId },
    #[error(
        "{name:?} is not a valid backup name: 1 to 100 of a-z, A-Z, 0-9, '-', '_' and '.', beginning with a letter or digit"
    )]
    BackupName { name: String },
    #[error("git could not {action} ({status}): {stderr}")]
    Git { action: &'static str, status: String, stderr: String },
    #[error("the content of {path} cannot be read from the log")]
    Content {
        path: FilePath,
        #[source]
        source: ContentError,
    },
    #[error("could not {action}")]
    Io {
        action: &'static str,
        #[source]
        source: io::Error,
    },
}

impl CheckpointError {
    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

/// Why a push failed. The checkpoints stay in the local repository. No variant shows a password of the remote's URL.
#[derive(Debug, Error)]
pub enum PushError {
    #[error("{remote} is not a valid remote: {reason}")]
    Remote { remote: String, reason: &'static str },
    #[error("{remote} did not answer within {seconds} s; the push was stopped")]
    TimedOut { remote: String, seconds: u64 },
    #[error("the push to {remote} failed: {stderr}")]
    Refused { remote: String, stderr: String },
    #[error(transparent)]
    Repo(#[from] CheckpointError),
}
