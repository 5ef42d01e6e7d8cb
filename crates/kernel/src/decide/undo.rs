//! Undo and redo: the inverse of an operation, applied to today's state.
//!
//! The cost is that of the operation, not of the log. Where something changed since, text is merged; where that
//! fails, the conflict is returned with both sides, and nothing happens until the caller chooses.

use std::collections::BTreeMap;

use shared_types::payload::file::FileNode;
use shared_types::payload::revert::{Redo, Undo};
use shared_types::{ContentHash, Event, FilePath, OpId};

use super::plan::{Targets, plan};
use super::reversal::{Merged, Outcome, merge_nodes, revert};
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
    let operation = Operation::of(events);
    mark(view, draft, target, operation.kind)?;
    if operation.is_empty() && operation.kind == Kind::Ordinary {
        return Err(Rejection::NotReversible { op: target });
    }

    let mut reversal = Reversal::new(view, resolutions, contents);
    reversal.files(&operation.files);
    reversal.desktop(draft, &operation);
    let Reversal { targets, merged, conflicts, missing, .. } = reversal;
    if !missing.is_empty() {
        return Err(Rejection::Missing { hashes: missing });
    }
    if !conflicts.is_empty() {
        return Err(Rejection::Conflicts { conflicts });
    }
    draft.files = plan_or_conflict(view, targets, resolutions)?;
    for bytes in merged {
        draft.content(bytes);
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
    merged: Vec<Vec<u8>>,
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
            merged: Vec::new(),
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
            Outcome::Changed => {
                match merge_nodes(path, net.after.as_ref(), today, net.before.as_ref(), self.contents) {
                    Merged::Node(node, bytes) => {
                        self.merged.extend(bytes);
                        Some(node)
                    }
                    Merged::Missing(hashes) => return self.missing.extend(hashes),
                    Merged::Clash => {
                        let subject = Subject::File(path.clone());
                        let sides = (node_state(today), node_state(net.before.as_ref()));
                        match self.choose(subject, sides, reason(net, today)) {
                            Some(Choice::Take) => net.before.clone(),
                            Some(Choice::Keep) | None => return,
                        }
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
                return;
            }
        }
        for (path, net) in members {
            self.targets.insert((*path).clone(), net.before.clone());
        }
    }

    fn desktop(&mut self, draft: &mut Draft, operation: &Operation) {
        for (key, net) in &operation.settings {
            let today = self.view.setting(key);
            let subject = Subject::Setting(key.clone());
            if let Some(value) = self.value(subject, net, today.as_ref(), State::Setting) {
                desktop::put_setting(self.view, draft, key, value);
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

    fn choose(&mut self, subject: Subject, (today, undone): (State, State), reason: String) -> Option<Choice> {
        let choice = self.resolutions.choice(&subject);
        if choice.is_none() {
            self.conflicts.push(Conflict { subject, today, undone, reason });
        }
        choice
    }
}

/// A path that cannot be put back because the tree has another shape now is a conflict like any other.
fn plan_or_conflict(
    view: &View,
    mut targets: Targets,
    resolutions: &Resolutions,
) -> Result<Vec<shared_types::payload::file::FileChange>, Rejection> {
    loop {
        let (path, reason) = match plan(view, targets.clone()) {
            Err(Rejection::NotAFolder { path }) => (path, "a file stands where a folder is needed"),
            Err(Rejection::IsAFolder { path }) => (path, "a folder with other files stands there now"),
            other => return other,
        };
        let subject = Subject::File(path.clone());
        match resolutions.choice(&subject) {
            Some(Choice::Keep) => targets.retain(|other, _| !other.is_within(&path)),
            Some(Choice::Take) | None => {
                let undone = targets.get(&path).cloned().flatten();
                let conflict = Conflict {
                    today: node_state(view.files.get(&path)),
                    undone: node_state(undone.as_ref()),
                    subject,
                    reason: reason.into(),
                };
                return Err(Rejection::Conflicts { conflicts: vec![conflict] });
            }
        }
    }
}

fn node_state(node: Option<&FileNode>) -> State {
    node.cloned().map_or(State::Absent, State::File)
}

fn reason(net: &Net<FileNode>, today: Option<&FileNode>) -> String {
    match (&net.before, today) {
        (_, None) => "it was deleted or moved since".into(),
        (None, Some(_)) => "it was changed since it was made".into(),
        (Some(_), Some(_)) if net.after.is_none() => "something else was put there since".into(),
        (Some(_), Some(_)) => "the same lines were changed since".into(),
    }
}
