//! A test writer in memory: it does for the kernel what the product's writer does, without disk, clock or randomness.
//!
//! Every event is encoded and decoded before it enters the log, so that a replay sees only what was recorded. Every
//! decision is made twice, since the same command on the same view must give the same answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{
    Action, Choice, Command, Contents, Decision, Effect, MAX_EVENTS, Origin, Rejection, Resolutions, View,
    decide, evolve, react,
};
use shared_types::payload::file::{FileChange, FileEvent};
use shared_types::{
    Actor, ChainHash, CommandId, ContentHash, ContentRef, Event, EventId, OpId, Payload, RootHash, RunId,
    Seq, Source, Subject, Timestamp,
};

use crate::steps::{Act, OldEvent, Step, path};

/// The names of the slices that undo and restore cover.
const REVERSIBLE: [&str; 4] = ["files", "windows", "settings", "notes"];

#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) view: View,
    /// The recorded events, as decoded.
    pub(crate) log: Vec<Event>,
    /// Effects that events started, in order.
    pub(crate) woken: Vec<Effect>,
    chain: ChainHash,
    contents: Contents,
    minted: u64,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self {
            view: View::default(),
            log: Vec::new(),
            woken: Vec::new(),
            chain: ChainHash::default(),
            contents: Contents::new(),
            minted: 0,
        }
    }

    /// A shell after these steps, and the operation of each.
    pub(crate) fn after(steps: impl IntoIterator<Item = Step>) -> (Self, Vec<OpId>) {
        let mut shell = Self::new();
        let ops = steps.into_iter().map(|step| shell.done(step)).collect();
        (shell, ops)
    }

    pub(crate) fn bits(&mut self) -> [u8; 10] {
        self.minted += 1;
        let mut bits = [0; 10];
        bits[2..].copy_from_slice(&self.minted.to_be_bytes());
        bits
    }

    pub(crate) fn op(&mut self) -> OpId {
        OpId::mint(self.now(), self.bits())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + self.minted as i64)
    }

    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> ContentRef {
        let content = ContentRef::of(&bytes);
        self.contents.insert(content.hash, bytes);
        content
    }

    pub(crate) fn content(&self, hash: &ContentHash) -> Option<&[u8]> {
        self.contents.get(hash).map(Vec::as_slice)
    }

    /// Deletes bytes for good.
    pub(crate) fn forget(&mut self, hash: &ContentHash) {
        self.contents.remove(hash);
    }

    pub(crate) fn command(&mut self, op: OpId, action: Action) -> Command {
        let id = CommandId::mint(self.now(), self.bits());
        let origin = Origin::new(id, op, Source::User, Actor::CLI);
        Command { origin, ts: self.now(), action, contents: Contents::new() }
    }

    /// Decides without appending, supplying contents as they are asked for.
    pub(crate) fn decided(&self, mut command: Command) -> Result<Decision, Rejection> {
        loop {
            let answer = decide(&self.view, &command);
            assert_eq!(
                answer,
                decide(&self.view, &command),
                "a decision does not depend on when it is taken"
            );
            let Err(Rejection::Missing { hashes }) = &answer else { return answer };
            assert!(!hashes.is_empty(), "something is missing, but what?");
            let asked = hashes.iter().filter(|hash| !command.contents.contains_key(*hash));
            let found: Contents =
                asked.filter_map(|hash| Some((*hash, self.contents.get(hash)?.clone()))).collect();
            if found.is_empty() {
                return answer;
            }
            command.contents.extend(found);
        }
    }

    /// Takes a step as an operation of its own.
    pub(crate) fn run(&mut self, step: impl Into<Step>) -> Result<Vec<Event>, Rejection> {
        let op = self.op();
        self.run_in(op, step)
    }

    pub(crate) fn run_in(&mut self, op: OpId, step: impl Into<Step>) -> Result<Vec<Event>, Rejection> {
        let Step { act, contents, run, taint, ts, source } = step.into();
        for bytes in contents {
            self.keep(bytes);
        }
        let action = match act {
            Act::Do(action) => action,
            Act::Record(event) => return Ok(self.record_old(op, &event)),
        };
        let command = self.command(op, action);
        let ts = ts.unwrap_or(command.ts);
        let origin = Origin { run_id: run, taint, source, ..command.origin.clone() };
        let decision = self.decided(Command { origin, ts, ..command })?;
        Ok(self.append(decision))
    }

    /// Appends an event as an older version recorded it.
    fn record_old(&mut self, op: OpId, event: &OldEvent) -> Vec<Event> {
        let Some(payload) = event.payload(&self.view) else { return Vec::new() };
        let event = Event {
            seq: self.view.seq().next(),
            id: EventId::mint(self.now(), self.bits()),
            ts: self.now(),
            source: Source::User,
            op,
            actor: Actor::CLI,
            run_id: None,
            cause: None,
            taint: Vec::new(),
            payload,
        };
        self.append(Decision { events: vec![event], contents: Vec::new() })
    }

    /// Takes a step that must succeed, and names its operation.
    pub(crate) fn done(&mut self, step: impl Into<Step>) -> OpId {
        let op = self.op();
        self.run_in(op, step).expect("the step is fine");
        op
    }

    pub(crate) fn append(&mut self, Decision { events, contents }: Decision) -> Vec<Event> {
        assert!(events.len() <= MAX_EVENTS);
        let named: BTreeSet<ContentHash> = events.iter().flat_map(named_contents).collect();
        for (hash, bytes) in contents {
            assert_eq!(hash, ContentHash::of(&bytes));
            assert!(
                named.contains(&hash) || self.contents.contains_key(&hash),
                "new contents are named by an event"
            );
            self.contents.insert(hash, bytes);
        }
        for event in &events {
            assert_eq!(event.seq, self.view.seq().next(), "the log has no gaps");
            let recorded = self.record(event);
            assert_eq!(recorded, *event, "what is recorded is what was decided");
            evolve(&mut self.view, event);
            self.woken.extend(react(&self.view, event));
            self.log.push(recorded);
        }
        events
    }

    /// The event as the log gives it back.
    pub(crate) fn record(&mut self, event: &Event) -> Event {
        let stored = event.store(&self.chain);
        self.chain = stored.hash;
        let mut decoded = stored.decode().expect("what was recorded can be read");
        if let Payload::File(FileEvent::Batch(batch)) = &mut decoded.payload {
            let list = self.contents.get(&batch.list.hash).expect("the list of a batch is kept");
            batch.attach(list).expect("the list of a batch can be read");
        }
        decoded
    }

    pub(crate) fn events_of(&self, op: OpId) -> Vec<Event> {
        self.log.iter().filter(|event| event.op == op).cloned().collect()
    }

    pub(crate) fn undo(&mut self, target: OpId) -> Result<Vec<Event>, Rejection> {
        self.undo_with(target, Resolutions::default())
    }

    pub(crate) fn undo_with(
        &mut self,
        target: OpId,
        resolutions: Resolutions,
    ) -> Result<Vec<Event>, Rejection> {
        let events = self.events_of(target);
        self.run(Action::Undo { target, events, resolutions })
    }

    pub(crate) fn events_in(&self, run: RunId) -> Vec<Event> {
        self.log.iter().filter(|event| event.run_id == Some(run)).cloned().collect()
    }

    pub(crate) fn undo_run(&mut self, run: RunId) -> Result<Vec<Event>, Rejection> {
        self.undo_run_with(run, Resolutions::default())
    }

    pub(crate) fn undo_run_with(
        &mut self,
        run: RunId,
        resolutions: Resolutions,
    ) -> Result<Vec<Event>, Rejection> {
        let events = self.events_in(run);
        self.run(Action::UndoRun { run, events, resolutions })
    }

    /// Brings back an operation that is undone now.
    pub(crate) fn redo(&mut self, op: OpId) -> Result<Vec<Event>, Rejection> {
        let by = *self.view.undone.get(&op).ok_or(Rejection::NotUndone { op })?;
        self.undo(by)
    }

    pub(crate) fn restore(&mut self, seq: Seq) -> Result<Vec<Event>, Rejection> {
        let target = Arc::new(self.at(seq));
        self.run(Action::Restore { seq, target })
    }

    /// The view as it stood at a seq, replayed from what was recorded.
    pub(crate) fn at(&self, seq: Seq) -> View {
        let mut view = View::default();
        for event in self.log.iter().take_while(|event| event.seq <= seq) {
            evolve(&mut view, event);
        }
        view
    }

    pub(crate) fn root(&mut self) -> RootHash {
        self.view.root()
    }

    /// The hashes of the slices that undo and restore cover.
    pub(crate) fn state(&mut self) -> Vec<(&'static str, RootHash)> {
        reversible_roots(&mut self.view)
    }

    /// The bytes of the file at a path.
    pub(crate) fn bytes(&self, at: &str) -> Option<&[u8]> {
        self.content(&self.view.files.get(&path(at))?.content()?.hash)
    }
}

/// The contents of files and lists that an event names.
fn named_contents(event: &Event) -> Vec<ContentHash> {
    let Payload::File(file) = &event.payload else { return Vec::new() };
    let changes = file.changes();
    let nodes = changes.iter().filter_map(|change| match change {
        FileChange::Write(p) => p.node.content(),
        FileChange::Delete(_) => None,
        FileChange::Move(p) => p.node.content(),
    });
    let list = if let FileEvent::Batch(batch) = file { Some(batch.list) } else { None };
    nodes.chain(list).map(|content| content.hash).collect()
}

pub(crate) fn reversible_roots(view: &mut View) -> Vec<(&'static str, RootHash)> {
    view.roots().into_iter().filter(|(name, _)| REVERSIBLE.contains(name)).collect()
}

/// The same choice for every conflict.
pub(crate) fn all(choice: Choice) -> Resolutions {
    Resolutions { others: Some(choice), ..Resolutions::default() }
}

/// One choice for each of these.
pub(crate) fn each(subjects: impl IntoIterator<Item = Subject>, choice: Choice) -> Resolutions {
    Resolutions { each: subjects.into_iter().map(|subject| (subject, choice)).collect(), others: None }
}
