//! Events, trees and conflicts as short lines, as the tables write them.

use kernel::{Conflict, ConflictSide, Rejection};
use shared_types::payload::capability::CapabilityEvent;
use shared_types::payload::checkpoint::CheckpointEvent;
use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::message::MessageEvent;
use shared_types::payload::note::NoteEvent;
use shared_types::payload::revert::RevertEvent;
use shared_types::payload::run::RunEvent;
use shared_types::payload::setting::SettingEvent;
use shared_types::payload::system::SystemEvent;
use shared_types::payload::task::TaskEvent;
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::payload::user::UserEvent;
use shared_types::payload::window::WindowEvent;
use shared_types::{ContentHash, Event, Payload};

use crate::shell::Shell;
use crate::steps::Step;

impl Shell {
    fn text(&self, hash: &ContentHash) -> String {
        let bytes = self.content(hash).expect("the shell has every content that is shown");
        let text = String::from_utf8_lossy(bytes);
        text.strip_suffix('\n').unwrap_or(&text).replace('\n', "|")
    }

    fn node(&self, node: &FileNode) -> String {
        match node {
            FileNode::File { hash, mode: FileNode::DEFAULT_MODE, .. } => format!(": {}", self.text(hash)),
            FileNode::File { hash, mode, .. } => format!(": {} ({mode:o})", self.text(hash)),
            FileNode::Symlink { target } => format!(" -> {target}"),
            FileNode::Folder => "/".into(),
        }
    }

    /// Everything in the workspace, such as `a: 1|2; d/; l -> a; x: run (755)`.
    pub(crate) fn tree(&self) -> String {
        let lines =
            self.view.files.sorted().into_iter().map(|(path, node)| format!("{path}{}", self.node(node)));
        lines.collect::<Vec<_>>().join("; ")
    }

    fn change(&self, change: &FileChange) -> String {
        match change {
            FileChange::Write(p) if p.prev.is_some() => format!("replace {}{}", p.path, self.node(&p.node)),
            FileChange::Write(p) => format!("write {}{}", p.path, self.node(&p.node)),
            FileChange::Delete(p) => format!("delete {}", p.path),
            FileChange::Move(p) => format!("move {} to {}", p.from, p.to),
        }
    }

    pub(crate) fn event(&self, event: &Event) -> String {
        match &event.payload {
            Payload::File(FileEvent::Batch(batch)) => format!("batch of {}", batch.count),
            Payload::File(file) => self.change(&file.changes()[0]),
            Payload::Window(WindowEvent::Set(p)) => format!("set window {}", p.state.title),
            Payload::Window(WindowEvent::Close(p)) => format!("close window {}", p.prev.title),
            Payload::Setting(SettingEvent::Set(p)) => format!("set {} = {}", p.key, p.value),
            Payload::Setting(SettingEvent::Clear(p)) => format!("clear {}", p.key),
            Payload::Note(NoteEvent::Write(p)) => format!("write note {}", p.state.title),
            Payload::Note(NoteEvent::Delete(p)) => format!("delete note {}", p.prev.title),
            Payload::Message(MessageEvent::Start(p)) => format!("start {}", p.title),
            Payload::Message(MessageEvent::Post(p)) => format!("post {} bytes", p.body.size),
            Payload::Checkpoint(CheckpointEvent::Request(p)) => format!("request checkpoint {}", p.message),
            Payload::Checkpoint(CheckpointEvent::Create(p)) => format!("checkpoint of {}", p.seq),
            Payload::Checkpoint(CheckpointEvent::Fail(p)) => format!("checkpoint failed: {}", p.reason),
            Payload::Tool(ToolEvent::Call(p)) => format!("call {}: {}", p.tool, p.title),
            Payload::Tool(ToolEvent::Request(p)) => format!("request {}:{}", p.host, p.port),
            Payload::Tool(ToolEvent::Hold(p)) => format!("hold {}", p.changes),
            Payload::Tool(ToolEvent::Result(p)) => {
                let lines =
                    [ended(&p.status)].into_iter().chain(p.report.notes.iter().map(ToString::to_string));
                lines.collect::<Vec<_>>().join("; ")
            }
            Payload::Revert(RevertEvent::Undo(_)) => "undo".into(),
            Payload::Revert(RevertEvent::Redo(_)) => "redo".into(),
            Payload::Revert(RevertEvent::Restore(p)) => format!("restore {}", p.seq),
            Payload::User(UserEvent::Create(p)) => format!("create user {}", p.name),
            Payload::User(UserEvent::Rename(p)) => format!("rename user {} to {}", p.prev, p.name),
            Payload::System(SystemEvent::Purge(p)) => format!("purge {}", p.hashes.len()),
            Payload::System(SystemEvent::Purged(p)) => format!("purged {}", p.dropped),
            Payload::System(SystemEvent::Import(p)) => format!("import {}", p.files),
            Payload::Run(run) => of_run(run),
            Payload::Task(task) => of_task(task),
            Payload::Llm(LlmEvent::Reply(p)) => format!("{} answered", p.model),
            Payload::Llm(LlmEvent::Fail(p)) => format!("{} failed: {}", p.model, p.reason),
            Payload::Capability(CapabilityEvent::Grant(p)) => {
                format!("grant {} {}", p.grant.tool, p.grant.pattern)
            }
            Payload::Capability(CapabilityEvent::Revoke(_)) => "revoke".into(),
            Payload::Unknown(_) => event.payload.name().to_string(),
        }
    }

    pub(crate) fn events(&self, events: &[Event]) -> Vec<String> {
        events.iter().map(|event| self.event(event)).collect()
    }

    fn side(&self, state: &ConflictSide) -> String {
        match state {
            ConflictSide::Absent => "nothing".into(),
            ConflictSide::File(node) => self.node(node).trim_start_matches([':', ' ']).to_owned(),
            ConflictSide::Several(count) => format!("{count} files"),
            ConflictSide::Setting(value) => value.to_string(),
            ConflictSide::Window(window) => window.title.to_string(),
            ConflictSide::Note(note) => note.title.to_string(),
        }
    }

    /// A conflict such as `a: 1|2 or 1, the same lines were changed since`.
    pub(crate) fn conflict(&self, conflict: &Conflict) -> String {
        let Conflict { subject, today, undone, reason } = conflict;
        format!("{subject}: {} or {}, {reason}", self.side(today), self.side(undone))
    }
}

fn of_run(run: &RunEvent) -> String {
    match run {
        RunEvent::Start(p) => format!("start run {}", p.title),
        RunEvent::Steer(_) => "steer".into(),
        RunEvent::Pause(p) => format!("pause {:?}", p.why),
        RunEvent::Resume(_) => "resume".into(),
        RunEvent::Wake(_) => "wake".into(),
        RunEvent::Ask(_) => "ask".into(),
        RunEvent::Answer(p) => format!("answer {:?}", p.reply),
        RunEvent::Rewind(p) => format!("rewind to {}", p.to),
        RunEvent::Cancel(_) => "cancel".into(),
        RunEvent::Fail(p) => format!("fail: {}", p.reason),
        RunEvent::Complete(_) => "complete".into(),
    }
}

fn of_task(task: &TaskEvent) -> String {
    match task {
        TaskEvent::Start(p) => format!("start {} {}", p.role, p.title),
        TaskEvent::Message(p) => format!("tell {:?}", p.kind),
        TaskEvent::End(p) => format!("end {:?}", p.outcome),
        TaskEvent::Trust(_) => "trust".into(),
    }
}

fn ended(status: &ToolStatus) -> String {
    match status {
        ToolStatus::Exited { code } => format!("exited {code}"),
        ToolStatus::Killed { signal } => format!("killed {signal}"),
        ToolStatus::Stopped { why } => format!("stopped {why:?}"),
        ToolStatus::Failed { reason } => format!("failed {reason}"),
        ToolStatus::Interrupted { reason } => format!("interrupted {reason}"),
        ToolStatus::Discarded => "discarded".into(),
    }
}

/// Given these steps, this one makes these events.
#[track_caller]
pub(crate) fn makes(given: impl IntoIterator<Item = Step>, when: impl Into<Step>, then: &[&str]) {
    let (mut shell, _) = Shell::after(given);
    let events = shell.run(when).expect("it is not refused");
    assert_eq!(shell.events(&events), then);
}

/// Given these steps, this one is refused for this reason, and nothing changes.
#[track_caller]
pub(crate) fn refuses(given: impl IntoIterator<Item = Step>, when: impl Into<Step>, then: Rejection) {
    let (mut shell, _) = Shell::after(given);
    let before = (shell.root(), shell.view.seq());
    assert_eq!(shell.run(when), Err(then));
    assert_eq!((shell.root(), shell.view.seq()), before, "a refused command changes nothing");
}
