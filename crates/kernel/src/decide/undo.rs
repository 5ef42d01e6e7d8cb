//! Undo and redo: the inverse of an operation, applied to the current state.
//!
//! The cost depends on the operation, not on the log. Text that changed since is merged; where that fails, the conflict
//! is returned with both sides, and nothing changes until the caller chooses.

use std::collections::{BTreeMap, BTreeSet};

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::payload::revert::{Redo, RevertEvent, Undo};
use shared_types::{ContentHash, Event, FilePath, OpId, Payload, Reversibility, RunId, Subject};

use super::plan::{Targets, plan};
use super::reversal::{Missing, Outcome, merge_modes, revert, revert_file};
use super::{Draft, desktop};
use crate::command::Contents;
use crate::conflict::ConflictReason;
use crate::moves::Moves;
use crate::net_change::NetChange;
use crate::operation::{Operation, OperationKind};
use crate::{Choice, Conflict, ConflictSide, Rejection, Resolutions, View};

pub(super) fn undo(
    view: &View,
    draft: &mut Draft,
    target: OpId,
    events: &[Event],
    resolutions: &Resolutions,
    contents: &Contents,
) -> Result<(), Rejection> {
    if events.is_empty() || events.iter().any(|event| event.op != target) {
        return Err(Rejection::NoOperation { op: target });
    }
    if view.calls.contains(&target) {
        return Err(Rejection::CallIsOpen { call: target });
    }
    let operation = Operation::of(events);
    let mark = mark(view, target, &operation.kind)?;
    if operation.is_empty() && operation.kind == OperationKind::Ordinary {
        return Err(Rejection::NotReversible { op: target });
    }
    revert_operation(view, draft, mark, &operation, resolutions, contents)
}

/// Undoes a run as one operation with the id of the run. Steps that were undone before stay undone and are no part of
/// it.
pub(super) fn undo_run(
    view: &View,
    draft: &mut Draft,
    run: RunId,
    events: &[Event],
    resolutions: &Resolutions,
    contents: &Contents,
) -> Result<(), Rejection> {
    if events.is_empty() || events.iter().any(|event| event.run_id != Some(run)) {
        return Err(Rejection::NoRun { run });
    }
    if view.runs.get(&run).is_some_and(|known| !known.phase.is_over()) {
        return Err(Rejection::RunIsBusy { run, what: "it is not over; stop it first" });
    }
    if let Some(call) = view.calls.iter().filter(|(_, call)| call.run == Some(run)).map(|(op, _)| *op).min() {
        return Err(Rejection::CallIsOpen { call });
    }
    let root = OpId::from_bytes(*run.as_bytes());
    if view.undone.contains(&root) {
        return Err(Rejection::AlreadyUndone { op: root });
    }
    let reverts: BTreeSet<OpId> =
        events.iter().filter(|event| is_revert(event)).map(|event| event.op).collect();
    let in_effect = |event: &&Event| !view.undone.contains(&event.op) && !reverts.contains(&event.op);
    let operation = Operation::of(events.iter().filter(in_effect));
    if operation.is_empty() {
        return Err(Rejection::NotReversible { op: root });
    }
    let mut known = BTreeSet::new();
    let reversible = |event: &&Event| event.payload.reversibility() == Reversibility::Reversible;
    let steps = events.iter().filter(in_effect).filter(reversible).map(|event| event.op);
    let steps = steps.filter(|op| known.insert(*op)).collect();
    let mark = Mark::Undo { target: root, root, steps };
    revert_operation(view, draft, mark, &operation, resolutions, contents)
}

pub(super) fn is_revert(event: &Event) -> bool {
    matches!(event.payload, Payload::Revert(RevertEvent::Undo(_) | RevertEvent::Redo(_)))
}

/// The undo or redo event, before its moves are known.
#[derive(Debug)]
pub(super) enum Mark {
    Undo { target: OpId, root: OpId, steps: Vec<OpId> },
    Redo { target: OpId, root: OpId, steps: Vec<OpId> },
}

impl Mark {
    fn with(self, moves: Vec<(FilePath, FilePath)>) -> RevertEvent {
        match self {
            Self::Undo { target, root, steps } => RevertEvent::Undo(Undo { target, root, steps, moves }),
            Self::Redo { target, root, steps } => RevertEvent::Redo(Redo { target, root, steps, moves }),
        }
    }
}

/// Reverts an operation and records that with this mark.
pub(super) fn revert_operation(
    view: &View,
    draft: &mut Draft,
    mark: Mark,
    operation: &Operation,
    resolutions: &Resolutions,
    contents: &Contents,
) -> Result<(), Rejection> {
    let mut reversal = Reversal::new(view, resolutions, contents);
    let place = draft.payloads.len();
    reversal.files(&operation.files);
    reversal.desktop(draft, operation);
    if !reversal.missing.is_empty() {
        return Err(Rejection::Missing { hashes: reversal.missing });
    }
    if !reversal.conflicts.is_empty() {
        return Err(Rejection::Conflicts { conflicts: reversal.conflicts });
    }
    draft.files = reversal.plan(&operation.moves)?;
    let moves = operation.moves.not_shown_by(&draft.files, &operation.files);
    draft.payloads.insert(place, mark.with(moves).into());
    let targets = reversal.targets.values().flatten();
    let named: BTreeSet<_> = targets.filter_map(FileNode::content).map(|content| content.hash).collect();
    for (_, bytes) in reversal.made.into_iter().filter(|(hash, _)| named.contains(hash)) {
        draft.content(bytes);
    }
    Ok(())
}

/// Whether this undoes or redoes the root operation: undoing an undo is a redo. The steps of a run are included,
/// except those that were undone or redone on their own since.
fn mark(view: &View, target: OpId, kind: &OperationKind) -> Result<Mark, Rejection> {
    let (root, steps) = match kind {
        OperationKind::Ordinary => (target, [].as_slice()),
        OperationKind::Undo { root, steps } | OperationKind::Redo { root, steps } => {
            (*root, steps.as_slice())
        }
    };
    match kind {
        OperationKind::Ordinary | OperationKind::Redo { .. } => {
            if view.undone.contains(&root) {
                return Err(Rejection::AlreadyUndone { op: root });
            }
            let steps = steps.iter().filter(|step| !view.undone.contains(*step)).copied().collect();
            Ok(Mark::Undo { target, root, steps })
        }
        OperationKind::Undo { .. } => {
            if view.undone.get(&root) != Some(&target) {
                return Err(Rejection::NotUndone { op: root });
            }
            let steps =
                steps.iter().filter(|step| view.undone.get(*step) == Some(&target)).copied().collect();
            Ok(Mark::Redo { target, root, steps })
        }
    }
}

struct Reversal<'a> {
    view: &'a View,
    resolutions: &'a Resolutions,
    contents: &'a Contents,
    targets: Targets,
    /// Paths in conflict that keep their current node.
    kept: BTreeSet<FilePath>,
    /// New bytes of merges, intermediate ones included.
    made: Contents,
    conflicts: Vec<Conflict>,
    missing: Vec<ContentHash>,
}

impl<'a> Reversal<'a> {
    fn new(view: &'a View, resolutions: &'a Resolutions, contents: &'a Contents) -> Self {
        Self {
            view,
            resolutions,
            contents,
            targets: Targets::new(),
            kept: BTreeSet::new(),
            made: Contents::new(),
            conflicts: Vec::new(),
            missing: Vec::new(),
        }
    }

    fn files(&mut self, files: &BTreeMap<FilePath, NetChange<FileNode>>) {
        let mut repositories: BTreeMap<FilePath, Vec<(&FilePath, &NetChange<FileNode>)>> = BTreeMap::new();
        for (path, net) in files {
            match path.repository() {
                Some(repository) => repositories.entry(repository).or_default().push((path, net)),
                None => self.file(path, net),
            }
        }
        for (repository, members) in repositories {
            self.repository(repository, &members);
        }
    }

    fn file(&mut self, path: &FilePath, net: &NetChange<FileNode>) {
        let today = self.view.files.get(path);
        let target = match revert_file(path, net, today, self.contents, &mut self.made) {
            Err(Missing(hashes)) => return self.missing.extend(hashes),
            Ok(Outcome::Unchanged) => return,
            Ok(Outcome::Becomes(target)) => target,
            Ok(Outcome::Conflict) => {
                let sides = (node_state(today), node_state(net.before.as_ref()));
                match self.choose(Subject::File(path.clone()), sides, reason(net, today)) {
                    Some(Choice::Take) => net.before.clone(),
                    Some(Choice::Keep) | None => {
                        self.kept.insert(path.clone());
                        return;
                    }
                }
            }
        };
        self.targets.insert(path.clone(), target);
    }

    /// A git repository is reverted as a whole or not at all.
    fn repository(&mut self, repository: FilePath, members: &[(&FilePath, &NetChange<FileNode>)]) {
        let changed = members
            .iter()
            .filter(|(path, net)| revert(net, self.view.files.get(path)) == Outcome::Conflict)
            .count();
        if changed > 0 {
            let sides = (ConflictSide::Several(changed as u64), ConflictSide::Several(members.len() as u64));
            let reason = ConflictReason::RepositoryChanged;
            if self.choose(Subject::Repository(repository), sides, reason) != Some(Choice::Take) {
                self.kept.extend(members.iter().map(|(path, _)| (*path).clone()));
                return;
            }
        }
        for (path, net) in members {
            self.targets.insert((*path).clone(), net.before.clone());
        }
    }

    fn desktop(&mut self, draft: &mut Draft, operation: &Operation) {
        for (key, net) in &operation.settings {
            let today = self.view.settings.get(key);
            let state =
                |text: Box<str>| ConflictSide::Setting(serde_json::from_str(&text).unwrap_or_default());
            if let Some(text) = self.value(Subject::Setting(key.clone()), net, today, state) {
                desktop::put_setting(self.view, draft, key, text.as_deref());
            }
        }
        for (window, net) in &operation.windows {
            let today = self.view.windows.get(window);
            if let Some(state) = self.value(Subject::Window(*window), net, today, ConflictSide::Window) {
                desktop::put_window(self.view, draft, *window, state);
            }
        }
        for (note, net) in &operation.notes {
            let today = self.view.notes.get(note);
            if let Some(state) = self.value(Subject::Note(*note), net, today, ConflictSide::Note) {
                desktop::put_note(self.view, draft, *note, state);
            }
        }
    }

    /// The new value of a setting, window or note, if it changes.
    fn value<V: PartialEq + Clone>(
        &mut self,
        subject: Subject,
        net: &NetChange<V>,
        today: Option<&V>,
        state: impl Fn(V) -> ConflictSide,
    ) -> Option<Option<V>> {
        match revert(net, today) {
            Outcome::Unchanged => None,
            Outcome::Becomes(value) => Some(value),
            Outcome::Conflict => {
                let side = |value: Option<&V>| value.cloned().map_or(ConflictSide::Absent, &state);
                let sides = (side(today), side(net.before.as_ref()));
                let choice = self.choose(subject, sides, ConflictReason::Changed);
                (choice == Some(Choice::Take)).then(|| net.before.clone())
            }
        }
    }

    fn choose(
        &mut self,
        subject: Subject,
        (today, undone): (ConflictSide, ConflictSide),
        reason: ConflictReason,
    ) -> Option<Choice> {
        let choice = self.resolutions.choice(&subject);
        if choice.is_none() {
            self.conflicts.push(Conflict { subject, today, undone, reason: reason.to_string() });
        }
        choice
    }

    /// The file changes of the undo. A path that cannot be restored because the tree has changed is a conflict like any
    /// other.
    fn plan(&mut self, moves: &Moves) -> Result<Vec<FileChange>, Rejection> {
        let kept = std::mem::take(&mut self.kept);
        moves.leave_out(&mut self.targets, |path| kept.contains(path));
        loop {
            let (path, in_the_way, today, reason) = match plan(self.view, self.targets.clone()) {
                Err(Rejection::NotAFolder { path }) => {
                    let today = node_state(self.view.files.get(&path));
                    (path.clone(), vec![path], today, ConflictReason::FileInTheWay)
                }
                Err(Rejection::IsAFolder { path }) => {
                    let others = self.others_below(&path);
                    let today = ConflictSide::Several(others.len() as u64);
                    (path, others, today, ConflictReason::FolderInTheWay)
                }
                Ok(changes) if self.conflicts.is_empty() => return Ok(changes),
                Ok(_) => return Err(Rejection::Conflicts { conflicts: std::mem::take(&mut self.conflicts) }),
                Err(other) => return Err(other),
            };
            let undone = node_state(self.targets.get(&path).and_then(Option::as_ref));
            let (subject, whole) = match path.repository() {
                Some(repository) => (Subject::Repository(repository.clone()), repository),
                None => (Subject::File(path.clone()), path),
            };
            match self.choose(subject, (today, undone), reason) {
                Some(Choice::Take) => self.targets.extend(in_the_way.into_iter().map(|path| (path, None))),
                Some(Choice::Keep) | None => {
                    moves.leave_out(&mut self.targets, |path| path.is_within(&whole));
                }
            }
        }
    }

    fn others_below(&self, folder: &FilePath) -> Vec<FilePath> {
        let below = self.view.files.within(folder).into_iter().map(|(path, _)| path);
        below.filter(|path| *path != folder && self.targets.get(*path) != Some(&None)).cloned().collect()
    }
}

fn node_state(node: Option<&FileNode>) -> ConflictSide {
    node.cloned().map_or(ConflictSide::Absent, ConflictSide::File)
}

fn file_mode(node: &FileNode) -> Option<u16> {
    match node {
        FileNode::File { mode, .. } => Some(*mode),
        FileNode::Symlink { .. } | FileNode::Folder => None,
    }
}

fn reason(net: &NetChange<FileNode>, today: Option<&FileNode>) -> ConflictReason {
    if net.is_interleaved() {
        return ConflictReason::ChangedMeanwhile;
    }
    let mode = |node: Option<&FileNode>| node.and_then(file_mode);
    if let (Some(base), Some(ours), Some(theirs)) =
        (mode(net.after.as_ref()), mode(today), mode(net.before.as_ref()))
        && merge_modes(base, ours, theirs).is_none()
    {
        return ConflictReason::ModeChanged;
    }
    match (&net.before, today) {
        (_, None) => ConflictReason::Gone,
        (None, Some(_)) => ConflictReason::ChangedSinceCreated,
        (Some(_), Some(_)) if net.after.is_none() => ConflictReason::Replaced,
        (Some(_), Some(_)) => ConflictReason::SameLines,
    }
}
