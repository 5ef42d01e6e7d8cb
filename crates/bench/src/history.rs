//! Realistic logs, built quickly: decided by the kernel, appended in large groups.
//!
//! Everything follows from a counter, so two runs measure the same log.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use event_log::snapshot::{SnapshotNeed, snapshot_need, snapshot_of};
use event_log::{Append, EventLog, SqliteLog};
use kernel::command::OutsideEdit;
use kernel::{Action, Base, Command, Contents, Origin, Resolutions, View, decide, evolve};
use shared_types::payload::file::FileNode;
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::payload::window::{Rect, Window, WindowMode};
use shared_types::{
    Actor, CommandId, ContentHash, ContentRef, Event, FilePath, OpId, Source, Timestamp, UserId, WindowId,
};

/// Commands that are appended with one flush.
const GROUP: usize = 2000;
/// Different contents; the log only names them, so their number does not change what is measured.
const CONTENTS: usize = 8192;
const CONTENT_SIZE: usize = 200;
const WINDOWS: u64 = 40;
const SETTINGS: u64 = 300;

/// A deterministic generator of pseudo-random numbers.
#[derive(Debug, Clone)]
pub(super) struct Prng(u64);

impl Prng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn bits(&mut self) -> [u8; 10] {
        let (a, b) = (self.next().to_le_bytes(), self.next().to_le_bytes());
        [a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], b[0], b[1]]
    }

    /// Text of a size that small files have, different every time.
    pub(super) fn text(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size + 16);
        while bytes.len() < size {
            bytes.extend_from_slice(format!("{:015x}\n", self.next() >> 4).as_bytes());
        }
        bytes.truncate(size);
        bytes
    }
}

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or_default())
}

pub(super) fn user() -> anyhow::Result<UserId> {
    Ok(UserId::parse("bench")?)
}

/// A path as deep and as long as those of a project.
pub(super) fn path(number: u64) -> anyhow::Result<FilePath> {
    let (project, module) = (number % 40, number / 40 % 25);
    Ok(FilePath::parse(&format!("projects/project-{project}/src/module_{module}/file_{number}.rs"))?)
}

/// Builds a log with at least this many events and paths, with the snapshots that its writer would have made.
pub(super) fn build(folder: &Path, events: u64, paths: u64) -> anyhow::Result<Arc<SqliteLog>> {
    let log = SqliteLog::create(folder, user()?)?;
    let mut life = SimulatedUser::new(paths)?;
    let mut saved = 0;
    let due = |view: &View, saved| snapshot_need(view, saved) != SnapshotNeed::None;
    while life.view.seq().0 < events {
        let mut group = Vec::with_capacity(GROUP);
        while group.len() < GROUP && life.view.seq().0 < events && !due(&life.view, saved) {
            group.extend(life.step()?);
        }
        for answer in log.append(&group) {
            answer.context("building a log to measure")?;
        }
        if due(&life.view, saved) {
            log.save_snapshot(&snapshot_of(&mut life.view))?;
            saved = life.view.changes();
        }
    }
    Ok(Arc::new(log))
}

/// A person and their agents at work.
struct SimulatedUser {
    view: View,
    dice: Prng,
    paths: u64,
    /// The path of each number as it is called now; moves give new names.
    named: Vec<FilePath>,
    moves: u64,
    contents: Vec<(ContentRef, Option<Vec<u8>>)>,
    /// Contents that the next append carries because nothing before it named them.
    carried: Vec<(ContentHash, Vec<u8>)>,
    last: Vec<Event>,
}

impl SimulatedUser {
    fn new(paths: u64) -> anyhow::Result<Self> {
        let mut dice = Prng::new(7);
        let contents = (0..CONTENTS).map(|_| dice.text(CONTENT_SIZE));
        Ok(Self {
            view: View::default(),
            contents: contents.map(|bytes| (ContentRef::of(&bytes), Some(bytes))).collect(),
            dice,
            paths,
            named: (0..paths).map(path).collect::<Result<_, _>>()?,
            moves: 0,
            carried: Vec::new(),
            last: Vec::new(),
        })
    }

    /// The next command that makes an event, decided and applied.
    fn step(&mut self) -> anyhow::Result<Option<Append>> {
        let action = self.action()?;
        let ts = now();
        let (id, op) = (CommandId::mint(ts, self.dice.bits()), OpId::mint(ts, self.dice.bits()));
        let source = if self.dice.below(3) == 0 { Source::Agent } else { Source::User };
        let origin = Origin::new(id, op, source, Actor::CLI);
        let command = Command { origin, ts, action, contents: Contents::new() };
        let decision = decide(&self.view, &command)?;
        if decision.events.is_empty() {
            return Ok(None);
        }
        let expected = self.view.seq();
        for event in &decision.events {
            evolve(&mut self.view, event);
        }
        self.last.clone_from(&decision.events);
        let mut contents = std::mem::take(&mut self.carried);
        contents.extend(decision.contents);
        Ok(Some(Append { command: command.origin.command, expected, events: decision.events, contents }))
    }

    fn action(&mut self) -> anyhow::Result<Action> {
        let number = self.dice.below(self.paths) as usize;
        let path = self.named[number].clone();
        let stands = self.view.files.get(&path).is_some();
        Ok(match self.dice.below(1000) {
            0..40 if stands => Action::DeletePaths { paths: vec![path] },
            40..80 if stands => {
                self.moves += 1;
                let to = FilePath::parse(&format!("archive/{}/moved_{}.rs", number % 100, self.moves))?;
                self.named[number] = to.clone();
                Action::MovePaths { moves: vec![(path, to)] }
            }
            80..130 => self.tool_call(),
            130..160 => self.setting(),
            160..190 => self.window(),
            190..200 if self.last_is_writes() => Action::Undo {
                target: self.last[0].op,
                events: self.last.clone(),
                resolutions: Resolutions::default(),
            },
            200..220 => self.edits(number),
            _ => Action::WriteFile { path, node: self.node(), base: Base::Any },
        })
    }

    fn last_is_writes(&self) -> bool {
        self.last.first().is_some_and(|event| event.payload.name().as_str() == "file.write")
    }

    /// Ten files at once, as an agent's tool or an editor's "replace in all" leaves them.
    fn edits(&mut self, number: usize) -> Action {
        let mut edits = Vec::new();
        for i in 0..10 {
            let path = self.named[(number + i) % self.named.len()].clone();
            let base = self.view.files.get(&path).cloned();
            edits.push(OutsideEdit { path, base, now: Some(self.node()) });
        }
        Action::CaptureEdits { edits }
    }

    /// A command that ran and changed no file.
    fn tool_call(&mut self) -> Action {
        let (tool, title) = ("exec".into(), "cargo test -p parser".into());
        let call = ToolCall { tool, title, input: self.content(), network: false, task: None };
        let report = ToolReport { output: Some(self.content()), ..ToolReport::default() };
        let status = ToolStatus::Exited { code: 0 };
        Action::MakeCall { call, status, report, edits: Vec::new(), also: None }
    }

    fn setting(&mut self) -> Action {
        let key = format!("editor.option-{}", self.dice.below(SETTINGS)).into();
        Action::SetSetting { key, value: self.dice.below(1_000_000).into() }
    }

    fn window(&mut self) -> Action {
        let window = WindowId::mint(Timestamp::from_millis(self.dice.below(WINDOWS) as i64), [0; 10]);
        let rect = Rect { x: self.dice.below(2000) as i32, y: 80, width: 800, height: 600 };
        let (app, title) = ("files".into(), "src".into());
        let state =
            Window { app, title, rect, mode: WindowMode::Normal, z: self.dice.below(50) as u32, shows: None };
        Action::SetWindow { window, state }
    }

    fn node(&mut self) -> FileNode {
        FileNode::file(self.content(), FileNode::DEFAULT_MODE)
    }

    fn content(&mut self) -> ContentRef {
        let index = self.dice.below(CONTENTS as u64) as usize;
        let (content, bytes) = &mut self.contents[index];
        self.carried.extend(bytes.take().map(|bytes| (content.hash, bytes)));
        *content
    }
}
