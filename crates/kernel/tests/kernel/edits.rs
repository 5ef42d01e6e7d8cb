//! Undoing operations in any order never loses a later edit by the person.
//!
//! Every edit puts lines into files that occur nowhere else, here called tokens, so that it can be seen whose work is
//! still there. After every command these hold:
//!
//! 1. **An undo takes only what its operation gave, and gives only what it took**, file by file: a token that
//!    vanishes from a file in an undo was put into that file by the operation that is undone, and a token that
//!    appears in a file was removed from that file by it. So no edit of any other operation, earlier or later, is
//!    touched. (A redo is the undo of an undo, and is held to the same.)
//! 2. **Edits in effect are present**: a token whose operation is not undone is somewhere in the tree, unless an
//!    operation that is not undone removed it. "Removed" means that there are fewer copies of it than before, so that
//!    a move removes nothing. By 1 it is then in the file it was put into, or where a move took that file.
//! 3. **A conflict changes nothing.**
//!
//! Two things are left out of 2, because there the person spoke: tokens of an undo whose conflicts were settled with
//! "keep", which leaves in part what it undoes; and tokens in files that a restore changed, since a restore and the
//! undo of an older deletion may bring back the same line, which undoing one of them then takes away again.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Action, Base, Choice, Rejection};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use shared_types::payload::file::FileNode;
use shared_types::{ContentRef, Event, FilePath, OpId, Seq};

use crate::laws::config;
use crate::shell::{Shell, all};
use crate::steps::*;

#[derive(Debug, Clone)]
enum Edit {
    Insert(Index),
    Replace(Index),
    Remove(Index),
    /// The text as it is, with other permissions.
    Mode(u16),
    Delete,
    Move(&'static str),
    /// As a command does it: the file moves to the second path, and the file there to the third.
    Push(&'static str, &'static str),
}

#[derive(Debug, Clone)]
enum Act {
    /// An edit of a file, which creates it if it does not exist.
    Edit(&'static str, Edit),
    /// The same as a part of an earlier operation.
    Continue(Index, &'static str, Edit),
    Undo(Index),
    /// The undo of an operation; paths in conflict are kept.
    UndoKeeping(Index),
    Restore(Index),
}

fn places() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "a", "a", "a", "b", "b", "d/a", "d/b", "d"])
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        12 => any::<Index>().prop_map(Edit::Insert),
        6 => any::<Index>().prop_map(Edit::Replace),
        6 => any::<Index>().prop_map(Edit::Remove),
        1 => select(vec![0o644, 0o755]).prop_map(Edit::Mode),
        1 => Just(Edit::Delete),
        2 => places().prop_map(Edit::Move),
        2 => (places(), places()).prop_map(|(to, then)| Edit::Push(to, then)),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (places(), edits()).prop_map(|(at, edit)| Act::Edit(at, edit)),
        4 => (any::<Index>(), places(), edits()).prop_map(|(op, at, edit)| Act::Continue(op, at, edit)),
        8 => any::<Index>().prop_map(Act::Undo),
        3 => any::<Index>().prop_map(Act::UndoKeeping),
        1 => any::<Index>().prop_map(Act::Restore),
    ]
}

type Tokens = BTreeMap<FilePath, BTreeSet<String>>;

/// The difference between two trees: tokens by path that are in the second and not in the first.
fn beyond(first: &Tokens, second: &Tokens) -> BTreeSet<(FilePath, String)> {
    let all = second.iter().flat_map(|(path, tokens)| tokens.iter().map(move |token| (path, token)));
    let new = all.filter(|(path, token)| !first.get(*path).is_some_and(|tokens| tokens.contains(*token)));
    new.map(|(path, token)| (path.clone(), token.clone())).collect()
}

fn copies(tokens: &Tokens) -> BTreeMap<&str, usize> {
    let mut copies = BTreeMap::new();
    for token in tokens.values().flatten() {
        *copies.entry(token.as_str()).or_default() += 1;
    }
    copies
}

/// Tokens that are fewer in the second tree than in the first.
fn fewer(first: &Tokens, second: &Tokens) -> BTreeSet<String> {
    let after = copies(second);
    let less =
        copies(first).into_iter().filter(|(token, count)| after.get(token).is_none_or(|left| left < count));
    less.map(|(token, _)| token.to_owned()).collect()
}

/// The effect of one operation on the tokens.
#[derive(Debug, Clone, Default)]
struct Did {
    gave: BTreeSet<(FilePath, String)>,
    took: BTreeSet<(FilePath, String)>,
    /// Tokens of which there were more or fewer copies afterwards.
    counted: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct World {
    shell: Shell,
    count: usize,
    did: BTreeMap<OpId, Did>,
    /// The operations that added and removed each token.
    put: BTreeMap<String, OpId>,
    removed: BTreeMap<String, BTreeSet<OpId>>,
    /// Tokens about which the person decided otherwise.
    decided: BTreeSet<String>,
    /// Operations that were ever undone or redone; none of them is continued.
    reverted: BTreeSet<OpId>,
}

impl World {
    fn new() -> Self {
        let (did, put, removed) = Default::default();
        let (decided, reverted) = Default::default();
        let mut world = Self { shell: Shell::new(), count: 0, did, put, removed, decided, reverted };
        for at in ["a", "b", "d/a"] {
            // Equal lines between different ones make the diff ambiguous.
            let lines: Vec<String> =
                (0..24).map(|n| if n % 4 == 3 { "-".into() } else { world.token() }).collect();
            let op = world.shell.op();
            world.ordinary(op, save(at, &lines, FileNode::DEFAULT_MODE)).expect("a first file");
        }
        world
    }

    fn token(&mut self) -> String {
        self.count += 1;
        format!("t{}", self.count)
    }

    fn tokens(&self) -> Tokens {
        let files = self.shell.view.files.iter();
        files
            .map(|(path, _)| {
                (path.clone(), self.lines(path.as_str()).into_iter().filter(|l| l != "-").collect())
            })
            .collect()
    }

    fn lines(&self, at: &str) -> Vec<String> {
        let text = String::from_utf8(self.shell.bytes(at).unwrap_or_default().to_vec()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn step(&mut self, at: &str, edit: &Edit) -> Step {
        let mut lines = self.lines(at);
        let mut mode = match self.shell.view.files.get(&path(at)) {
            Some(FileNode::File { mode, .. }) => *mode,
            Some(FileNode::Symlink { .. } | FileNode::Folder) | None => FileNode::DEFAULT_MODE,
        };
        let place = |index: &Index, lines: &[String]| {
            if lines.is_empty() { None } else { Some(index.index(lines.len())) }
        };
        match edit {
            Edit::Insert(index) => {
                let at = index.index(lines.len() + 1);
                lines.insert(at, self.token());
            }
            Edit::Replace(index) => match place(index, &lines) {
                Some(n) => lines[n] = self.token(),
                None => lines.push(self.token()),
            },
            Edit::Remove(index) => drop(place(index, &lines).map(|n| lines.remove(n))),
            Edit::Mode(other) => mode = *other,
            Edit::Delete => return delete(at),
            Edit::Move(to) => return rename(at, to),
            Edit::Push(to, then) => return self.push(at, to, then),
        }
        save(at, &lines, mode)
    }

    fn push(&self, at: &str, to: &str, then: &str) -> Step {
        let node = |at: &str| self.shell.view.files.get(&path(at)).cloned();
        let mut now = BTreeMap::from([(at, node(at)), (to, node(to)), (then, node(then))]);
        for (from, to) in [(to, then), (at, to)] {
            if let Some(moved @ Some(_)) = now.insert(from, None) {
                now.insert(to, moved);
            }
        }
        let edits: Vec<_> = now.into_iter().map(|(at, left)| (at, node(at), left)).collect();
        capture(&edits)
    }

    /// Runs a command and records its effect on the tokens, for its operation.
    fn noted(
        &mut self,
        run: impl FnOnce(&mut Shell) -> Result<Vec<Event>, Rejection>,
    ) -> Result<Option<(OpId, Did)>, Rejection> {
        let before = self.tokens();
        let events = run(&mut self.shell)?;
        let Some(op) = events.first().map(|event| event.op) else { return Ok(None) };
        let after = self.tokens();
        let counted = fewer(&before, &after).into_iter().chain(fewer(&after, &before)).collect();
        let did = Did { gave: beyond(&before, &after), took: beyond(&after, &before), counted };
        let all = self.did.entry(op).or_default();
        all.gave.extend(did.gave.iter().cloned());
        all.took.extend(did.took.iter().cloned());
        all.counted.extend(did.counted.iter().cloned());
        Ok(Some((op, did)))
    }

    fn ordinary(&mut self, op: OpId, step: Step) -> Result<(), Rejection> {
        let before = self.tokens();
        self.noted(|shell| shell.run_in(op, step))?;
        for token in self.tokens().into_values().flatten() {
            self.put.entry(token).or_insert(op);
        }
        for token in fewer(&before, &self.tokens()) {
            self.removed.entry(token).or_default().insert(op);
        }
        Ok(())
    }

    fn undo(&mut self, target: OpId, keeping: bool) -> Result<(), TestCaseError> {
        let (root, tokens) = (self.shell.root(), self.tokens());
        let mut outcome = self.noted(|shell| shell.undo(target));
        if let Err(Rejection::Conflicts { .. }) = outcome {
            prop_assert_eq!(self.shell.root(), root, "a conflict changes nothing");
            if keeping {
                outcome = self.noted(|shell| shell.undo_with(target, all(Choice::Keep)));
                prop_assert!(outcome.is_ok(), "keeping settles every conflict: {:?}", outcome);
                self.decided.extend(self.did[&target].counted.iter().cloned());
            }
        }
        let Ok(Some((op, did))) = outcome else {
            prop_assert_eq!(self.tokens(), tokens, "a refused undo changes nothing");
            return Ok(());
        };
        self.reverted.extend([target, op]);
        let undone = &self.did[&target];
        prop_assert!(did.took.is_subset(&undone.gave), "lost: {:?}", did.took.difference(&undone.gave));
        prop_assert!(
            did.gave.is_subset(&undone.took),
            "came from nowhere: {:?}",
            did.gave.difference(&undone.took)
        );
        Ok(())
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let ops = self.shell.ops();
        match act {
            Act::Edit(at, edit) => {
                let (op, step) = (self.shell.op(), self.step(at, edit));
                let _ = self.ordinary(op, step);
            }
            Act::Continue(index, at, edit) => {
                let (op, step) = (*index.get(&ops), self.step(at, edit));
                if !self.reverted.contains(&op) {
                    let _ = self.ordinary(op, step);
                }
            }
            Act::Undo(index) => self.undo(*index.get(&ops), false)?,
            Act::UndoKeeping(index) => self.undo(*index.get(&ops), true)?,
            Act::Restore(index) => {
                let seq = Seq(index.index(self.shell.log.len() + 1) as u64);
                if let Some((op, did)) =
                    self.noted(|shell| shell.restore(seq)).expect("any moment can be restored")
                {
                    self.decided.extend(did.gave.into_iter().chain(did.took).map(|(_, token)| token));
                    self.reverted.insert(op);
                }
            }
        }
        self.check()
    }

    fn history(&self) -> String {
        let ops = self.shell.ops();
        let number = |event: &Event| ops.iter().position(|op| *op == event.op).unwrap_or_default();
        let lines =
            self.shell.log.iter().map(|event| format!("{}: {}", number(event), self.shell.event(event)));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Checks that edits in effect are present.
    fn check(&self) -> Result<(), TestCaseError> {
        let tokens = self.tokens();
        let here = copies(&tokens);
        let undone = |op: &OpId| self.shell.view.undone.contains(op);
        for (token, by) in &self.put {
            let removed = self.removed.get(token).is_some_and(|ops| !ops.iter().all(undone));
            let expected = !undone(by) && !removed && !self.decided.contains(token);
            prop_assert!(!expected || here.contains_key(token.as_str()), "{} is lost", token);
        }
        Ok(())
    }
}

fn save(at: &str, lines: &[String], mode: u16) -> Step {
    let bytes = text(&lines.join("|"));
    let node = FileNode::file(ContentRef::of(&bytes), mode);
    Step { contents: vec![bytes], ..Action::WriteFile { path: path(at), node, base: Base::Any }.into() }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn undo_in_any_order_never_loses_a_later_edit(acts in prop::collection::vec(acts(), 1..50)) {
        let mut world = World::new();
        for act in &acts {
            world.act(act).map_err(|failed| TestCaseError::fail(format!("{failed}\n{}", world.history())))?;
        }
    }
}
