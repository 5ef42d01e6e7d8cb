//! The one function that changes a view. It is total: it applies every recorded event, refuses none, merges nothing and
//! reads nothing else.

mod runs;

use shared_types::payload::capability::CapabilityEvent;
use shared_types::payload::checkpoint::CheckpointEvent;
use shared_types::payload::file::{FileChange, FileDelete, FileEvent, FileMove, FileWrite};
use shared_types::payload::message::MessageEvent;
use shared_types::payload::note::NoteEvent;
use shared_types::payload::revert::RevertEvent;
use shared_types::payload::setting::SettingEvent;
use shared_types::payload::system::SystemEvent;
use shared_types::payload::tool::ToolEvent;
use shared_types::payload::user::UserEvent;
use shared_types::payload::window::WindowEvent;
use shared_types::{Event, FilePath, Payload, Taint};

use crate::effect::requested;
use crate::view::{Call, CallState};
use crate::{Conversation, View};

/// Applies one event, live and in a replay.
pub fn evolve(view: &mut View, event: &Event) {
    view.seq = event.seq;
    view.changes += 1;
    if let Some(effect) = requested(&event.payload) {
        view.pending.insert(effect.id, effect.kind);
    }
    match &event.payload {
        Payload::File(file) => {
            evolve_files(view, file, &event.taint);
            count_operation(view, event);
        }
        Payload::Window(WindowEvent::Set(p)) => drop(view.windows.insert(p.window, p.state.clone())),
        Payload::Window(WindowEvent::Close(p)) => drop(view.windows.remove(&p.window)),
        Payload::Setting(SettingEvent::Set(p)) => {
            view.settings.insert(p.key.clone(), p.value.to_string().into());
        }
        Payload::Setting(SettingEvent::Clear(p)) => drop(view.settings.remove(&p.key)),
        Payload::Note(NoteEvent::Write(p)) => drop(view.notes.insert(p.note, p.state.clone())),
        Payload::Note(NoteEvent::Delete(p)) => drop(view.notes.remove(&p.note)),
        Payload::Message(MessageEvent::Start(p)) => {
            let conversation = Conversation { title: p.title.clone(), messages: 0, last: event.seq };
            view.conversations.insert(p.conversation, conversation);
        }
        Payload::Message(MessageEvent::Post(p)) => {
            if let Some(known) = view.conversations.get(&p.conversation) {
                let grown = Conversation { messages: known.messages + 1, last: event.seq, ..known.clone() };
                view.conversations.insert(p.conversation, grown);
            }
        }
        Payload::Checkpoint(CheckpointEvent::Request(_)) => {}
        Payload::Checkpoint(CheckpointEvent::Create(p)) => {
            view.pending.remove(&p.effect);
            view.computer.checkpoint = Some((p.commit.clone(), p.seq));
            // Changes made while the commit was written are not in it, so they still count as unsaved.
            let newer = view.computer.last_file_change.filter(|(seq, _)| *seq > p.seq);
            view.computer.unsaved = u64::from(newer.is_some());
            view.computer.unsaved_since = newer.map(|_| event.ts);
            view.computer.last_file_change = newer;
        }
        Payload::Checkpoint(CheckpointEvent::Fail(p)) => drop(view.pending.remove(&p.effect)),
        Payload::Tool(ToolEvent::Call(p)) => {
            let (tool, title) = (p.tool.clone(), p.title.clone());
            let call = Call {
                tool,
                title,
                event: event.id,
                seq: event.seq,
                network: p.network,
                run: event.run_id,
                task: p.task,
                state: CallState::Running,
            };
            view.calls.insert(event.op, call);
            runs::call_changed(view, event);
        }
        Payload::Tool(ToolEvent::Request(_)) => {}
        Payload::Tool(ToolEvent::Hold(_)) => {
            if let Some(call) = view.calls.get(&event.op) {
                let held = Call { state: CallState::Held, ..call.clone() };
                view.calls.insert(event.op, held);
                runs::call_changed(view, event);
            }
        }
        Payload::Tool(ToolEvent::Result(p)) => {
            if let Some(call) = view.calls.remove(&event.op) {
                runs::add_taint(view, event, call.task);
                runs::call_ended(view, event, call.task, p.report.millis);
            }
        }
        Payload::Run(run) => runs::evolve(view, event, run),
        Payload::Task(task) => runs::evolve_task(view, event, task),
        Payload::Llm(llm) => runs::evolve_llm(view, event, llm),
        Payload::Capability(CapabilityEvent::Grant(p)) => drop(view.grants.insert(p.id, p.grant.clone())),
        Payload::Capability(CapabilityEvent::Revoke(p)) => drop(view.grants.remove(&p.id)),
        Payload::Revert(RevertEvent::Undo(p)) => {
            for op in p.steps.iter().chain([&p.root]) {
                view.undone.insert(*op, event.op);
            }
        }
        Payload::Revert(RevertEvent::Redo(p)) => {
            for op in p.steps.iter().chain([&p.root]) {
                view.undone.remove(op);
            }
        }
        Payload::Revert(RevertEvent::Restore(_)) => {}
        Payload::User(UserEvent::Create(p)) => view.computer.owner = Some(p.name.clone()),
        Payload::User(UserEvent::Rename(p)) => view.computer.owner = Some(p.name.clone()),
        Payload::System(SystemEvent::Purge(_) | SystemEvent::Import(_)) => {}
        Payload::System(SystemEvent::Purged(p)) => drop(view.pending.remove(&p.effect)),
        Payload::Unknown(_) => {}
    }
}

fn evolve_files(view: &mut View, event: &FileEvent, taint: &[Taint]) {
    match event {
        FileEvent::Write(p) => write(view, p, taint),
        FileEvent::Delete(p) => delete(view, p),
        FileEvent::Move(p) => rename(view, p, taint),
        FileEvent::Batch(batch) => {
            view.changes += batch.changes.len() as u64;
            for change in &batch.changes {
                match change {
                    FileChange::Write(p) => write(view, p, taint),
                    FileChange::Delete(p) => delete(view, p),
                    FileChange::Move(p) => rename(view, p, taint),
                }
            }
        }
    }
}

fn write(view: &mut View, p: &FileWrite, taint: &[Taint]) {
    view.files.set(&p.path, p.node.clone());
    // Empty content carries no text, so it gets no labels.
    let content = p.node.content().filter(|content| content.size > 0).map(|content| content.hash);
    let mut labels = taint.to_vec();
    if let Some(hash) = content {
        let known = view.tainted_contents.get(&hash).cloned().unwrap_or_default();
        labels.extend(known.iter().filter(|label| !taint.contains(label)).cloned());
        if labels.len() > known.len() {
            view.tainted_contents.insert(hash, labels.clone());
        }
    }
    set_taint(view, &p.path, labels);
}

fn delete(view: &mut View, p: &FileDelete) {
    view.files.remove(&p.path);
    set_taint(view, &p.path, Vec::new());
}

/// A moved file keeps its taint labels.
fn rename(view: &mut View, p: &FileMove, taint: &[Taint]) {
    view.files.remove(&p.from);
    view.files.set(&p.to, p.node.clone());
    let mut labels = view.tainted_files.get(&p.from).cloned().unwrap_or_default();
    labels.extend(taint.iter().filter(|label| !labels.contains(label)).cloned().collect::<Vec<_>>());
    set_taint(view, &p.from, Vec::new());
    set_taint(view, &p.to, labels);
}

fn set_taint(view: &mut View, path: &FilePath, labels: Vec<Taint>) {
    if !labels.is_empty() {
        view.tainted_files.insert(path.clone(), labels);
    } else if view.tainted_files.contains(path) {
        view.tainted_files.remove(path);
    }
}

fn count_operation(view: &mut View, event: &Event) {
    let computer = &mut view.computer;
    if computer.last_file_change.is_none_or(|(_, op)| op != event.op) {
        computer.unsaved += 1;
        computer.unsaved_since.get_or_insert(event.ts);
    }
    computer.last_file_change = Some((event.seq, event.op));
}
