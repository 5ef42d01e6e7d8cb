//! The current state of one user's computer, in slices, each with its own hash.
//!
//! A `View` holds no history; that is in the log. Only [`evolve`](crate::evolve) changes it.

mod runs;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use shared_types::payload::capability::Grant;
use shared_types::payload::file::FileNode;
use shared_types::payload::note::Note;
use shared_types::payload::window::Window;
use shared_types::{
    ContentHash, ConversationId, EffectId, EventId, FilePath, GrantId, NoteId, OpId, RootHash, RunId, Seq,
    Taint, TaskId, Timestamp, WindowId,
};
use thiserror::Error;

use crate::effect::EffectKind;
use crate::files::Files;
use crate::run::{DaySpent, Run};
use crate::slice::Slice;

/// A conversation. Its messages are in the log. Only older logs hold conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    pub title: Box<str>,
    pub messages: u64,
    pub last: Seq,
}

/// A tool call that has no result yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub tool: Box<str>,
    pub title: Box<str>,
    /// The event that started it, which causes all others of the call.
    pub event: EventId,
    pub seq: Seq,
    pub network: bool,
    /// The run that it belongs to, and the agent that made it.
    pub run: Option<RunId>,
    pub task: Option<TaskId>,
    pub state: CallState,
}

/// The state of an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallState {
    Running,
    /// A dry run that has ended; its changes wait to be accepted or discarded.
    Held,
}

/// Facts about the computer as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Computer {
    pub owner: Option<Box<str>>,
    /// The newest checkpoint: its commit, and the seq up to which it holds the workspace.
    pub checkpoint: Option<(Box<str>, Seq)>,
    /// The number of operations on files since that checkpoint, and the time of the first.
    pub unsaved: u64,
    pub unsaved_since: Option<Timestamp>,
    /// The newest file event since then, and its operation.
    pub last_file_change: Option<(Seq, OpId)>,
}

/// All state, computed from the log.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub(crate) seq: Seq,
    pub(crate) changes: u64,
    pub files: Files,
    pub windows: Slice<WindowId, Window>,
    /// Settings as JSON text, by key.
    pub settings: Slice<Box<str>, Box<str>>,
    pub notes: Slice<NoteId, Note>,
    pub conversations: Slice<ConversationId, Conversation>,
    /// Operations that are currently undone, with the operation that undid them.
    pub undone: Slice<OpId, OpId>,
    /// Requested effects without a result. When the computer opens, all of them start again with the same id.
    pub pending: Slice<EffectId, EffectKind>,
    /// Open calls, by their operation.
    pub calls: Slice<OpId, Call>,
    /// Runs that have not ended, and the newest ended ones.
    pub runs: Slice<RunId, Run>,
    /// What agents may do without asking again.
    pub grants: Slice<GrantId, Grant>,
    /// Tainted files with their labels: an author of the content had read untrusted text.
    pub tainted_files: Slice<FilePath, Vec<Taint>>,
    /// Contents that were ever written with taint labels. They keep them when they return by a copy or an undo.
    pub tainted_contents: Slice<ContentHash, Vec<Taint>>,
    /// What all runs used, by day since the epoch, for the newest days.
    pub spending: Slice<i64, DaySpent>,
    pub computer: Computer,
}

/// The stored names of slices that were added later. A slice that is empty is left out of the hash and the snapshot, so
/// that older views keep theirs.
const CALLS: &str = "calls";
const RUNS: &str = "runs";
const GRANTS: &str = "grants";
const SPENDING: &str = "spending";
const TAINTED_FILES: &str = "tainted";
const TAINTED_CONTENTS: &str = "labelled";

/// Raised when the hash of a view changes: roots of different versions cannot be compared.
pub const VIEW_VERSION: u32 = 5;

/// One slice as bytes, with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceBytes {
    pub name: &'static str,
    pub root: RootHash,
    pub bytes: Vec<u8>,
}

/// Why a snapshot cannot be used. Snapshots are disposable: the caller replays from an earlier one, or from the start.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SnapshotError {
    #[error("the snapshot has no {0} slice")]
    Missing(&'static str),
    #[error("the snapshot's {0} slice cannot be read")]
    Unreadable(&'static str),
}

impl View {
    /// The last event that was applied.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The number of changes since this view was empty or read from a snapshot.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub fn setting(&self, key: &str) -> Option<serde_json::Value> {
        self.settings.get(key).and_then(|text| serde_json::from_str(text).ok())
    }

    /// The hash of every slice, by name, always in this order. Slices that were added later are left out while empty.
    pub fn roots(&mut self) -> Vec<(&'static str, RootHash)> {
        let computer = Sha256::digest(postcard::to_stdvec(&self.computer).unwrap_or_default());
        let mut roots = vec![
            ("files", RootHash(self.files.nodes.sum().to_bytes())),
            ("windows", RootHash(self.windows.sum().to_bytes())),
            ("settings", RootHash(self.settings.sum().to_bytes())),
            ("notes", RootHash(self.notes.sum().to_bytes())),
            ("conversations", RootHash(self.conversations.sum().to_bytes())),
            ("undone", RootHash(self.undone.sum().to_bytes())),
            ("pending", RootHash(self.pending.sum().to_bytes())),
            ("computer", RootHash(computer.into())),
        ];
        macro_rules! later {
            ($($name:ident => $slice:ident),*) => {
                $(if !self.$slice.is_empty() {
                    roots.push(($name, RootHash(self.$slice.sum().to_bytes())));
                })*
            };
        }
        later!(
            CALLS => calls,
            RUNS => runs,
            GRANTS => grants,
            SPENDING => spending,
            TAINTED_FILES => tainted_files,
            TAINTED_CONTENTS => tainted_contents
        );
        roots
    }

    /// The hash of the whole view.
    pub fn root(&mut self) -> RootHash {
        let mut hasher = Sha256::new();
        hasher.update(b"choir view 1\n");
        for (name, root) in self.roots() {
            hasher.update(name.as_bytes());
            hasher.update(root.as_bytes());
        }
        RootHash(hasher.finalize().into())
    }

    /// The view as bytes, slice by slice. Equal views give equal bytes.
    pub fn to_slices(&mut self) -> Vec<SliceBytes> {
        let roots = self.roots();
        let bytes = |name: &str| match name {
            "files" => encode_sorted(&self.files.nodes),
            "windows" => encode_sorted(&self.windows),
            "settings" => encode_sorted(&self.settings),
            "notes" => encode_sorted(&self.notes),
            "conversations" => encode_sorted(&self.conversations),
            "undone" => encode_sorted(&self.undone),
            "pending" => encode_sorted(&self.pending),
            CALLS => encode_sorted(&self.calls),
            RUNS => encode_sorted(&self.runs),
            GRANTS => encode_sorted(&self.grants),
            SPENDING => encode_sorted(&self.spending),
            TAINTED_FILES => encode_sorted(&self.tainted_files),
            TAINTED_CONTENTS => encode_sorted(&self.tainted_contents),
            _ => postcard::to_stdvec(&self.computer).unwrap_or_default(),
        };
        roots.into_iter().map(|(name, root)| SliceBytes { name, root, bytes: bytes(name) }).collect()
    }

    /// Decodes a view. The caller must compare its root with the recorded one.
    pub fn from_slices<'a>(
        seq: Seq,
        slice: impl Fn(&'static str) -> Option<&'a [u8]>,
    ) -> Result<Self, SnapshotError> {
        fn read<T: DeserializeOwned>(name: &'static str, bytes: Option<&[u8]>) -> Result<T, SnapshotError> {
            let bytes = bytes.ok_or(SnapshotError::Missing(name))?;
            postcard::from_bytes(bytes).map_err(|_| SnapshotError::Unreadable(name))
        }
        macro_rules! slice {
            ($name:expr) => {
                Slice::from_entries(read::<Vec<_>>($name, slice($name))?.into_iter().collect())
            };
        }
        macro_rules! later {
            ($name:expr) => {
                if slice($name).is_some() { slice!($name) } else { Slice::default() }
            };
        }
        let nodes: Slice<FilePath, FileNode> = slice!("files");
        Ok(Self {
            seq,
            changes: 0,
            files: Files::from_nodes(nodes),
            windows: slice!("windows"),
            settings: slice!("settings"),
            notes: slice!("notes"),
            conversations: slice!("conversations"),
            undone: slice!("undone"),
            pending: slice!("pending"),
            calls: later!(CALLS),
            runs: later!(RUNS),
            grants: later!(GRANTS),
            spending: later!(SPENDING),
            tainted_files: later!(TAINTED_FILES),
            tainted_contents: later!(TAINTED_CONTENTS),
            computer: read("computer", slice("computer"))?,
        })
    }

    /// About how many entries a snapshot would hold.
    pub fn weight(&self) -> usize {
        self.files.len()
            + self.windows.len()
            + self.notes.len()
            + self.conversations.len()
            + self.undone.len()
            + self.calls.len()
            + self.runs.len()
            + self.grants.len()
    }
}

fn encode_sorted<K, V>(slice: &Slice<K, V>) -> Vec<u8>
where
    K: std::hash::Hash + Eq + Ord + Clone + Serialize,
    V: Clone + Serialize,
{
    postcard::to_stdvec(&slice.sorted()).unwrap_or_default()
}
