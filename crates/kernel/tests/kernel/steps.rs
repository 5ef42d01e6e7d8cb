//! Short names for the steps of a table. In texts `|` stands for the end of a line.

use kernel::command::OutsideEdit;
use kernel::{Action, Base, View};
use shared_types::payload::file::FileNode;
use shared_types::payload::message::{ConversationStart, MessagePost, Role};
use shared_types::payload::note::{Note, NoteDelete, NoteWrite};
use shared_types::payload::tool::{RequestVerdict, ToolCall, ToolReport, ToolRequest, ToolStatus};
use shared_types::payload::user::UserRename;
use shared_types::payload::window::{Rect, Window, WindowMode};
use shared_types::{
    ContentRef, ConversationId, EffectId, FilePath, MessageId, NoteId, OpId, Payload, RunId, Source, Taint,
    Timestamp, WindowId,
};

/// An event that no command makes any more. Logs still hold such events, so the kernel applies them for ever, and
/// undo and restore still cover notes.
#[derive(Debug, Clone)]
pub(crate) enum OldEvent {
    WriteNote(u8, Box<str>),
    DeleteNote(u8),
    StartConversation(u8, Box<str>),
    PostMessage(u8, ContentRef),
    RenameUser(Box<str>),
}

impl OldEvent {
    /// The payload that an older version recorded on this view; nothing if there was nothing to change.
    pub(crate) fn payload(&self, view: &View) -> Option<Payload> {
        Some(match self {
            Self::WriteNote(n, title) => {
                let (note, state) = (note_id(*n), note_of(title));
                let prev = view.notes.get(&note).cloned();
                if prev.as_ref() == Some(&state) {
                    return None;
                }
                NoteWrite { note, state, prev }.into()
            }
            Self::DeleteNote(n) => {
                let note = note_id(*n);
                NoteDelete { note, prev: view.notes.get(&note)?.clone() }.into()
            }
            Self::StartConversation(n, title) => {
                let conversation = conversation_id(*n);
                if view.conversations.contains(&conversation) {
                    return None;
                }
                ConversationStart { conversation, title: title.clone() }.into()
            }
            Self::PostMessage(n, body) => MessagePost {
                conversation: conversation_id(*n),
                message: MessageId::from_bytes([*n; 16]),
                role: Role::Agent,
                body: *body,
                reply_to: None,
            }
            .into(),
            Self::RenameUser(name) => {
                let prev = view.computer.owner.clone().unwrap_or_default();
                UserRename { name: name.clone(), prev }.into()
            }
        })
    }
}

/// What a step does: it submits an action, or appends an event as an older version recorded it.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "tables of tests match on the action in place")]
pub(crate) enum Act {
    Do(Action),
    Record(OldEvent),
}

/// One line of a table: an action and the bytes that come with it; in a run, with labels and at a time, if the table
/// says so.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) act: Act,
    pub(crate) contents: Vec<Vec<u8>>,
    pub(crate) run: Option<RunId>,
    pub(crate) taint: Vec<Taint>,
    pub(crate) ts: Option<Timestamp>,
    pub(crate) source: Source,
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Act::Do(action).into()
    }
}

impl From<OldEvent> for Step {
    fn from(event: OldEvent) -> Self {
        Act::Record(event).into()
    }
}

impl From<Act> for Step {
    fn from(act: Act) -> Self {
        Self { act, contents: Vec::new(), run: None, taint: Vec::new(), ts: None, source: Source::User }
    }
}

impl Step {
    /// The action of a step that submits one.
    pub(crate) fn into_action(self) -> Action {
        match self.act {
            Act::Do(action) => action,
            Act::Record(event) => panic!("{event:?} is recorded, not submitted"),
        }
    }

    pub(crate) fn within(self, run: RunId) -> Self {
        Self { run: Some(run), ..self }
    }

    pub(crate) fn tainted(self, label: &Taint) -> Self {
        Self { taint: vec![label.clone()], ..self }
    }

    /// So many milliseconds after the epoch.
    pub(crate) fn at(self, millis: i64) -> Self {
        Self { ts: Some(Timestamp::from_millis(millis)), ..self }
    }
}

pub(crate) fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

/// The bytes of a text in a table.
pub(crate) fn text(lines: &str) -> Vec<u8> {
    match lines {
        "" => Vec::new(),
        lines => format!("{}\n", lines.replace('|', "\n")).into_bytes(),
    }
}

/// The node of a file with such a text.
pub(crate) fn file(lines: &str) -> FileNode {
    FileNode::file(ContentRef::of(&text(lines)), FileNode::DEFAULT_MODE)
}

pub(crate) fn link_node(target: &str) -> FileNode {
    FileNode::Symlink { target: target.into() }
}

pub(crate) fn put(at: &str, node: FileNode) -> Step {
    Action::WriteFile { path: path(at), node, base: Base::Any }.into()
}

pub(crate) fn write_bytes(at: &str, bytes: &[u8]) -> Step {
    let node = FileNode::file(ContentRef::of(bytes), FileNode::DEFAULT_MODE);
    Step { contents: vec![bytes.to_vec()], ..put(at, node) }
}

pub(crate) fn write(at: &str, lines: &str) -> Step {
    write_bytes(at, &text(lines))
}

pub(crate) fn write_mode(at: &str, lines: &str, mode: u16) -> Step {
    let bytes = text(lines);
    let node = FileNode::file(ContentRef::of(&bytes), mode);
    Step { contents: vec![bytes], ..put(at, node) }
}

pub(crate) fn write_on(at: &str, lines: &str, base: Base) -> Step {
    let bytes = text(lines);
    let node = FileNode::file(ContentRef::of(&bytes), FileNode::DEFAULT_MODE);
    Step { contents: vec![bytes], ..Action::WriteFile { path: path(at), node, base }.into() }
}

pub(crate) fn folder(at: &str) -> Step {
    put(at, FileNode::Folder)
}

pub(crate) fn link(at: &str, target: &str) -> Step {
    put(at, link_node(target))
}

pub(crate) fn delete(at: &str) -> Step {
    Action::DeletePaths { paths: vec![path(at)] }.into()
}

pub(crate) fn rename(from: &str, to: &str) -> Step {
    Action::MovePaths { moves: vec![(path(from), path(to))] }.into()
}

/// One edit on disk: at a path, what was known there and what is there now.
pub(crate) type Edit<'a> = (&'a str, Option<FileNode>, Option<FileNode>);

pub(crate) fn outside(edits: &[Edit<'_>]) -> Vec<OutsideEdit> {
    let edit =
        |(at, base, now): &Edit<'_>| OutsideEdit { path: path(at), base: base.clone(), now: now.clone() };
    edits.iter().map(edit).collect()
}

pub(crate) fn capture(edits: &[Edit<'_>]) -> Step {
    Action::CaptureEdits { edits: outside(edits) }.into()
}

/// Starts a command.
pub(crate) fn call(title: &str) -> Step {
    let input = ContentRef::of(title.as_bytes());
    Action::StartCall(ToolCall {
        tool: "exec".into(),
        title: title.into(),
        input,
        network: false,
        task: None,
    })
    .into()
}

pub(crate) fn request(call: OpId, host: &str) -> Step {
    let request = ToolRequest {
        method: "GET".into(),
        host: host.into(),
        port: 443,
        verdict: RequestVerdict::Allowed,
        reason: None,
        sent: 10,
        received: 20,
    };
    Action::RecordRequest { call, request }.into()
}

pub(crate) fn hold(changes: u64) -> Step {
    Action::HoldCall { report: ToolReport::default(), changes, code: Some(0) }.into()
}

/// Ends a command with this status and these edits.
pub(crate) fn end(status: ToolStatus, edits: &[Edit<'_>]) -> Step {
    Action::FinishCall { status, report: ToolReport::default(), edits: outside(edits) }.into()
}

pub(crate) fn exit(edits: &[Edit<'_>]) -> Step {
    end(ToolStatus::Exited { code: 0 }, edits)
}

/// The same step with the bytes of these texts.
pub(crate) fn with(step: Step, texts: &[&str]) -> Step {
    Step { contents: texts.iter().map(|lines| text(lines)).collect(), ..step }
}

pub(crate) fn window_id(n: u8) -> WindowId {
    WindowId::from_bytes([n; 16])
}

pub(crate) fn window_at(title: &str, x: i32) -> Window {
    let rect = Rect { x, y: 0, width: 800, height: 600 };
    Window { app: "files".into(), title: title.into(), rect, mode: WindowMode::Normal, z: 1, shows: None }
}

pub(crate) fn window(n: u8, title: &str) -> Step {
    Action::SetWindow { window: window_id(n), state: window_at(title, 0) }.into()
}

pub(crate) fn close(n: u8) -> Step {
    Action::CloseWindow { window: window_id(n) }.into()
}

pub(crate) fn set(key: &str, value: impl Into<serde_json::Value>) -> Step {
    Action::SetSetting { key: key.into(), value: value.into() }.into()
}

pub(crate) fn clear(key: &str) -> Step {
    Action::ClearSetting { key: key.into() }.into()
}

pub(crate) fn note_id(n: u8) -> NoteId {
    NoteId::from_bytes([n; 16])
}

pub(crate) fn note_of(title: &str) -> Note {
    Note { title: title.into(), body: ContentRef::of(title.as_bytes()) }
}

pub(crate) fn note(n: u8, title: &str) -> Step {
    OldEvent::WriteNote(n, title.into()).into()
}

pub(crate) fn forget_note(n: u8) -> Step {
    OldEvent::DeleteNote(n).into()
}

pub(crate) fn conversation_id(n: u8) -> ConversationId {
    ConversationId::from_bytes([n; 16])
}

pub(crate) fn start(n: u8, title: &str) -> Step {
    OldEvent::StartConversation(n, title.into()).into()
}

pub(crate) fn effect_id(n: u8) -> EffectId {
    EffectId::from_bytes([n; 16])
}
