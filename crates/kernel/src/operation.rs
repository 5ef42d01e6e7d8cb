//! What an operation did, taken as a whole: the first state before it and the last state after it, key by key.
//!
//! Every reversible event carries what was there before, so this reads the operation's own events and no others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::payload::note::{Note, NoteEvent};
use shared_types::payload::revert::{Redo, RevertEvent, Undo};
use shared_types::payload::setting::SettingEvent;
use shared_types::payload::window::{Window, WindowEvent};
use shared_types::{Event, FilePath, NoteId, OpId, Payload, WindowId};

use crate::moves::Moves;

/// Before and after, for one key. Where something else changed it between two parts of the operation, the way back
/// must not take that with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Net<V> {
    pub(crate) before: Option<V>,
    pub(crate) after: Option<V>,
    /// What one part left, and what the next one found instead.
    between: Vec<(Option<V>, Option<V>)>,
}

impl<V: PartialEq> Net<V> {
    fn matters(&self) -> bool {
        self.is_torn() || self.before != self.after
    }

    pub(crate) fn is_torn(&self) -> bool {
        !self.between.is_empty()
    }

    /// What each part found and what it left, the last one first.
    pub(crate) fn parts_back(&self) -> impl Iterator<Item = (Option<&V>, Option<&V>)> {
        let found = self.between.iter().rev().map(|(_, found)| found).chain([&self.before]);
        let left = [&self.after].into_iter().chain(self.between.iter().rev().map(|(left, _)| left));
        found.zip(left).map(|(found, left)| (found.as_ref(), left.as_ref()))
    }
}

pub(crate) type NetMap<K, V> = BTreeMap<K, Net<V>>;

fn note<K: Ord, V: PartialEq>(map: &mut NetMap<K, V>, key: K, before: Option<V>, after: Option<V>) {
    match map.entry(key) {
        Entry::Vacant(slot) => drop(slot.insert(Net { before, after, between: Vec::new() })),
        Entry::Occupied(slot) => {
            let net = slot.into_mut();
            let left = std::mem::replace(&mut net.after, after);
            if left != before {
                net.between.push((left, before));
            }
        }
    }
}

/// How an operation stands to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It did something of its own.
    Ordinary,
    /// It took `root` back, and these steps of it if that is a run.
    Undo { root: OpId, steps: Vec<OpId> },
    /// It brought `root` back, and these steps.
    Redo { root: OpId, steps: Vec<OpId> },
}

/// The net effect of an operation on everything that can be undone.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
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
            kind: Kind::Ordinary,
            files: BTreeMap::new(),
            moves: Moves::default(),
            windows: BTreeMap::new(),
            settings: BTreeMap::new(),
            notes: BTreeMap::new(),
        };
        let (mut changes, mut told) = (Vec::new(), Vec::new());
        for event in events {
            if let Payload::File(event) = &event.payload {
                changes.push(event.changes());
            }
            if let Payload::Revert(
                RevertEvent::Undo(Undo { moves, .. }) | RevertEvent::Redo(Redo { moves, .. }),
            ) = &event.payload
            {
                told.extend(moves);
            }
            op.add(&event.payload);
        }
        let changes = || changes.iter().flat_map(|changes| changes.iter());
        changes().for_each(|change| add_change(&mut op.files, change));
        op.files.retain(|_, net| net.matters());
        op.moves = Moves::of(changes(), &told, &op.files);
        op.windows.retain(|_, net| net.matters());
        op.settings.retain(|_, net| net.matters());
        op.notes.retain(|_, net| net.matters());
        op
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.windows.is_empty() && self.settings.is_empty() && self.notes.is_empty()
    }

    fn add(&mut self, payload: &Payload) {
        match payload {
            Payload::Window(WindowEvent::Set(p)) => {
                note(&mut self.windows, p.window, p.prev.clone(), Some(p.state.clone()));
            }
            Payload::Window(WindowEvent::Close(p)) => {
                note(&mut self.windows, p.window, Some(p.prev.clone()), None)
            }
            Payload::Setting(SettingEvent::Set(p)) => {
                note(&mut self.settings, p.key.clone(), p.prev.as_ref().map(json), Some(json(&p.value)));
            }
            Payload::Setting(SettingEvent::Clear(p)) => {
                note(&mut self.settings, p.key.clone(), Some(json(&p.prev)), None);
            }
            Payload::Note(NoteEvent::Write(p)) => {
                note(&mut self.notes, p.note, p.prev.clone(), Some(p.state.clone()));
            }
            Payload::Note(NoteEvent::Delete(p)) => note(&mut self.notes, p.note, Some(p.prev.clone()), None),
            Payload::Revert(RevertEvent::Undo(p)) => {
                self.kind = Kind::Undo { root: p.root, steps: p.steps.clone() };
            }
            Payload::Revert(RevertEvent::Redo(p)) => {
                self.kind = Kind::Redo { root: p.root, steps: p.steps.clone() };
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
        FileChange::Write(p) => note(files, p.path.clone(), p.prev.clone(), Some(p.node.clone())),
        FileChange::Delete(p) => note(files, p.path.clone(), Some(p.prev.clone()), None),
        FileChange::Move(p) => {
            note(files, p.from.clone(), Some(p.node.clone()), None);
            note(files, p.to.clone(), None, Some(p.node.clone()));
        }
    }
}

/// What a run of events did to one path, taken as a whole.
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
        .map(|(path, Net { before, after, .. })| FileEffect { path, before, after })
        .collect()
}

/// What stands at every path that some events touched, once they have happened.
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
