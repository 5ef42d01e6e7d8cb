//! Random commands over few paths and keys, so that they often conflict.

use std::collections::BTreeMap;

use kernel::command::OutsideEdit;
use kernel::{Action, Base, Choice, Rejection};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::payload::file::FileNode;
use shared_types::payload::run::{ApprovalScope, AskKind, Reply};
use shared_types::payload::task::{MessageKind, TaskOutcome};
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::payload::window::WindowMode;
use shared_types::{ContentHash, ContentRef, Event, FilePath, OpId, Seq, Taint};

use crate::agents::*;
use crate::shell::{Shell, all};
use crate::steps::*;

/// A random action, made concrete in the shell where it runs.
#[derive(Debug, Clone)]
pub(crate) enum Doing {
    Step(Step),
    /// Continues an earlier operation.
    Continue(Index, Step),
    /// Edits on disk, based on the current or on another node.
    Capture(Vec<Found>),
    /// An open call makes a request, is held or ends.
    Call(Index, Going),
    /// Renames on disk, all at once, of existing files to any path.
    Shuffle(Vec<(Index, FilePath)>),
    Undo(Index, Option<Choice>),
    UndoRun(u8, Option<Choice>),
    Restore(Index),
}

/// A path, the base unless it is the current node, and the node on disk.
type Found = (FilePath, Option<Option<FileNode>>, Option<FileNode>);

#[derive(Debug, Clone)]
pub(crate) enum Going {
    Request,
    Hold,
    End(ToolStatus, Vec<Found>),
}

pub(crate) fn paths() -> impl Strategy<Value = FilePath> {
    select(vec!["a", "b", "d", "d/a", "d/e", "d/e/f", "d-x", "p/.git/x", "p/.git/y", "p/.git", "ü"])
        .prop_map(path)
}

/// Texts of seven lines that differ in some of them, so that merges succeed and fail.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let line = |n: usize| select(vec![format!("{n}"), format!("{n}"), format!("{n} other"), String::new()]);
    prop_oneof![
        8 => (0..7usize).map(line).collect::<Vec<_>>().prop_map(|lines| text(&lines.join("|"))),
        1 => select(vec![b"".to_vec(), b"no newline".to_vec(), b"\0binary\n".to_vec(), b"\0other\n".to_vec()]),
    ]
}

/// A node, and the bytes it names.
fn nodes() -> impl Strategy<Value = (FileNode, Vec<Vec<u8>>)> {
    let modes = select(vec![0o644, 0o644, 0o755, 0o600]);
    prop_oneof![
        8 => (texts(), modes).prop_map(|(bytes, mode)| (FileNode::file(ContentRef::of(&bytes), mode), vec![bytes])),
        1 => select(vec!["a", "../a", "/etc/passwd"]).prop_map(|target| (link_node(target), Vec::new())),
        1 => Just((FileNode::Folder, Vec::new())),
    ]
}

fn files() -> impl Strategy<Value = Step> {
    let base = || {
        let seen = texts().prop_map(|bytes| Base::Content(ContentHash::of(&bytes)));
        prop_oneof![8 => Just(Base::Any), 1 => Just(Base::Absent), 1 => seen]
    };
    prop_oneof![
        6 => (paths(), nodes(), base()).prop_map(|(path, (node, contents), base)| {
            Step { contents, ..Action::WriteFile { path, node, base }.into() }
        }),
        2 => vec((paths(), nodes()), 1..3).prop_map(|written| {
            let contents = written.iter().flat_map(|(_, (_, contents))| contents.clone()).collect();
            let files = written.into_iter().map(|(path, (node, _))| (path, node)).collect();
            Step { contents, ..Action::WriteFiles { files }.into() }
        }),
        2 => vec(paths(), 1..3).prop_map(|paths| Action::DeletePaths { paths }.into()),
        3 => vec((paths(), paths()), 1..3).prop_map(|moves| Action::MovePaths { moves }.into()),
    ]
}

pub(crate) fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,8}".prop_map(Value::from),
        select(vec![json!(0.0), json!(-0.0), json!(null), json!(true), json!({"b": [1, 2], "a": {}})]),
    ]
}

fn desktop() -> impl Strategy<Value = Step> {
    let keys = || select(vec!["theme", "zoom", ""]);
    let titles = || select(vec!["A", "B", "C"]);
    let windows = (0..3u8, titles(), -9..9i32, any::<bool>()).prop_map(|(n, title, x, small)| {
        let mut state = window_at(title, x);
        state.mode = if small { WindowMode::Minimized } else { WindowMode::Normal };
        Action::SetWindow { window: window_id(n), state }.into()
    });
    prop_oneof![
        3 => windows,
        1 => (0..3u8).prop_map(close),
        3 => (keys(), values()).prop_map(|(key, value)| set(key, value)),
        1 => keys().prop_map(clear),
        2 => (0..3u8, titles()).prop_map(|(n, title)| note(n, title)),
        1 => (0..3u8).prop_map(forget_note),
    ]
}

fn others() -> impl Strategy<Value = Step> {
    let effects = || (0..3u8).prop_map(effect_id);
    let ask = |effect| Action::RequestCheckpoint {
        effect,
        reason: CheckpointReason::Automatic,
        message: "m".into(),
    };
    let made = |(effect, seq)| Action::RecordCheckpoint {
        effect,
        commit: "c".repeat(40).into(),
        seq: Seq(seq),
        message: "m".into(),
    };
    let purge = |(effect, bytes): (_, Vec<u8>)| Action::RequestPurge {
        effect,
        hashes: vec![ContentHash::of(&bytes)],
        reason: "r".into(),
    };
    prop_oneof![
        1 => (0..2u8).prop_map(|n| start(n, "Plans")),
        1 => (0..2u8).prop_map(|n| OldEvent::PostMessage(n, ContentRef::of(b"hello")).into()),
        1 => effects().prop_map(move |effect| ask(effect).into()),
        1 => (effects(), 0..20u64).prop_map(move |result| made(result).into()),
        1 => effects().prop_map(|effect| Action::FailCheckpoint { effect, reason: "r".into() }.into()),
        1 => (effects(), texts()).prop_map(move |request| purge(request).into()),
        1 => effects().prop_map(|effect| Action::RecordPurge { effect, dropped: 1 }.into()),
        3 => select(vec!["make", "rm -rf d", ""]).prop_map(call),
        1 => select(vec!["Ada", "Bo"]).prop_map(|name| Action::CreateUser { name: name.into() }.into()),
        1 => select(vec!["Ada", "Bo"]).prop_map(|name| OldEvent::RenameUser(name.into()).into()),
    ]
}

/// Changes in two runs, whose first agents are 1 and 2; more often steps that continue a run than steps that end it.
fn agents() -> impl Strategy<Value = Step> {
    let tasks = || 1..5u8;
    let asks = || 1..4u8;
    let about = || {
        let kinds: [fn(OpId) -> AskKind; 4] = [approval, question, interrupted, outgoing];
        select(kinds.to_vec()).prop_map(|kind| kind(OpId::from_bytes([9; 16])))
    };
    let replies = || {
        let scopes = [ApprovalScope::Once, ApprovalScope::Run, ApprovalScope::Always].map(Reply::Allow);
        select(
            [&[Reply::Deny("no".into()), Reply::Words("w".into()), Reply::Silence], scopes.as_slice()]
                .concat(),
        )
    };
    let outcomes =
        || select(vec![TaskOutcome::Done, TaskOutcome::Failed("x".into()), TaskOutcome::Cancelled]);
    let written = (tasks(), paths(), texts()).prop_map(|(n, path, bytes)| {
        let now = Some(FileNode::file(ContentRef::of(&bytes), FileNode::DEFAULT_MODE));
        let made = make(n, &[(path.as_str(), None, now)], None);
        Step { contents: vec![bytes], ..made }
    });
    let step = prop_oneof![
        3 => Just(begin("Bees")),
        6 => (tasks(), prop::option::of(tasks())).prop_map(|(n, parent)| task(n, parent, "writer")),
        3 => tasks().prop_map(reply),
        1 => tasks().prop_map(|n| no_reply(n, "x")),
        2 => (tasks(), tasks()).prop_map(|(from, to)| tell(from, to, MessageKind::Finding)),
        1 => prop::option::of(tasks()).prop_map(steer),
        2 => (tasks(), outcomes()).prop_map(|(n, outcome)| done(n, outcome)),
        1 => (tasks(), tasks()).prop_map(|(n, to)| act(reports(n, to))),
        1 => tasks().prop_map(trust),
        2 => (asks(), tasks(), about()).prop_map(|(n, of, about)| ask(n, of, about)),
        2 => (asks(), replies()).prop_map(|(n, reply)| answer(n, reply)),
        1 => asks().prop_map(|n| Action::Revoke { grant: grant_id(n) }.into()),
        3 => tasks().prop_map(call_by),
        6 => written,
        1 => Just(pause()),
        2 => Just(resume(None)),
        1 => select(vec![cancel(), complete(), fail("x")]),
    ];
    (step, 1..3u8, select(vec![None, None, Some(Taint::IMPORT)])).prop_map(|(step, run, label)| {
        let step = in_run(run, step);
        label.iter().fold(step, Step::tainted)
    })
}

pub(crate) fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![6 => files(), 3 => desktop(), 2 => others(), 4 => agents()]
}

fn found() -> impl Strategy<Value = Vec<Found>> {
    let node = || prop::option::weighted(0.8, nodes());
    let edit = (paths(), prop::option::weighted(0.4, node()), node());
    prop::collection::vec(edit, 1..4).prop_map(|edits| {
        let bare = |node: Option<(FileNode, Vec<Vec<u8>>)>| node.map(|(node, _)| node);
        edits.into_iter().map(|(path, base, now)| (path, base.map(bare), bare(now))).collect()
    })
}

fn goings() -> impl Strategy<Value = Going> {
    let ends = select(vec![ToolStatus::Exited { code: 0 }, ToolStatus::Killed { signal: 9 }]);
    prop_oneof![
        1 => Just(Going::Request),
        1 => Just(Going::Hold),
        1 => Just(Going::End(ToolStatus::Discarded, Vec::new())),
        4 => (ends, found()).prop_map(|(status, edits)| Going::End(status, edits)),
    ]
}

pub(crate) fn doings() -> impl Strategy<Value = Doing> {
    let choices = || select(vec![None, None, Some(Choice::Keep), Some(Choice::Take)]);
    prop_oneof![
        12 => steps().prop_map(Doing::Step),
        2 => (any::<Index>(), steps()).prop_map(|(op, step)| Doing::Continue(op, step)),
        3 => found().prop_map(Doing::Capture),
        3 => (any::<Index>(), goings()).prop_map(|(call, going)| Doing::Call(call, going)),
        2 => prop::collection::vec((any::<Index>(), paths()), 1..4).prop_map(Doing::Shuffle),
        6 => (any::<Index>(), choices()).prop_map(|(op, choice)| Doing::Undo(op, choice)),
        1 => (1..3u8, choices()).prop_map(|(run, choice)| Doing::UndoRun(run, choice)),
        1 => any::<Index>().prop_map(Doing::Restore),
    ]
}

impl Shell {
    /// Every operation so far, in the order of its first event.
    pub(crate) fn ops(&self) -> Vec<OpId> {
        let mut ops = Vec::new();
        for event in &self.log {
            if !ops.contains(&event.op) {
                ops.push(event.op);
            }
        }
        ops
    }

    fn pick(&self, index: &Index) -> Option<OpId> {
        let ops = self.ops();
        if ops.is_empty() { None } else { Some(*index.get(&ops)) }
    }

    /// Tries it; it may be refused.
    pub(crate) fn attempt(&mut self, doing: &Doing) -> Result<Vec<Event>, Rejection> {
        match doing {
            Doing::Step(step) => self.run(step.clone()),
            Doing::Continue(op, step) => match self.pick(op) {
                // An undo is one command; only ordinary operations are continued.
                Some(op) if !self.is_revert(op) => self.run_in(op, step.clone()),
                Some(_) | None => Ok(Vec::new()),
            },
            Doing::Capture(found) => {
                let edits = self.edits(found);
                self.run(Action::CaptureEdits { edits })
            }
            Doing::Call(index, going) => {
                let open: Vec<OpId> = self.view.calls.sorted().into_iter().map(|(op, _)| *op).collect();
                if open.is_empty() {
                    return Ok(Vec::new());
                }
                let op = *index.get(&open);
                let step = match going {
                    Going::Request => request(op, "example.org"),
                    Going::Hold => hold(1),
                    Going::End(status, found) => {
                        let (status, report) = (status.clone(), ToolReport::default());
                        Action::FinishCall { status, report, edits: self.edits(found) }.into()
                    }
                };
                self.run_in(op, step)
            }
            Doing::Shuffle(renames) => {
                let today = self.view.files.sorted();
                let mut edits = BTreeMap::new();
                for (index, to) in renames.iter().filter(|_| !today.is_empty()) {
                    let (from, node) = *index.get(&today);
                    edits.entry(from.clone()).or_insert(None);
                    edits.insert(to.clone(), Some(node.clone()));
                }
                let edits = edits.into_iter().map(|(path, now)| {
                    let base = self.view.files.get(&path).cloned();
                    OutsideEdit { path, base, now }
                });
                let edits = edits.collect();
                self.run(Action::CaptureEdits { edits })
            }
            Doing::Undo(op, choice) => match (self.pick(op), choice) {
                (Some(op), Some(choice)) => self.undo_with(op, all(*choice)),
                (Some(op), None) => self.undo(op),
                (None, _) => Ok(Vec::new()),
            },
            Doing::UndoRun(run, choice) => {
                self.undo_run_with(run_id(*run), choice.map(all).unwrap_or_default())
            }
            Doing::Restore(index) => self.restore(Seq(index.index(self.log.len() + 1) as u64)),
        }
    }

    fn edits(&self, found: &[Found]) -> Vec<OutsideEdit> {
        let known = |path: &FilePath| self.view.files.get(path).cloned();
        let edit = |(path, base, now): &Found| OutsideEdit {
            path: path.clone(),
            base: base.clone().unwrap_or_else(|| known(path)),
            now: now.clone(),
        };
        found.iter().map(edit).collect()
    }

    fn is_revert(&self, op: OpId) -> bool {
        let names = ["undo", "redo", "restore"];
        self.events_of(op).iter().any(|event| names.contains(&event.payload.name().as_str()))
    }
}
