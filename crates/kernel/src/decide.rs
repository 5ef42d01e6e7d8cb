//! Deciding: from a command and the current view to events, or to a typed refusal.
//!
//! One file per kind of action. All of them fill a [`Draft`], which numbers the events and turns a long list of file
//! changes into one `file.batch`.

mod calls;
mod capture;
mod desktop;
mod effects;
mod paths;
mod plan;
mod restore;
mod reversal;
mod rewind;
mod runs;
mod undo;

use std::collections::{BTreeMap, BTreeSet};

use shared_types::payload::file::{FileBatch, FileChange, FileEvent};
use shared_types::payload::run::RunEvent;
use shared_types::payload::system::SystemEvent;
use shared_types::payload::tool::{ToolEvent, ToolHold};
use shared_types::payload::user::UserCreate;
use shared_types::{ContentHash, Event, EventId, Payload, Seq, Source, Taint};

use crate::{Action, Call, Command, Rejection, View};

/// An append holds at most this many events.
pub const MAX_EVENTS: usize = 500;

/// The result of a command: events, and new contents that they name. No events means that it was a no-op.
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "a decision takes effect only when its events are appended"]
pub struct Decision {
    pub events: Vec<Event>,
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

/// Decides a command against the current view.
pub fn decide(view: &View, command: &Command) -> Result<Decision, Rejection> {
    let mut draft = Draft::default();
    match &command.action {
        Action::CreateUser { name } => {
            check_text("a name", name, 200)?;
            if view.computer.owner.is_some() {
                return Err(Rejection::AlreadySetUp);
            }
            draft.event(UserCreate { name: name.clone() });
        }
        Action::WriteFile { path, node, base } => paths::write(view, &mut draft, path, node, *base)?,
        Action::WriteFiles { files } => paths::write_several(view, &mut draft, files)?,
        Action::DeletePaths { paths } => paths::delete(view, &mut draft, paths)?,
        Action::MovePaths { moves } => paths::rename(view, &mut draft, moves)?,
        Action::CaptureEdits { edits } => {
            capture::capture(view, &mut draft, edits, &command.contents, capture::Winner::Edit)?;
        }
        Action::ImportFiles { origin, files } => paths::import(view, &mut draft, origin, files)?,
        Action::SetWindow { window, state } => desktop::set_window(view, &mut draft, *window, state)?,
        Action::CloseWindow { window } => desktop::close_window(view, &mut draft, *window)?,
        Action::SetSetting { key, value } => desktop::set_setting(view, &mut draft, key, value)?,
        Action::ClearSetting { key } => desktop::clear_setting(view, &mut draft, key)?,
        Action::RequestCheckpoint { effect, reason, message } => {
            effects::request_checkpoint(view, &mut draft, *effect, *reason, message)?;
        }
        Action::RecordCheckpoint { effect, commit, seq, message } => {
            effects::record_checkpoint(view, &mut draft, *effect, commit, *seq, message)?;
        }
        Action::FailCheckpoint { effect, reason } => {
            effects::fail_checkpoint(view, &mut draft, *effect, reason)?
        }
        Action::RequestPurge { effect, hashes, reason } => {
            effects::request_purge(view, &mut draft, *effect, hashes, reason)?;
        }
        Action::RecordPurge { effect, dropped } => {
            effects::record_purge(view, &mut draft, *effect, *dropped)?
        }
        Action::StartCall(call) => calls::start(view, &mut draft, command, call)?,
        Action::MakeCall { call, status, report, edits, also } => {
            calls::start(view, &mut draft, command, call)?;
            if let Some(also) = also {
                runs::decide(view, &mut draft, command.origin.run_id, also)?;
            }
            calls::answer(view, &mut draft, status, report, edits, &command.contents)?;
        }
        Action::Run(action) => runs::decide(view, &mut draft, command.origin.run_id, action)?,
        Action::Revoke { grant } => runs::revoke(view, &mut draft, *grant)?,
        Action::RecordRequest { call, request } => {
            calls::request(view, &mut draft, command.origin.op, *call, request)?;
        }
        Action::HoldCall { report, changes, code } => {
            let held = ToolHold { report: report.clone(), changes: *changes, code: *code };
            calls::hold(view, &mut draft, command.origin.op, held)?;
        }
        Action::FinishCall { status, report, edits } => {
            calls::finish(view, &mut draft, command.origin.op, status, report, edits, &command.contents)?;
        }
        Action::Undo { target, events, resolutions } => {
            undo::undo(view, &mut draft, *target, events, resolutions, &command.contents)?;
        }
        Action::UndoRun { run, events, resolutions } => {
            undo::undo_run(view, &mut draft, *run, events, resolutions, &command.contents)?;
        }
        Action::RetryRun { run, to, events, resolutions } => {
            rewind::retry(view, &mut draft, *run, *to, events, resolutions, &command.contents)?;
        }
        Action::Restore { seq, target } => restore::restore(view, &mut draft, *seq, target)?,
    }
    draft.finish(view, command)
}

/// The call that a command continues, if it does.
fn continued_call<'v>(view: &'v View, command: &Command) -> Option<&'v Call> {
    let continues_call = matches!(
        command.action,
        Action::RecordRequest { .. } | Action::HoldCall { .. } | Action::FinishCall { .. }
    );
    view.calls.get(&command.origin.op).filter(|_| continues_call)
}

/// The event because of which a command is carried out: the one that its caller names, the start of the call that it
/// continues, or the first event that it undoes.
fn cause_of(command: &Command, call: Option<&Call>) -> Option<EventId> {
    let undone = if let Action::Undo { events, .. }
    | Action::UndoRun { events, .. }
    | Action::RetryRun { events, .. } = &command.action
    {
        events.first()
    } else {
        None
    };
    command.origin.cause.or(call.map(|call| call.event)).or(undone.map(|event| event.id))
}

/// Whether the events that follow in the same decision happen because of this one.
fn is_cause_of_the_rest(payload: &Payload) -> bool {
    match payload {
        Payload::Tool(ToolEvent::Call(_))
        | Payload::Revert(_)
        | Payload::Run(RunEvent::Rewind(_))
        | Payload::System(SystemEvent::Import(_)) => true,
        Payload::Tool(_)
        | Payload::Run(_)
        | Payload::System(_)
        | Payload::File(_)
        | Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::Checkpoint(_)
        | Payload::Task(_)
        | Payload::Llm(_)
        | Payload::Capability(_)
        | Payload::User(_)
        | Payload::Unknown(_) => false,
    }
}

/// The events of a decision while it is being made.
#[derive(Debug, Default)]
struct Draft {
    payloads: Vec<Payload>,
    files: Vec<FileChange>,
    /// The event that comes after the file changes.
    last: Option<Payload>,
    contents: Vec<(ContentHash, Vec<u8>)>,
}

impl Draft {
    fn event(&mut self, payload: impl Into<Payload>) {
        self.payloads.push(payload.into());
    }

    /// Adds new bytes and returns their hash.
    fn content(&mut self, bytes: Vec<u8>) -> ContentHash {
        let hash = ContentHash::of(&bytes);
        self.contents.push((hash, bytes));
        hash
    }

    /// The taint labels that a file keeps although the command has none, because the new content may hold tainted text:
    /// an edit found on disk may have kept some of the old content, and a merged file holds a part of each of its
    /// sources. An agent without taint that writes a whole file has not read the old content, and a person who saves a
    /// file has seen it, so these two remove the labels.
    fn kept_taint(&self, view: &View, command: &Command, change: &FileChange) -> Vec<Taint> {
        let FileChange::Write(write) = change else { return Vec::new() };
        let is_found = matches!(command.action, Action::CaptureEdits { .. } | Action::FinishCall { .. })
            && command.origin.source != Source::Agent;
        let hash = write.node.content().map(|content| content.hash);
        let is_merged = self.contents.iter().any(|(made, _)| Some(*made) == hash);
        let old = view.tainted_files.get(&write.path).filter(|_| is_found || is_merged);
        let sources = command.contents.keys().filter(|_| is_merged);
        let sources = sources.filter_map(|source| view.tainted_contents.get(source));
        let labels: BTreeSet<&Taint> = old.into_iter().chain(sources).flatten().collect();
        labels.into_iter().filter(|label| !command.origin.taint.contains(label)).cloned().collect()
    }

    fn finish(mut self, view: &View, command: &Command) -> Result<Decision, Rejection> {
        let call = continued_call(view, command);
        // A command that continues a call belongs to the run in which the call was made.
        let run = call.map_or(command.origin.run_id, |call| call.run);
        let mut cause = cause_of(command, call);
        // Changes with the same kept labels stay together; those without labels come first, in the order of the plan.
        let mut files: BTreeMap<Vec<Taint>, Vec<FileChange>> = BTreeMap::new();
        for change in std::mem::take(&mut self.files) {
            files.entry(self.kept_taint(view, command, &change)).or_default().push(change);
        }
        let plain = |payload| (Vec::new(), payload);
        let mut payloads: Vec<(Vec<Taint>, Payload)> = self.payloads.into_iter().map(plain).collect();
        let changes: usize = files.values().map(Vec::len).sum();
        let is_long = payloads.len() + changes + usize::from(self.last.is_some()) > MAX_EVENTS;
        for (labels, changes) in files {
            if is_long {
                let (batch, list) = FileBatch::of(changes);
                self.contents.push((batch.list.hash, list));
                payloads.push((labels, FileEvent::Batch(batch).into()));
            } else {
                let each = |change| (labels.clone(), FileEvent::from(change).into());
                payloads.extend(changes.into_iter().map(each));
            }
        }
        payloads.extend(self.last.map(plain));
        if payloads.len() > MAX_EVENTS {
            let (size, limit) = (payloads.len() as u64, MAX_EVENTS as u64);
            return Err(Rejection::TooLarge { what: "the number of events", size, limit });
        }
        let mut seq = view.seq();
        let events = payloads.into_iter().enumerate().map(|(index, (labels, payload))| {
            seq = seq.next();
            let plain = event(command, seq, index as u64, payload);
            let taint = plain.taint.into_iter().chain(labels).collect();
            let event = Event { run_id: run, cause, taint, ..plain };
            if is_cause_of_the_rest(&event.payload) {
                cause = Some(event.id);
            }
            event
        });
        Ok(Decision { events: events.collect(), contents: self.contents })
    }
}

fn event(command: &Command, seq: Seq, index: u64, payload: Payload) -> Event {
    Event {
        seq,
        id: EventId::mint(command.ts, event_bits(command, index)),
        ts: command.ts,
        source: command.origin.source,
        op: command.origin.op,
        actor: command.origin.actor.clone(),
        run_id: command.origin.run_id,
        cause: command.origin.cause,
        taint: command.origin.taint.clone(),
        payload,
    }
}

/// The bits of an event's id: those of its command mixed with its index, so that a repeated decision gives the same
/// ids and no two events share one.
fn event_bits(command: &Command, index: u64) -> [u8; 10] {
    let bytes = command.origin.command.as_bytes();
    let word = |range: std::ops::Range<usize>| {
        bytes[range].iter().fold(0u64, |acc, byte| acc << 8 | u64::from(*byte))
    };
    let mut x = word(8..16) ^ word(0..8).rotate_left(32) ^ (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let mut bits = [0; 10];
    bits[..8].copy_from_slice(&x.to_be_bytes());
    bits[8..].copy_from_slice(&(index as u16).to_be_bytes());
    bits
}

fn check_size(what: &'static str, size: u64, limit: u64) -> Result<(), Rejection> {
    if size > limit { Err(Rejection::TooLarge { what, size, limit }) } else { Ok(()) }
}

fn check_text(what: &'static str, text: &str, limit: u64) -> Result<(), Rejection> {
    check_size(what, text.len() as u64, limit)?;
    if text.trim().is_empty() {
        return Err(Rejection::Invalid { what, reason: "it is empty".into() });
    }
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err(Rejection::Invalid { what, reason: "it holds control characters".into() });
    }
    Ok(())
}
