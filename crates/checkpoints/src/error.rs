//! What can go wrong with checkpoints, in words that say what to do about it.

use std::io;
use std::path::PathBuf;

use event_log::ContentError;
use shared_types::FilePath;
use thiserror::Error;

use super::{CommitId, CommitIdError};

/// Why something could not be done with the checkpoints. The workspace and the log are untouched.
#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error(
        "git was not found, and checkpoints need it: install it with `apt install git`, `dnf install git` or \
         `brew install git`, or from https://git-scm.com/downloads"
    )]
    GitMissing,
    #[error("the checkpoints do not end where this one would begin, so it has to be written in full")]
    NeedsFull,
    #[error(
        "the checkpoints in {} are damaged: {detail}; move that folder away and the next checkpoint is written in \
         full, from the log",
        .path.display()
    )]
    Damaged { path: PathBuf, detail: String },
    #[error(transparent)]
    CommitId(#[from] CommitIdError),
    #[error("there is no commit {commit} among the checkpoints")]
    NoSuchCommit { commit: CommitId },
    #[error("backup {name} exists already, at {commit}; it was left as it is")]
    BackupExists { name: String, commit: CommitId },
    #[error(
        "{name:?} cannot name a backup: 1 to 100 of a-z, A-Z, 0-9, '-', '_' and '.', beginning with a letter or digit"
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

/// Why the checkpoints did not reach a remote. They are still here. No variant shows a password of the remote's URL.
#[derive(Debug, Error)]
pub enum PushError {
    #[error("{remote} cannot be a remote: {reason}")]
    Remote { remote: String, reason: &'static str },
    #[error("{remote} did not answer within {seconds} s; the push was stopped")]
    TimedOut { remote: String, seconds: u64 },
    #[error("the push to {remote} failed: {stderr}")]
    Refused { remote: String, stderr: String },
    #[error(transparent)]
    Repo(#[from] CheckpointError),
}
