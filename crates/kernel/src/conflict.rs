//! A conflict as a value: what it is about, and both sides of it. It changes nothing until somebody chooses.

use serde::{Deserialize, Serialize};
use shared_types::Subject;
use shared_types::payload::file::FileNode;
use shared_types::payload::note::Note;
use shared_types::payload::window::Window;

/// One side of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Absent,
    File(FileNode),
    /// Several files at once.
    Several(u64),
    Setting(serde_json::Value),
    Window(Window),
    Note(Note),
}

/// Two states that cannot both be: today's, and the one that an undo would put there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub subject: Subject,
    pub today: State,
    pub undone: State,
    pub reason: String,
}
