//! Undo and redo: the inverse of an operation, applied to today's state.
//!
//! The cost is that of the operation, not of the log. Where something changed since, text is merged; where that
//! fails, the conflict is returned with both sides, and nothing happens until the caller chooses.

use std::collections::{BTreeMap, BTreeSet};

use shared_types::payload::file::{FileChange, FileNode};
use shared_types::payload::revert::{Redo, Undo};
use shared_types::{ContentHash, Event, FilePath, OpId};

use super::plan::{Targets, plan};
use super::reversal::{Merged, Outcome, merge_modes, merge_nodes, revert};
use super::{Draft, desktop};
use crate::command::Contents;
use crate::operation::{Kind, Net, Operation};
use crate::{Choice, Conflict, Rejection, Resolutions, State, Subject, View};

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
    mark(view, draft, target, operation.kind)?;
    if operation.is_empty() && operation.kind == Kind::Ordinary {
        return Err(Rejection::NotReversible { op: target });
    }

    let mut reversal = Reversal::new(view, resolutions, contents);
    reversal.files(&operation.files);
    reversal.desktop(draft, &operation);
    if !reversal.missing.is_empty() {
        return Err(Rejection::Missing { hashes: reversal.missing });
    }
    if !reversal.conflicts.is_empty() {
        return Err(Rejection::Conflicts { conflicts: reversal.conflicts });
    }
    draft.files = reversal.plan(&operation.moves)?;
    for (path, bytes) in reversal.merged {
        if reversal.targets.contains_key(&path) {
            draft.content(bytes);
        }
    }
    Ok(())
}

/// Records what this does to the operation at the bottom: an undo takes it back, undoing an undo brings it back.
fn mark(view: &View, draft: &mut Draft, target: OpId, kind: Kind) -> Result<(), Rejection> {
    match kind {
        Kind::Ordinary | Kind::Redo { .. } => {
            let root = if let Kind::Redo { root } = kind { root } else { target };
            if view.undone.contains(&root) {
                return Err(Rejection::AlreadyUndone { op: root });
            }
            draft.event(Undo { target, root });
        }
        Kind::Undo { root } => {
            if view.undone.get(&root) != Some(&target) {
                return Err(Rejection::NotUndone { op: root });
            }
            draft.event(Redo { target, root });
        }
    }
    Ok(())
}

struct Reversal<'a> {
    view: &'a View,
    resolutions: &'a Resolutions,
    contents: &'a Contents,
    targets: Targets,
    /// Paths in conflict that stay as they are.
    kept: BTreeSet<FilePath>,
    /// The new contents of merged files.
    merged: BTreeMap<FilePath, Vec<u8>>,
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
            merged: BTreeMap::new(),
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
        let target = match revert(net, today) {
            Outcome::Nothing => return,
            Outcome::Becomes(target) => target,
            Outcome::Changed => match self.merge(path, net, today) {
                Merged::Node(node, bytes) => {
                    self.merged.extend(bytes.map(|bytes| (path.clone(), bytes)));
                    Some(node)
                }
                Merged::Missing(hashes) => return self.missing.extend(hashes),
                Merged::Clash => {
                    let sides = (node_state(today), node_state(net.before.as_ref()));
                    match self.choose(Subject::File(path.clone()), sides, reason(net, today)) {
                        Some(Choice::Take) => net.before.clone(),
                        Some(Choice::Keep) | None => {
                            self.kept.insert(path.clone());
                            return;
                        }
                    }
                }
            },
        };
        self.targets.insert(path.clone(), target);
    }

    fn merge(&self, path: &FilePath, net: &Net<FileNode>, today: Option<&FileNode>) -> Merged {
        if net.torn {
            return Merged::Clash;
        }
        merge_nodes(path, net.after.as_ref(), today, net.before.as_ref(), self.contents)
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
    fn plan(&mut self, moves: &BTreeMap<FilePath, FilePath>) -> Result<Vec<FileChange>, Rejection> {
        let kept = std::mem::take(&mut self.kept);
        self.leave(moves, |path| kept.contains(path));
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
                Some(Choice::Keep) | None => self.leave(moves, |path| path.is_within(&whole)),
            }
        }
    }

    fn others_below(&self, folder: &FilePath) -> Vec<FilePath> {
        let below = self.view.files.within(folder).into_iter().map(|(path, _)| path);
        below.filter(|path| *path != folder && self.targets.get(*path) != Some(&None)).cloned().collect()
    }

    /// Leaves these paths as they are today. What was moved goes back as a whole or not at all: to put back one end
    /// of a move without the other could lose the file.
    fn leave(&mut self, moves: &BTreeMap<FilePath, FilePath>, stays: impl Fn(&FilePath) -> bool) {
        self.targets.retain(|path, _| !stays(path));
        for (to, from) in moves.iter().filter(|(to, from)| stays(to) || stays(from)) {
            self.targets.remove(to);
            self.targets.remove(from);
        }
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
    if net.torn {
        return "something else changed it in the middle of the operation".into();
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
