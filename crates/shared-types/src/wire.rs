//! What the server of a computer and its desktop say to each other, over HTTP and over the one WebSocket of a tab.
//!
//! Events travel in their own JSON form (see [`StoredEvent`](crate::StoredEvent)). Everything else is here, so that a
//! field that one side forgets does not compile on the other.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::payload::file::FileNode;
use crate::payload::window::Window;
use crate::{
    CommandId, ContentHash, FilePath, OpId, RootHash, Seq, Source, TerminalId, Timestamp, UserId, WindowId,
};

/// Who is signed in, and what this computer offers them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Me {
    pub user: UserId,
    pub name: String,
    /// Whether this is the person who owns the machine.
    pub owner: bool,
    /// Whether a plain shell on the machine is offered.
    pub shell: bool,
    pub version: String,
}

/// The slices of the view that the desktop holds, at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopState {
    pub seq: Seq,
    pub root: RootHash,
    pub windows: Vec<(WindowId, Window)>,
    pub settings: Vec<(Box<str>, Value)>,
    /// The newest checkpoint, and how many operations on files came after it.
    pub checkpoint: Option<(Box<str>, Seq)>,
    pub unsaved: u64,
}

/// What the server says over the WebSocket, as text. Terminal output comes in binary frames: see [`TerminalFrame`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FromServer {
    /// Where the client starts, or starts again because it was too far behind.
    State { state: Box<DesktopState> },
    /// The next event, exactly as the log has it.
    Event {
        #[cfg_attr(feature = "schema", schemars(with = "Value"))]
        event: Box<RawValue>,
    },
    /// Everything up to here was sent.
    Through { seq: Seq },
    /// Lists, search and the disk are up to date with the log as of here.
    Projected { seq: Seq },
    /// Output of a terminal begins or goes on from here: bytes since it was started.
    Attached { terminal: TerminalId, offset: u64 },
    /// A terminal ended by itself, or was closed.
    TerminalEnded { terminal: TerminalId, code: Option<i32> },
    /// Something the person should know.
    Notice { text: String },
    /// What the client sent could not be understood; the connection goes on.
    Refused { detail: String },
}

/// What a client says over the WebSocket, as text. Terminal input goes in binary frames.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromClient {
    /// Sends the output of a terminal from a place on; what is no longer kept is left out.
    Attach {
        terminal: TerminalId,
        offset: u64,
    },
    Detach {
        terminal: TerminalId,
    },
    Resize {
        terminal: TerminalId,
        columns: u16,
        rows: u16,
    },
    /// So many bytes of output have been shown; the server sends only a window's worth ahead of this.
    Shown {
        terminal: TerminalId,
        bytes: u64,
    },
}

/// A binary frame: sixteen bytes that name the terminal, then what it wrote or what was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalFrame<'a> {
    pub terminal: TerminalId,
    pub bytes: &'a [u8],
}

impl<'a> TerminalFrame<'a> {
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        let (id, bytes) = frame.split_first_chunk::<16>()?;
        Some(Self { terminal: TerminalId::from_bytes(*id), bytes })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(16 + self.bytes.len());
        frame.extend_from_slice(self.terminal.as_bytes());
        frame.extend_from_slice(self.bytes);
        frame
    }
}

/// A gesture on the desktop, with the ids that make a resend harmless.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gesture {
    pub command: CommandId,
    pub op: OpId,
    pub action: DesktopAction,
}

/// What a gesture does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DesktopAction {
    SetWindow { window: WindowId, state: Window },
    CloseWindow { window: WindowId },
    SetSetting { key: Box<str>, value: Value },
    ClearSetting { key: Box<str> },
}

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    pub path: FilePath,
    pub node: FileNode,
    /// When it last changed.
    pub ts: Timestamp,
    pub seq: Seq,
}

/// A folder: what is in it, folders first, each kind by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listing {
    /// Absent for the workspace itself.
    pub path: Option<FilePath>,
    pub entries: Vec<Entry>,
    /// How far the list has followed the log.
    pub seq: Seq,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    pub path: FilePath,
    pub size: u64,
    pub matched: Matched,
}

/// Where the words stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Matched {
    Name,
    Text,
}

/// What a file was at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    pub seq: Seq,
    pub op: OpId,
    pub ts: Timestamp,
    pub source: Source,
    pub actor: String,
    pub label: String,
    /// Absent where it was deleted or moved away.
    pub node: Option<FileNode>,
}

/// One operation as a row of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operation {
    pub op: OpId,
    pub first: Seq,
    pub last: Seq,
    pub ts: Timestamp,
    pub source: Source,
    pub actor: String,
    pub family: String,
    pub label: String,
    pub events: u64,
    pub files: u64,
    pub reversible: bool,
    pub undone: bool,
}

/// Operations, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operations {
    pub rows: Vec<Operation>,
    /// How many there are that fit the filter.
    pub total: u64,
}

/// One file that an operation changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    pub path: FilePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileNode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileNode>,
    /// In unified form, where both sides are text and not too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What a change came to, or would come to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Seq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Seq>,
    /// The operation that was undone or redone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<OpId>,
    /// True if this command was answered before.
    pub resent: bool,
    /// True if nothing was done, only shown.
    pub preview: bool,
    /// The first changes; `total` counts all of them.
    pub changes: Vec<Change>,
    pub total: u64,
    /// Changes to windows, settings and notes, and anything the person should know.
    pub notes: Vec<String>,
}

/// An operation with what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationDetail {
    pub operation: Operation,
    pub changes: Vec<Change>,
    pub total: u64,
    pub notes: Vec<String>,
}

/// A body of `POST …/undo` and `…/redo`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Revert {
    #[serde(default)]
    pub preview: bool,
    /// For every conflict: keep today's state, or take the one from before.
    #[serde(default)]
    pub conflicts: Option<Side>,
    /// The same for single paths.
    #[serde(default)]
    pub paths: Vec<(FilePath, Side)>,
}

/// A side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Keep,
    Take,
}

/// A conflict as the person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clash {
    /// A path, or the name of a setting, window or note.
    pub subject: String,
    /// The path, where it is one, to choose a side for.
    pub path: Option<FilePath>,
    pub reason: String,
    /// What is there today and what undoing would put there, as text where they are text.
    pub today: Option<String>,
    pub undone: Option<String>,
}

/// A body of `POST /restore`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RestoreTo {
    pub seq: Seq,
    #[serde(default)]
    pub preview: bool,
}

/// A body of the routes that move and copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FromTo {
    pub from: FilePath,
    pub to: FilePath,
}

/// A body of the routes that take one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AtPath {
    pub path: FilePath,
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    pub commit: String,
    pub seq: Seq,
    pub ts: Timestamp,
    pub message: String,
}

/// A body of `POST /checkpoints`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCheckpoint {
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub message: String,
}

/// What differs between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    pub changes: Vec<Change>,
    pub total: u64,
}

/// A terminal that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Terminal {
    pub id: TerminalId,
    pub started: Timestamp,
    pub columns: u16,
    pub rows: u16,
}

/// A body of `POST /terminals`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewTerminal {
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 1000)))]
    pub columns: u16,
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 1000)))]
    pub rows: u16,
}

/// What is kept where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Storage {
    pub events: u64,
    pub operations: u64,
    pub files: u64,
    /// Bytes of the files as they are now.
    pub workspace: u64,
    /// Bytes of the log with its contents, of the read models, of large contents, and of checkpoints.
    pub log: u64,
    pub views: u64,
    pub blobs: u64,
    pub checkpoints: u64,
}

/// `application/problem+json`: why a request was not done. `docs/errors.md` explains every code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub code: String,
    /// What happened, what was kept, and what to do.
    pub detail: String,
    /// For conflicts of undo: both sides of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Clash>,
    /// For a write whose base is stale: what is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<ContentHash>,
}

/// A body of `POST /auth/link`: the secret of a sign-in link.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub secret: String,
}

/// A session of the person's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    pub id: String,
    pub current: bool,
    pub created: Timestamp,
    pub seen: Timestamp,
    pub browser: String,
    pub address: String,
}

/// A passkey of the person's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Passkey {
    pub id: String,
    pub name: String,
    pub created: Timestamp,
    pub used: Option<Timestamp>,
}

/// A token for scripts. Its secret is shown once, when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiToken {
    pub id: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub created: Timestamp,
    pub used: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A body of `POST /auth/tokens`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 100)))]
    pub name: String,
    pub scopes: Vec<Scope>,
    #[serde(default)]
    pub days: Option<u32>,
}

/// What a token, or a route, is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Read,
    Write,
    Terminal,
    /// Sessions, passkeys, tokens, invitations: never given to a token.
    Account,
}

/// One line of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLine {
    pub ts: Timestamp,
    pub what: String,
    pub address: String,
    pub detail: String,
}
