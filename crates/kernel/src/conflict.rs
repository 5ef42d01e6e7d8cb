//! A conflict as a value: what it is about, and both sides of it. It changes nothing until somebody chooses.

use std::fmt;

use serde::{Deserialize, Serialize};
use shared_types::payload::file::FileNode;
use shared_types::payload::note::Note;
use shared_types::payload::window::Window;
use shared_types::{FilePath, NoteId, WindowId};

/// What a conflict, or a change, is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    File(FilePath),
    /// A git repository of the user's inside the workspace: never merged, taken or kept as a whole.
    Repository(FilePath),
    Setting(Box<str>),
    Window(WindowId),
    Note(NoteId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{path}"),
            Self::Repository(path) => write!(f, "{path} (a git repository)"),
            Self::Setting(key) => write!(f, "setting {key}"),
            Self::Window(id) => write!(f, "window {id}"),
            Self::Note(id) => write!(f, "note {id}"),
        }
    }
}

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
