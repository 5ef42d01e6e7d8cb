//! Undo and redo: the inverse of an operation, applied to today's state.
//!
//! The cost is that of the operation, not of the log. Where something changed since, text is merged; where that
//! fails, the conflict is returned with both sides, and nothing happens until the caller chooses.

use std::collections::{BTreeMap, BTreeSet};

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::payload::revert::{Redo, RevertEvent, Undo};
use shared_types::{ContentHash, Event, FilePath, OpId, Payload, Reversal as Reversibility, RunId, Subject};

use super::plan::{Targets, plan};
use super::reversal::{Missing, Outcome, merge_modes, revert, revert_file};
use super::{Draft, desktop};
use crate::command::Contents;
use crate::moves::Moves;
use crate::operation::{Kind, Net, Operation};
use crate::{Choice, Conflict, Rejection, Resolutions, State, View};

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
    if operation.is_empty() && operation.kind == Kind::Ordinary {
        return Err(Rejection::NotReversible { op: target });
    }
    take_back(view, draft, mark, &operation, resolutions, contents)
}

/// A run goes back as one operation: that with the id of the run. What was taken back step by step before stays so,
/// and is not of it.
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
    let reversible = |event: &&Event| event.payload.reversal() == Reversibility::Reversible;
    let steps = events.iter().filter(in_effect).filter(reversible).map(|event| event.op);
    let steps = steps.filter(|op| known.insert(*op)).collect();
    let mark = Mark::Undo { target: root, root, steps };
    take_back(view, draft, mark, &operation, resolutions, contents)
}

pub(super) fn is_revert(event: &Event) -> bool {
    matches!(event.payload, Payload::Revert(RevertEvent::Undo(_) | RevertEvent::Redo(_)))
}

/// What is said of an operation that is taken back, or brought back.
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

/// Takes an operation back, and says so with this mark.
pub(super) fn take_back(
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
    let moves = operation.moves.untold(&draft.files, &operation.files);
    draft.payloads.insert(place, mark.with(moves).into());
    let targets = reversal.targets.values().flatten();
    let named: BTreeSet<_> = targets.filter_map(FileNode::content).map(|content| content.hash).collect();
    for (_, bytes) in reversal.made.into_iter().filter(|(hash, _)| named.contains(hash)) {
        draft.content(bytes);
    }
    Ok(())
}

/// What this does to the operation at the bottom: an undo takes it back, undoing an undo brings it back. The
/// steps of a run go with it, but for those whose own undo or redo came between.
fn mark(view: &View, target: OpId, kind: &Kind) -> Result<Mark, Rejection> {
    let (root, steps) = match kind {
        Kind::Ordinary => (target, [].as_slice()),
        Kind::Undo { root, steps } | Kind::Redo { root, steps } => (*root, steps.as_slice()),
    };
    match kind {
        Kind::Ordinary | Kind::Redo { .. } => {
            if view.undone.contains(&root) {
                return Err(Rejection::AlreadyUndone { op: root });
            }
            let steps = steps.iter().filter(|step| !view.undone.contains(*step)).copied().collect();
            Ok(Mark::Undo { target, root, steps })
        }
        Kind::Undo { .. } => {
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
    /// Paths in conflict that stay as they are.
    kept: BTreeSet<FilePath>,
    /// New bytes, on the way back and at its end.
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

    fn files(&mut self, files: &BTreeMap<FilePath, Net<FileNode>>) {
        let mut repositories: BTreeMap<FilePath, Vec<(&FilePath, &Net<FileNode>)>> = BTreeMap::new();
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

    fn file(&mut self, path: &FilePath, net: &Net<FileNode>) {
        let today = self.view.files.get(path);
        let target = match revert_file(path, net, today, self.contents, &mut self.made) {
            Err(Missing(hashes)) => return self.missing.extend(hashes),
            Ok(Outcome::Nothing) => return,
            Ok(Outcome::Becomes(target)) => target,
            Ok(Outcome::Changed) => {
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

    /// A repository goes back as a whole or not at all.
    fn repository(&mut self, repository: FilePath, members: &[(&FilePath, &Net<FileNode>)]) {
        let changed = members
            .iter()
            .filter(|(path, net)| revert(net, self.view.files.get(path)) == Outcome::Changed)
            .count();
        if changed > 0 {
            let sides = (State::Several(changed as u64), State::Several(members.len() as u64));
            let reason = "the repository was used since, and a repository is never merged".into();
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
            let state = |text: Box<str>| State::Setting(serde_json::from_str(&text).unwrap_or_default());
            if let Some(text) = self.value(Subject::Setting(key.clone()), net, today, state) {
                desktop::put_setting(self.view, draft, key, text.as_deref());
            }
        }
        for (window, net) in &operation.windows {
            let today = self.view.windows.get(window);
            if let Some(state) = self.value(Subject::Window(*window), net, today, State::Window) {
                desktop::put_window(self.view, draft, *window, state);
            }
        }
        for (note, net) in &operation.notes {
            let today = self.view.notes.get(note);
            if let Some(state) = self.value(Subject::Note(*note), net, today, State::Note) {
                desktop::put_note(self.view, draft, *note, state);
            }
        }
    }

    /// What a plain value becomes, if it changes at all.
    fn value<V: PartialEq + Clone>(
        &mut self,
        subject: Subject,
        net: &Net<V>,
        today: Option<&V>,
        state: impl Fn(V) -> State,
    ) -> Option<Option<V>> {
        match revert(net, today) {
            Outcome::Nothing => None,
            Outcome::Becomes(value) => Some(value),
            Outcome::Changed => {
                let side = |value: Option<&V>| value.cloned().map_or(State::Absent, &state);
                let sides = (side(today), side(net.before.as_ref()));
                let choice = self.choose(subject, sides, "it was changed since".into());
                (choice == Some(Choice::Take)).then(|| net.before.clone())
            }
        }
    }

    fn choose(
        &mut self,
        subject: Subject,
        (today, undone): (State, State),
        reason: String,
    ) -> Option<Choice> {
        let choice = self.resolutions.choice(&subject);
        if choice.is_none() {
            self.conflicts.push(Conflict { subject, today, undone, reason });
        }
        choice
    }

    /// The changes that lead back. A path that cannot be put back because the tree has another shape now is a
    /// conflict like any other.
    fn plan(&mut self, moves: &Moves) -> Result<Vec<FileChange>, Rejection> {
        let kept = std::mem::take(&mut self.kept);
        moves.leave(&mut self.targets, |path| kept.contains(path));
        loop {
            let (path, in_the_way, today, reason) = match plan(self.view, self.targets.clone()) {
                Err(Rejection::NotAFolder { path }) => {
                    let today = node_state(self.view.files.get(&path));
                    (path.clone(), vec![path], today, "a file stands where a folder is needed")
                }
                Err(Rejection::IsAFolder { path }) => {
                    let others = self.others_below(&path);
                    let today = State::Several(others.len() as u64);
                    (path, others, today, "a folder with other files stands there now")
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
            match self.choose(subject, (today, undone), reason.into()) {
                Some(Choice::Take) => self.targets.extend(in_the_way.into_iter().map(|path| (path, None))),
                Some(Choice::Keep) | None => {
                    moves.leave(&mut self.targets, |path| path.is_within(&whole));
                }
            }
        }
    }

    fn others_below(&self, folder: &FilePath) -> Vec<FilePath> {
        let below = self.view.files.within(folder).into_iter().map(|(path, _)| path);
        below.filter(|path| *path != folder && self.targets.get(*path) != Some(&None)).cloned().collect()
    }
}

fn node_state(node: Option<&FileNode>) -> State {
    node.cloned().map_or(State::Absent, State::File)
}

fn file_mode(node: &FileNode) -> Option<u16> {
    match node {
        FileNode::File { mode, .. } => Some(*mode),
        FileNode::Symlink { .. } | FileNode::Folder => None,
    }
}

fn reason(net: &Net<FileNode>, today: Option<&FileNode>) -> String {
    if net.is_torn() {
        return "something else changed it in between".into();
    }
    let mode = |node: Option<&FileNode>| node.and_then(file_mode);
    if let (Some(base), Some(ours), Some(theirs)) =
        (mode(net.after.as_ref()), mode(today), mode(net.before.as_ref()))
        && merge_modes(base, ours, theirs).is_none()
    {
        return "its mode was changed since".into();
    }
    match (&net.before, today) {
        (_, None) => "it was deleted or moved since".into(),
        (None, Some(_)) => "it was changed since it was made".into(),
        (Some(_), Some(_)) if net.after.is_none() => "something else was put there since".into(),
        (Some(_), Some(_)) => "the same lines were changed since".into(),
    }
}
