//! The steps of a run as lines, and the input and output of a step.

use std::collections::{HashMap, HashSet};

use event_log::EventLog;
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{AskKind, RunEvent};
use shared_types::payload::task::{MessageKind, TaskEvent, TaskOutcome};
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::wire::{RunCost, Step, StepDetail, StepKind};
use shared_types::{ContentRef, Event, OpId, Payload, Seq, TaskId};

use super::display::{self, ShownText, line, pretty};

/// Characters of a label.
const MAX_LABEL_CHARS: usize = 160;
/// Longer contents are not read for a label.
const MAX_LABEL_SOURCE_BYTES: u64 = 64 << 10;

/// The outcome of a call, as far as it is known.
#[derive(Debug, Default, Clone, Copy)]
struct CallOutcome {
    failed: bool,
    files: u64,
}

/// Describes the events of a run as steps.
pub(super) struct StepDescriber<'a> {
    log: &'a dyn EventLog,
    undone: HashSet<OpId>,
    /// Steps that a rewind of the run dropped.
    gone: HashSet<Seq>,
    calls: HashMap<OpId, CallOutcome>,
}

/// Whether an event is a step of its own. The effects of a call belong to the call, and a grant to the answer that gave
/// it.
pub(super) fn is_step(event: &Event) -> bool {
    match &event.payload {
        Payload::Run(_) | Payload::Task(_) | Payload::Llm(_) | Payload::Tool(ToolEvent::Call(_)) => true,
        Payload::Tool(ToolEvent::Request(_) | ToolEvent::Hold(_) | ToolEvent::Result(_))
        | Payload::Capability(_)
        | Payload::File(_)
        | Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::Checkpoint(_)
        | Payload::Revert(_)
        | Payload::User(_)
        | Payload::System(_)
        | Payload::Unknown(_) => false,
    }
}

/// The operations that are calls among some events.
pub(super) fn calls(events: &[Event]) -> Vec<OpId> {
    let call = |event: &Event| matches!(event.payload, Payload::Tool(ToolEvent::Call(_))).then_some(event.op);
    events.iter().filter_map(call).collect()
}

/// The model turn that a step belongs to: itself, or the turn that requested the call.
pub(super) fn turn_of(events: &[Event], step: Seq) -> Option<Seq> {
    let event = events.iter().find(|event| event.seq == step)?;
    let wants = |reply: &Event| match &reply.payload {
        Payload::Llm(LlmEvent::Reply(p)) => {
            reply.seq == step || p.calls.iter().any(|wanted| wanted.call == event.op)
        }
        _ => false,
    };
    events.iter().find(|reply| wants(reply)).map(|reply| reply.seq)
}

impl<'a> StepDescriber<'a> {
    /// `events` are all of the run.
    pub(super) fn new(log: &'a dyn EventLog, events: &[Event], undone: HashSet<OpId>) -> Self {
        let is_gone =
            events.first().and_then(|event| event.run_id).map(|run| kernel::run::is_rewound(run, events));
        let gone = |event: &&Event| is_gone.as_ref().is_some_and(|is_gone| is_gone(event));
        let gone = events.iter().filter(gone).map(|event| event.seq).collect();
        let mut calls: HashMap<OpId, CallOutcome> = HashMap::new();
        for event in events {
            match &event.payload {
                Payload::Tool(ToolEvent::Result(p)) => {
                    calls.entry(event.op).or_default().failed = p.status != ToolStatus::Exited { code: 0 };
                }
                Payload::File(file) => {
                    calls.entry(event.op).or_default().files += file.changes().len() as u64;
                }
                _ => {}
            }
        }
        Self { log, undone, gone, calls }
    }

    /// Describes an event, for which [`is_step`] must hold.
    pub(super) fn step(&self, event: &Event) -> Step {
        let (kind, task, failed) = kind_and_task(event);
        let is_call = matches!(event.payload, Payload::Tool(_));
        let outcome = if is_call {
            self.calls.get(&event.op).copied().unwrap_or_default()
        } else {
            CallOutcome::default()
        };
        Step {
            seq: event.seq,
            ts: event.ts,
            task,
            kind,
            label: line(&self.label(event), MAX_LABEL_CHARS),
            op: is_call.then_some(event.op),
            undone: self.gone.contains(&event.seq) || is_call && self.undone.contains(&event.op),
            failed: failed || outcome.failed,
            files: outcome.files,
            cost: cost(event),
        }
    }

    fn label(&self, event: &Event) -> String {
        match &event.payload {
            Payload::Llm(LlmEvent::Reply(p)) => {
                let wanted: Vec<&str> = p.calls.iter().map(|call| &*call.tool).collect();
                match (self.reply(&p.reply).0, wanted.as_slice()) {
                    (Some(text), _) if !text.trim().is_empty() => display::plain(&text),
                    (_, []) => format!("{} answered", p.model),
                    (_, wanted) => format!("{} wants {}", p.model, wanted.join(", ")),
                }
            }
            Payload::Tool(ToolEvent::Call(p)) => {
                // A command is shown verbatim; the titles of other tools may be Markdown.
                let title = if &*p.tool == "exec" { p.title.to_string() } else { display::plain(&p.title) };
                if title.starts_with(&*p.tool) { title } else { format!("{}: {title}", p.tool) }
            }
            Payload::Task(TaskEvent::Message(p)) => {
                let kind = match p.kind {
                    MessageKind::Finding => "found",
                    MessageKind::Question => "asks",
                    MessageKind::Answer => "answers",
                    MessageKind::Progress => "so far",
                    MessageKind::Completion => "done",
                    MessageKind::Failure => "failed",
                };
                format!("{kind}: {}", display::plain(&self.short_text(&p.body).unwrap_or_default()))
            }
            Payload::Run(RunEvent::Steer(p)) => {
                format!("you: {}", self.short_text(&p.words).unwrap_or_default())
            }
            _ => projector::label(&event.payload),
        }
    }

    fn short_text(&self, content: &ContentRef) -> Option<String> {
        (content.size <= MAX_LABEL_SOURCE_BYTES).then(|| display::show(self.log, content).text).flatten()
    }

    /// The text of a reply, and the calls that it requests as text.
    fn reply(&self, content: &ContentRef) -> (Option<String>, Option<String>) {
        let value = self
            .short_text(content)
            .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
            .unwrap_or_default();
        let text = value.get("text").and_then(|text| text.as_str()).map(ToOwned::to_owned);
        let calls = value.get("calls").and_then(|calls| calls.as_array()).filter(|calls| !calls.is_empty());
        let named = calls.map(|calls| {
            let one = |call: &serde_json::Value| {
                let tool = call.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default();
                format!("{tool} {:#}", call.get("input").unwrap_or(&serde_json::Value::Null))
            };
            calls.iter().map(one).collect::<Vec<_>>().join("\n")
        });
        (text, named)
    }

    /// A step with its input and output; `result` is the result of a call.
    pub(super) fn parts(&self, event: &Event, result: Option<&Event>) -> StepDetail {
        let mut parts = StepDetail { step: self.step(event), input: None, output: None, notes: Vec::new() };
        let mut shown = |content: &ContentRef| {
            let ShownText { text, note } = display::show(self.log, content);
            parts.notes.extend(note);
            text
        };
        match &event.payload {
            Payload::Tool(ToolEvent::Call(p)) => {
                parts.input = shown(&p.input).map(pretty);
                if let Some(Payload::Tool(ToolEvent::Result(p))) = result.map(|event| &event.payload) {
                    parts.output = p.report.output.as_ref().and_then(&mut shown);
                    if p.status != (ToolStatus::Exited { code: 0 }) {
                        parts.notes.push(projector::label(&Payload::from(p.clone())));
                    }
                    parts.notes.extend(p.report.notes.iter().map(ToString::to_string));
                }
            }
            Payload::Llm(LlmEvent::Reply(p)) => {
                let whole = shown(&p.reply);
                parts.output = match self.reply(&p.reply) {
                    (None, None) => whole.map(pretty),
                    (text, calls) => {
                        Some([text, calls].into_iter().flatten().collect::<Vec<_>>().join("\n\n"))
                    }
                };
                let attempts =
                    if p.attempts > 1 { format!(", asked {} times", p.attempts) } else { String::new() };
                parts.notes.push(format!(
                    "{}: {} tokens read, {} written, {} ms{attempts}",
                    p.model,
                    p.tokens.input + p.tokens.cache_read + p.tokens.cache_write,
                    p.tokens.output,
                    p.millis
                ));
            }
            Payload::Llm(LlmEvent::Fail(p)) => parts.output = Some(p.reason.to_string()),
            Payload::Task(TaskEvent::Start(p)) => parts.input = shown(&p.instruction),
            Payload::Task(TaskEvent::Message(p)) => parts.input = shown(&p.body),
            Payload::Run(RunEvent::Start(p)) => parts.input = shown(&p.objective),
            Payload::Run(RunEvent::Steer(p)) => parts.input = shown(&p.words),
            Payload::Run(RunEvent::Complete(p)) => parts.output = shown(&p.summary),
            Payload::Run(RunEvent::Ask(p)) => match &p.about {
                AskKind::Approval { input, why, .. } => {
                    parts.input = shown(input).map(pretty);
                    parts.notes.push(why.to_string());
                }
                AskKind::Outgoing { input, .. } => parts.input = shown(input).map(pretty),
                AskKind::Question { text, .. } => parts.input = Some(text.to_string()),
                AskKind::Interrupted { title, .. } => parts.input = Some(title.to_string()),
            },
            _ => {}
        }
        parts
    }
}

/// The kind of a step, its task, and whether it reports a failure.
fn kind_and_task(event: &Event) -> (StepKind, Option<TaskId>, bool) {
    match &event.payload {
        Payload::Llm(LlmEvent::Reply(p)) => (StepKind::Reply, Some(p.task), false),
        Payload::Llm(LlmEvent::Fail(p)) => (StepKind::Reply, Some(p.task), true),
        Payload::Tool(ToolEvent::Call(p)) => (StepKind::Call, p.task, false),
        Payload::Task(TaskEvent::Message(p)) => {
            (StepKind::Message, Some(p.from), p.kind == MessageKind::Failure)
        }
        Payload::Task(TaskEvent::Start(p)) => (StepKind::Lifecycle, Some(p.task), false),
        Payload::Task(TaskEvent::End(p)) => {
            (StepKind::Lifecycle, Some(p.task), matches!(p.outcome, TaskOutcome::Failed(_)))
        }
        Payload::Task(TaskEvent::Trust(p)) => (StepKind::Lifecycle, Some(p.task), false),
        Payload::Run(RunEvent::Steer(p)) => (StepKind::Message, p.task, false),
        Payload::Run(RunEvent::Ask(p)) => (StepKind::Ask, Some(p.task), false),
        Payload::Run(RunEvent::Answer(p)) => (StepKind::Ask, Some(p.task), false),
        Payload::Run(RunEvent::Fail(_)) => (StepKind::Lifecycle, None, true),
        _ => (StepKind::Lifecycle, None, false),
    }
}

fn cost(event: &Event) -> RunCost {
    match &event.payload {
        Payload::Llm(LlmEvent::Reply(p)) => RunCost {
            turns: 1,
            tokens: p.tokens.total(),
            micros: p.micros.unwrap_or_default(),
            unpriced: u64::from(p.micros.is_none()),
        },
        _ => RunCost::default(),
    }
}

/// The step that each event belongs to, by its seq.
pub(super) fn touched<'e>(all: &'e [Event], new: &'e [Event]) -> Vec<&'e Event> {
    let calls: HashMap<OpId, Seq> = all
        .iter()
        .filter(|event| matches!(event.payload, Payload::Tool(ToolEvent::Call(_))))
        .map(|event| (event.op, event.seq))
        .collect();
    let seq = |event: &Event| match &event.payload {
        Payload::Tool(ToolEvent::Result(_)) => calls.get(&event.op).copied(),
        _ => is_step(event).then_some(event.seq),
    };
    let mut seqs: Vec<Seq> = new.iter().filter_map(seq).collect();
    seqs.sort_unstable();
    seqs.dedup();
    all.iter().filter(|event| seqs.binary_search(&event.seq).is_ok()).collect()
}
