//! The net effect of an operation: the state before it and the state after it, key by key.
//!
//! Every reversible event carries the previous state, so this needs only the operation's own events.

use std::collections::BTreeMap;

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::payload::note::{Note, NoteEvent};
use shared_types::payload::revert::{Redo, RevertEvent, Undo};
use shared_types::payload::setting::SettingEvent;
use shared_types::payload::window::{Window, WindowEvent};
use shared_types::{Event, FilePath, NoteId, OpId, Payload, WindowId};

use crate::moves::Moves;
use crate::net_change::{NetChange, NetMap, add_net};

/// Whether an operation is an undo or a redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperationKind {
    /// Neither.
    Ordinary,
    /// It undid `root`, and these steps if that is a run.
    Undo { root: OpId, steps: Vec<OpId> },
    /// It redid `root`, and these steps.
    Redo { root: OpId, steps: Vec<OpId> },
}

/// The net effect of an operation on everything that can be undone.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) kind: OperationKind,
    pub(crate) files: NetMap<FilePath, FileNode>,
    pub(crate) moves: Moves,
    pub(crate) windows: NetMap<WindowId, Window>,
    /// Settings as JSON text, as a view keeps them.
    pub(crate) settings: NetMap<Box<str>, Box<str>>,
    pub(crate) notes: NetMap<NoteId, Note>,
}

impl Operation {
    pub(crate) fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut op = Self {
            kind: OperationKind::Ordinary,
            files: BTreeMap::new(),
            moves: Moves::default(),
            windows: BTreeMap::new(),
            settings: BTreeMap::new(),
            notes: BTreeMap::new(),
        };
        let (mut changes, mut listed) = (Vec::new(), Vec::new());
        for event in events {
            if let Payload::File(event) = &event.payload {
                changes.push(event.changes());
            }
            if let Payload::Revert(
                RevertEvent::Undo(Undo { moves, .. }) | RevertEvent::Redo(Redo { moves, .. }),
            ) = &event.payload
            {
                listed.extend(moves);
            }
            op.add(&event.payload);
        }
        let changes = || changes.iter().flat_map(|changes| changes.iter());
        changes().for_each(|change| add_change(&mut op.files, change));
        op.files.retain(|_, net| net.has_effect());
        op.moves = Moves::of(changes(), &listed, &op.files);
        op.windows.retain(|_, net| net.has_effect());
        op.settings.retain(|_, net| net.has_effect());
        op.notes.retain(|_, net| net.has_effect());
        op
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.windows.is_empty() && self.settings.is_empty() && self.notes.is_empty()
    }

    fn add(&mut self, payload: &Payload) {
        match payload {
            Payload::Window(WindowEvent::Set(p)) => {
                add_net(&mut self.windows, p.window, p.prev.clone(), Some(p.state.clone()));
            }
            Payload::Window(WindowEvent::Close(p)) => {
                add_net(&mut self.windows, p.window, Some(p.prev.clone()), None)
            }
            Payload::Setting(SettingEvent::Set(p)) => {
                add_net(&mut self.settings, p.key.clone(), p.prev.as_ref().map(json), Some(json(&p.value)));
            }
            Payload::Setting(SettingEvent::Clear(p)) => {
                add_net(&mut self.settings, p.key.clone(), Some(json(&p.prev)), None);
            }
            Payload::Note(NoteEvent::Write(p)) => {
                add_net(&mut self.notes, p.note, p.prev.clone(), Some(p.state.clone()));
            }
            Payload::Note(NoteEvent::Delete(p)) => {
                add_net(&mut self.notes, p.note, Some(p.prev.clone()), None);
            }
            Payload::Revert(RevertEvent::Undo(p)) => {
                self.kind = OperationKind::Undo { root: p.root, steps: p.steps.clone() };
            }
            Payload::Revert(RevertEvent::Redo(p)) => {
                self.kind = OperationKind::Redo { root: p.root, steps: p.steps.clone() };
            }
            Payload::File(_)
            | Payload::Revert(RevertEvent::Restore(_))
            | Payload::Message(_)
            | Payload::Checkpoint(_)
            | Payload::Tool(_)
            | Payload::Run(_)
            | Payload::Task(_)
            | Payload::Llm(_)
            | Payload::Capability(_)
            | Payload::User(_)
            | Payload::System(_)
            | Payload::Unknown(_) => {}
        }
    }
}

fn json(value: &serde_json::Value) -> Box<str> {
    value.to_string().into()
}

fn add_change(files: &mut NetMap<FilePath, FileNode>, change: &FileChange) {
    match change {
        FileChange::Write(p) => add_net(files, p.path.clone(), p.prev.clone(), Some(p.node.clone())),
        FileChange::Delete(p) => add_net(files, p.path.clone(), Some(p.prev.clone()), None),
        FileChange::Move(p) => {
            add_net(files, p.from.clone(), Some(p.node.clone()), None);
            add_net(files, p.to.clone(), None, Some(p.node.clone()));
        }
    }
}

/// The net effect of some events on one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEffect {
    pub path: FilePath,
    pub before: Option<FileNode>,
    pub after: Option<FileNode>,
}

/// The net effect of some events on files, by path.
pub fn file_effects<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<FileEffect> {
    net_files(events)
        .into_iter()
        .filter(|(_, net)| net.before != net.after)
        .map(|(path, NetChange { before, after, .. })| FileEffect { path, before, after })
        .collect()
}

/// The node after some events at every path that they touched.
pub fn touched_files<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<(FilePath, Option<FileNode>)> {
    net_files(events).into_iter().map(|(path, net)| (path, net.after)).collect()
}

fn net_files<'a>(events: impl IntoIterator<Item = &'a Event>) -> NetMap<FilePath, FileNode> {
    let mut files = BTreeMap::new();
    for event in events {
        if let Payload::File(event) = &event.payload {
            event.changes().iter().for_each(|change| add_change(&mut files, change));
        }
    }
    files
}
