//! The subject of a conflict or a change: what a person chooses a side for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FilePath, NoteId, WindowId};

/// The subject of a conflict or a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    File(FilePath),
    /// A git repository of the user inside the workspace: never merged, only taken or kept as a whole.
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
