//! A conflict as a value: its subject and both sides. Nothing changes until a choice is made.

use serde::{Deserialize, Serialize};
use shared_types::Subject;
use shared_types::payload::file::FileNode;
use shared_types::payload::note::Note;
use shared_types::payload::window::Window;
use thiserror::Error;

/// One side of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConflictSide {
    Absent,
    File(FileNode),
    /// Several files at once.
    Several(u64),
    Setting(serde_json::Value),
    Window(Window),
    Note(Note),
}

/// Two states that exclude each other: the current one, and the one that an undo would restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub subject: Subject,
    pub today: ConflictSide,
    pub undone: ConflictSide,
    /// A [`ConflictReason`] in words.
    pub reason: String,
}

/// Why two states exclude each other. These are the words that the person reads, on screen and on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum ConflictReason {
    #[error("it was changed since")]
    Changed,
    #[error("something else changed it in the meantime")]
    ChangedMeanwhile,
    #[error("its mode was changed since")]
    ModeChanged,
    #[error("it was deleted or moved since")]
    Gone,
    #[error("it was changed since it was created")]
    ChangedSinceCreated,
    #[error("something else was put there since")]
    Replaced,
    #[error("the same lines were changed since")]
    SameLines,
    #[error("the repository was changed since, and repositories are never merged")]
    RepositoryChanged,
    #[error("a file is now where a folder is needed")]
    FileInTheWay,
    #[error("a folder with other files is there now")]
    FolderInTheWay,
}
