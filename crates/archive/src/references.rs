//! Which contents an event refers to.
//!
//! A content belongs in an archive if its 64 digits appear anywhere in an event or in the list of a batch, even if
//! this version does not understand the event: the log keeps contents by the same rule. Events that this version
//! understands also say which contents they require; those must be in the archive or declared absent.

use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::message::MessageEvent;
use shared_types::payload::note::NoteEvent;
use shared_types::payload::run::{AskKind, RunAsk, RunEvent};
use shared_types::payload::task::TaskEvent;
use shared_types::payload::tool::ToolEvent;
use shared_types::{ContentHash, ContentRef, Event, Payload, StoredEvent};

/// Whether the contents that this event names are lists of further contents.
pub(super) fn refers_to_lists(event: &StoredEvent<'_>) -> bool {
    event.name == "file.batch"
}

/// Visits the contents that a decoded event, with its list attached, requires.
pub(super) fn each_required_content(event: &Event, visit: &mut dyn FnMut(ContentHash)) {
    let mut content = |found: &ContentRef| visit(found.hash);
    match &event.payload {
        Payload::File(FileEvent::Batch(batch)) => {
            content(&batch.list);
            batch.changes.iter().for_each(|change| change_contents(change, visit));
        }
        Payload::File(file @ (FileEvent::Write(_) | FileEvent::Delete(_) | FileEvent::Move(_))) => {
            file.changes().iter().for_each(|change| change_contents(change, visit));
        }
        Payload::Note(NoteEvent::Write(p)) => {
            content(&p.state.body);
            p.prev.iter().for_each(|note| content(&note.body));
        }
        Payload::Note(NoteEvent::Delete(p)) => content(&p.prev.body),
        Payload::Message(MessageEvent::Post(p)) => content(&p.body),
        Payload::Tool(ToolEvent::Call(p)) => content(&p.input),
        Payload::Tool(ToolEvent::Hold(p)) => p.report.output.iter().for_each(content),
        Payload::Tool(ToolEvent::Result(p)) => p.report.output.iter().for_each(content),
        Payload::Run(RunEvent::Start(p)) => content(&p.objective),
        Payload::Run(RunEvent::Steer(p)) => content(&p.words),
        Payload::Run(RunEvent::Complete(p)) => content(&p.summary),
        Payload::Run(RunEvent::Ask(RunAsk {
            about: AskKind::Approval { input, .. } | AskKind::Outgoing { input, .. },
            ..
        })) => content(input),
        Payload::Task(TaskEvent::Start(p)) => content(&p.instruction),
        Payload::Task(TaskEvent::Message(p)) => content(&p.body),
        Payload::Llm(LlmEvent::Reply(p)) => content(&p.reply),
        Payload::Run(
            RunEvent::Ask(RunAsk { about: AskKind::Question { .. } | AskKind::Interrupted { .. }, .. })
            | RunEvent::Pause(_)
            | RunEvent::Resume(_)
            | RunEvent::Rewind(_)
            | RunEvent::Wake(_)
            | RunEvent::Answer(_)
            | RunEvent::Cancel(_)
            | RunEvent::Fail(_),
        )
        | Payload::Task(TaskEvent::End(_) | TaskEvent::Trust(_))
        | Payload::Llm(LlmEvent::Fail(_))
        | Payload::Capability(_)
        | Payload::Tool(ToolEvent::Request(_))
        | Payload::Message(MessageEvent::Start(_))
        | Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Checkpoint(_)
        | Payload::Revert(_)
        | Payload::User(_)
        | Payload::System(_)
        | Payload::Unknown(_) => {}
    }
}

fn change_contents(change: &FileChange, visit: &mut dyn FnMut(ContentHash)) {
    let nodes = match change {
        FileChange::Write(p) => [Some(&p.node), p.prev.as_ref()],
        FileChange::Delete(p) => [Some(&p.prev), None],
        FileChange::Move(p) => [Some(&p.node), None],
    };
    let contents = nodes.into_iter().flatten().filter_map(FileNode::content);
    contents.for_each(|content| visit(content.hash));
}
