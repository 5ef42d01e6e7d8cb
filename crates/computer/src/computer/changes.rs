//! Changes as lists and diffs, of what happened or of a preview.

use std::collections::BTreeSet;

use event_log::replay::{advance, view_at};
use event_log::writer::{Mode, Outcome};
use event_log::{EventLog, ReadError, read_content};
use kernel::View;
use kernel::diff::{TextDiff, diff};
use shared_types::payload::file::{FileChange, FileNode};
use shared_types::{ContentHash, Event, FilePath, OpId, Payload, Seq};

use super::Computer;
use crate::protocol::{Change, ChangeResult};

/// How many changes are listed, and how many of them with their diffs.
const MAX_LISTED_CHANGES: usize = 1000;
const MAX_DIFFS: usize = 200;
/// Larger files are listed without a diff.
const DIFF_LIMIT: u64 = 256 * 1024;

impl Computer {
    pub(crate) fn describe(&self, op: OpId, outcome: &Outcome, mode: Mode) -> ChangeResult {
        let staged_bytes = |hash: &ContentHash| {
            outcome.decision.contents.iter().find(|(known, _)| known == hash).map(|(_, bytes)| bytes.clone())
        };
        let events = &outcome.decision.events;
        let with_diffs = mode == Mode::Preview;
        let (changes, total) = changes(&**self.log(), events, &staged_bytes, with_diffs);
        ChangeResult {
            op: (!events.is_empty()).then(|| events.first().map_or(op, |event| event.op)),
            first: outcome.appended.map(|a| a.first),
            last: outcome.appended.map(|a| a.last),
            target: None,
            resent: outcome.resent,
            preview: with_diffs,
            changes,
            total,
            notes: other_changes(events),
        }
    }
}

/// The file changes of some events, the first of them with their diffs, and how many there are.
pub fn changes(
    log: &dyn EventLog,
    events: &[Event],
    staged_bytes: &dyn Fn(&ContentHash) -> Option<Vec<u8>>,
    with_diffs: bool,
) -> (Vec<Change>, u64) {
    let mut listed = Vec::new();
    let mut total = 0;
    for event in events {
        let Payload::File(file) = &event.payload else { continue };
        for change in file.changes().iter() {
            total += 1;
            if listed.len() < MAX_LISTED_CHANGES {
                listed.push(without_diff(change.clone()));
            }
        }
    }
    if with_diffs {
        for change in listed.iter_mut().take(MAX_DIFFS) {
            change.diff = unified(log, staged_bytes, change.before.as_ref(), change.after.as_ref());
        }
    }
    (listed, total)
}

fn without_diff(change: FileChange) -> Change {
    match change {
        FileChange::Write(p) => {
            Change { path: p.path, from: None, before: p.prev, after: Some(p.node), diff: None }
        }
        FileChange::Delete(p) => {
            Change { path: p.path, from: None, before: Some(p.prev), after: None, diff: None }
        }
        FileChange::Move(p) => {
            let node = Some(p.node);
            Change { path: p.to, from: Some(p.from), before: node.clone(), after: node, diff: None }
        }
    }
}

/// The lines that differ between two nodes, if both are text of a moderate size.
pub fn unified(
    log: &dyn EventLog,
    staged_bytes: &dyn Fn(&ContentHash) -> Option<Vec<u8>>,
    before: Option<&FileNode>,
    after: Option<&FileNode>,
) -> Option<String> {
    let text = |node: Option<&FileNode>| match node {
        None => Some(Vec::new()),
        Some(FileNode::File { size, .. }) if *size > DIFF_LIMIT => None,
        Some(FileNode::File { hash, .. }) => staged_bytes(hash).or_else(|| read_content(log, hash).ok()),
        Some(FileNode::Symlink { target }) => Some(target.as_bytes().to_vec()),
        Some(FileNode::Folder) => Some(Vec::new()),
    };
    let (before, after) = (text(before)?, text(after)?);
    match diff(&before, &after) {
        TextDiff::Lines { unified, .. } if !unified.is_empty() => Some(unified),
        TextDiff::Lines { .. } | TextDiff::Binary => None,
    }
}

/// The files that differ between two events, without diffs.
pub fn differences(log: &dyn EventLog, from: Seq, to: Seq) -> Result<Vec<Change>, ReadError> {
    let (early, late) = (from.min(to), from.max(to));
    let mut newer = view_at(log, early)?;
    let older = newer.clone();
    advance(log, &mut newer, late)?;
    let (before, after): (&View, &View) = if from <= to { (&older, &newer) } else { (&newer, &older) };
    let paths: BTreeSet<&FilePath> =
        before.files.iter().chain(after.files.iter()).map(|(path, _)| path).collect();
    let differing = paths.into_iter().filter(|path| before.files.get(path) != after.files.get(path));
    let change = |path: &FilePath| Change {
        path: path.clone(),
        from: None,
        before: before.files.get(path).cloned(),
        after: after.files.get(path).cloned(),
        diff: None,
    };
    Ok(differing.map(change).collect())
}

/// Changes to anything but files, a line each.
pub fn other_changes(events: &[Event]) -> Vec<String> {
    use shared_types::payload::note::NoteEvent;
    use shared_types::payload::setting::SettingEvent;
    use shared_types::payload::window::WindowEvent;
    let line = |event: &Event| match &event.payload {
        Payload::Setting(SettingEvent::Set(p)) => Some(format!("setting {} becomes {}", p.key, p.value)),
        Payload::Setting(SettingEvent::Clear(p)) => Some(format!("setting {} is cleared", p.key)),
        Payload::Window(WindowEvent::Set(p)) => Some(format!("arrange window {}", p.state.title)),
        Payload::Window(WindowEvent::Close(p)) => Some(format!("window {} is closed", p.prev.title)),
        Payload::Note(NoteEvent::Write(p)) => Some(format!("note {} is written", p.state.title)),
        Payload::Note(NoteEvent::Delete(p)) => Some(format!("note {} is deleted", p.prev.title)),
        Payload::File(_)
        | Payload::Message(_)
        | Payload::Checkpoint(_)
        | Payload::Tool(_)
        | Payload::Run(_)
        | Payload::Task(_)
        | Payload::Llm(_)
        | Payload::Capability(_)
        | Payload::Revert(_)
        | Payload::User(_)
        | Payload::System(_)
        | Payload::Unknown(_) => None,
    };
    events.iter().filter_map(line).collect()
}
