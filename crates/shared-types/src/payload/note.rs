//! `note.*`: notes of agents, in older logs. No command makes them any more, but undo and restore still cover them.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, NoteId};

/// The state of a note.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Note {
    pub title: Box<str>,
    pub body: ContentRef,
}

/// A note was written or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteWrite {
    pub note: NoteId,
    pub state: Note,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<Note>,
}

/// A note was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteDelete {
    pub note: NoteId,
    pub prev: Note,
}

events! {
    /// Notes of agents. Only older logs hold them; nothing but undo and restore records them any more.
    NoteEvent {
        /// A note was written or changed.
        "note.write" v 1 Reversible => Write(NoteWrite),
        /// A note was deleted.
        "note.delete" v 1 Reversible => Delete(NoteDelete),
    }
}
