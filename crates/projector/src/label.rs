//! Short descriptions of events, for lists.

use shared_types::payload::capability::CapabilityEvent;
use shared_types::payload::file::FileEvent;
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::message::MessageEvent;
use shared_types::payload::revert::RevertEvent;
use shared_types::payload::run::{ApprovalScope, AskKind, PauseReason, Reply, RunEvent};
use shared_types::payload::task::{MessageKind, TaskEvent, TaskOutcome};
use shared_types::payload::tool::{StopReason, ToolHold, ToolStatus};
use shared_types::payload::window::{WindowMode, WindowSet};
use shared_types::{OpId, Payload};

/// The last digits of an id, which differ between operations; the first digits are only the time.
pub fn short(op: &OpId) -> String {
    let text = op.to_string();
    text[text.len() - 8..].to_owned()
}

/// One event in a few words.
pub fn label(payload: &Payload) -> String {
    use shared_types::payload::{checkpoint, note, setting, system, tool, user, window};
    match payload {
        Payload::File(FileEvent::Write(p)) if p.prev.is_none() => format!("create {}", p.path),
        Payload::File(FileEvent::Write(p)) => format!("edit {}", p.path),
        Payload::File(FileEvent::Delete(p)) => format!("delete {}", p.path),
        Payload::File(FileEvent::Move(p)) => format!("move {} to {}", p.from, p.to),
        Payload::File(FileEvent::Batch(p)) => format!("change {} files", p.count),
        Payload::Window(window::WindowEvent::Set(p)) => format!("{} window {}", arranged(p), p.state.title),
        Payload::Window(window::WindowEvent::Close(p)) => format!("close window {}", p.prev.title),
        Payload::Setting(setting::SettingEvent::Set(p)) => format!("set {} to {}", p.key, p.value),
        Payload::Setting(setting::SettingEvent::Clear(p)) => format!("clear {}", p.key),
        Payload::Message(MessageEvent::Start(p)) => format!("start conversation {}", p.title),
        Payload::Message(MessageEvent::Post(_)) => "post a message".into(),
        Payload::Note(note::NoteEvent::Write(p)) => format!("note {}", p.state.title),
        Payload::Note(note::NoteEvent::Delete(p)) => format!("delete note {}", p.prev.title),
        Payload::Checkpoint(checkpoint::CheckpointEvent::Request(p)) => format!("checkpoint: {}", p.message),
        Payload::Checkpoint(checkpoint::CheckpointEvent::Create(p)) => {
            format!("checkpoint made: {}", p.message)
        }
        Payload::Checkpoint(checkpoint::CheckpointEvent::Fail(p)) => {
            format!("checkpoint failed: {}", p.reason)
        }
        Payload::Tool(tool::ToolEvent::Call(p)) => format!("ran: {}", p.title),
        Payload::Tool(tool::ToolEvent::Request(p)) => format!("asked for {}:{}", p.host, p.port),
        Payload::Tool(tool::ToolEvent::Hold(p)) => held(p),
        Payload::Tool(tool::ToolEvent::Result(p)) => ended(&p.status),
        Payload::Run(event) => of_run(event),
        Payload::Task(event) => of_task(event),
        Payload::Llm(LlmEvent::Reply(p)) => format!("{} answered", p.model),
        Payload::Llm(LlmEvent::Fail(p)) => format!("{} did not answer: {}", p.model, p.reason),
        Payload::Capability(CapabilityEvent::Grant(p)) => {
            format!("allow {}: {}", p.grant.tool, p.grant.pattern)
        }
        Payload::Capability(CapabilityEvent::Revoke(_)) => "revoke a permission".into(),
        Payload::Revert(RevertEvent::Undo(p)) if !p.steps.is_empty() => {
            format!("undo run {}", short(&p.root))
        }
        Payload::Revert(RevertEvent::Redo(p)) if !p.steps.is_empty() => {
            format!("redo run {}", short(&p.root))
        }
        Payload::Revert(RevertEvent::Undo(p)) => format!("undo {}", short(&p.target)),
        Payload::Revert(RevertEvent::Redo(p)) => format!("redo {}", short(&p.root)),
        Payload::Revert(RevertEvent::Restore(p)) => format!("restore to {}", p.seq),
        Payload::User(user::UserEvent::Create(p)) => format!("set up for {}", p.name),
        Payload::User(user::UserEvent::Rename(p)) => format!("rename to {}", p.name),
        Payload::System(system::SystemEvent::Purge(p)) => format!("purge {} contents", p.hashes.len()),
        Payload::System(system::SystemEvent::Purged(p)) => format!("purged {} contents", p.dropped),
        Payload::System(system::SystemEvent::Import(p)) => format!("import {} files of {}", p.files, p.user),
        Payload::Unknown(p) => p.name.to_string(),
    }
}

fn of_run(event: &RunEvent) -> String {
    match event {
        RunEvent::Start(p) => p.title.to_string(),
        RunEvent::Steer(_) => "message to an agent".into(),
        RunEvent::Pause(p) => match &p.why {
            PauseReason::Person => "pause".into(),
            PauseReason::TakenOver => "take over".into(),
            PauseReason::Budget(why) | PauseReason::Model(why) => format!("paused: {why}"),
        },
        RunEvent::Resume(_) => "resume".into(),
        RunEvent::Wake(_) => "continue after a restart".into(),
        RunEvent::Ask(p) => match &p.about {
            AskKind::Approval { tool, title, .. } if title.starts_with(&**tool) => format!("asks to {title}"),
            AskKind::Approval { tool, title, .. } => format!("asks to {tool}: {title}"),
            AskKind::Question { text, .. } => format!("asks: {text}"),
            AskKind::Interrupted { title, .. } => format!("asks whether to repeat: {title}"),
            AskKind::Outgoing { title, .. } => format!("waits in the outbox: {title}"),
        },
        RunEvent::Answer(p) => match &p.reply {
            Reply::Allow(ApprovalScope::Once) => "allow once".into(),
            Reply::Allow(ApprovalScope::Run) => "allow in this run".into(),
            Reply::Allow(ApprovalScope::Always) => "allow always".into(),
            Reply::Deny(why) => format!("deny: {why}"),
            Reply::Words(words) => format!("answer: {words}"),
            Reply::Silence => "sent from the outbox".into(),
        },
        RunEvent::Rewind(_) => "try again from an earlier step".into(),
        RunEvent::Cancel(_) => "stop the run".into(),
        RunEvent::Fail(p) => format!("run failed: {}", p.reason),
        RunEvent::Complete(_) => "run completed".into(),
    }
}

fn of_task(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Start(p) => format!("{}: {}", p.role, p.title),
        TaskEvent::Message(p) => match p.kind {
            MessageKind::Finding => "reports a finding".into(),
            MessageKind::Question => "asks its requester".into(),
            MessageKind::Answer => "answers".into(),
            MessageKind::Progress => "reports progress".into(),
            MessageKind::Completion => "reports completion".into(),
            MessageKind::Failure => "reports failure".into(),
        },
        TaskEvent::End(p) => match &p.outcome {
            TaskOutcome::Done => "done".into(),
            TaskOutcome::Failed(why) => format!("failed: {why}"),
            TaskOutcome::Cancelled => "stopped".into(),
        },
        TaskEvent::Trust(_) => "trust what an agent has read".into(),
    }
}

/// The result of a dry run whose changes wait.
fn held(hold: &ToolHold) -> String {
    let many =
        if hold.changes == 1 { "1 change waits".into() } else { format!("{} changes wait", hold.changes) };
    match hold.code {
        Some(code) => format!("dry run exited with {code}: {many}"),
        None => format!("dry run: {many}"),
    }
}

/// How a call ended.
fn ended(status: &ToolStatus) -> String {
    match status {
        ToolStatus::Exited { code } => format!("exited with {code}"),
        ToolStatus::Killed { signal } => format!("killed by signal {signal}"),
        ToolStatus::Stopped { why } => match why {
            StopReason::Cancelled => "stopped on request".into(),
            StopReason::Time => "stopped: out of time".into(),
            StopReason::Memory => "stopped: out of memory".into(),
            StopReason::Processes => "stopped: too many processes".into(),
            StopReason::Disk => "stopped: out of disk".into(),
            StopReason::Output => "stopped: too much output".into(),
            StopReason::Files => "stopped: too many files".into(),
        },
        ToolStatus::Failed { reason } => format!("failed: {reason}"),
        ToolStatus::Interrupted { reason } => format!("interrupted: {reason}"),
        ToolStatus::Discarded => "discarded".into(),
    }
}

/// What happened to a window, in one word.
fn arranged(set: &WindowSet) -> &'static str {
    use WindowMode::{Maximized, Minimized, Normal};
    let Some(prev) = &set.prev else { return "open" };
    match (prev.mode, set.state.mode) {
        (Normal | Maximized, Minimized) => "minimise",
        (Normal | Minimized, Maximized) => "maximise",
        (Minimized | Maximized, Normal) => "restore",
        (Normal, Normal) | (Minimized, Minimized) | (Maximized, Maximized) if prev.rect != set.state.rect => {
            "move"
        }
        (Normal, Normal) | (Minimized, Minimized) | (Maximized, Maximized) => "arrange",
    }
}
