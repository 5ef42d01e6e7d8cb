//! A conflict as a value: its subject and both sides. Nothing changes until a choice is made.

use serde::{Deserialize, Serialize};
use shared_types::Subject;
use shared_types::payload::file::FileNode;
use shared_types::payload::note::Note;
use shared_types::payload::window::Window;

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
    pub reason: String,
}
