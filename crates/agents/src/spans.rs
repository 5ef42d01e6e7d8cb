//! Runs as spans, by OpenTelemetry's conventions for generative AI, read from their events.
//!
//! Nothing in the harness knows of them: whoever follows the log tells it here. A run is a trace with the run's id, and
//! the ids of spans come from those of agents, calls and events, so the same events make the same spans, also after a
//! crash. What anybody said or wrote is in no span unless whoever asks hands contents out ([`Known::content`]).

use std::collections::BTreeMap;

use models::chat::Reply;
use serde_json::{Value, json};
use shared_types::payload::llm::{LlmEvent, LlmReply, ReplyEnd};
use shared_types::payload::task::{TaskEvent, TaskOutcome};
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::{ContentHash, ContentRef, Event, OpId, Payload, RunId, TaskId, Timestamp};

/// One thing that took time.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: RunId,
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: String,
    /// Whether it is a request to somebody else.
    pub is_client: bool,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    /// What went wrong, in a word.
    pub error: Option<&'static str>,
}

/// What events name and do not hold.
pub trait SpanSource {
    /// The provider of a model of the catalog, by its name in the conventions, and the provider's name for the model.
    fn model(&self, alias: &str) -> (String, String);
    /// Bytes of a content as text; nothing, where contents are not to be told.
    fn content(&self, hash: ContentHash) -> Option<String>;
}

#[derive(Debug)]
struct Agent {
    parent: Option<TaskId>,
    role: Box<str>,
    start: Timestamp,
}

#[derive(Debug)]
struct Call {
    tool: Box<str>,
    task: TaskId,
    input: ContentRef,
    start: Timestamp,
}

/// Agents and calls of one run that are under way.
#[derive(Debug)]
pub struct Spans {
    run: RunId,
    agents: BTreeMap<TaskId, Agent>,
    calls: BTreeMap<OpId, Call>,
}

impl Spans {
    pub fn new(run: RunId) -> Self {
        Self { run, agents: BTreeMap::new(), calls: BTreeMap::new() }
    }

    /// The next event of the run; the span that ends with it, if one does.
    pub fn add(&mut self, event: &Event, known: &dyn SpanSource) -> Option<Span> {
        match &event.payload {
            Payload::Task(TaskEvent::Start(p)) => {
                let agent = Agent { parent: p.parent, role: p.role.clone(), start: event.ts };
                self.agents.insert(p.task, agent);
                None
            }
            Payload::Task(TaskEvent::End(p)) => {
                let error = match p.outcome {
                    TaskOutcome::Done => None,
                    TaskOutcome::Failed(_) => Some("failed"),
                    TaskOutcome::Cancelled => Some("cancelled"),
                };
                let agent = self.agents.get(&p.task)?;
                let mut attributes = self.about("invoke_agent", p.task);
                attributes.push(("gen_ai.provider.name", "choir".into()));
                attributes.push(("gen_ai.agent.id", p.task.to_string().into()));
                let (id, parent) = (of_task(p.task), agent.parent.map(of_task));
                let name = format!("invoke_agent {}", agent.role);
                Some(self.span(id, parent, name, agent.start, event.ts, attributes, error))
            }
            Payload::Llm(LlmEvent::Reply(p)) => Some(self.chat(event, p, known)),
            Payload::Llm(LlmEvent::Fail(p)) => {
                let mut attributes = self.about("chat", p.task);
                attributes.extend(of_model(&p.model, known));
                let name = format!("chat {}", known.model(&p.model).1);
                let (id, parent) = (of_event(event), Some(of_task(p.task)));
                let span = self.span(id, parent, name, event.ts, event.ts, attributes, Some("_OTHER"));
                Some(Span { is_client: true, ..span })
            }
            Payload::Tool(ToolEvent::Call(p)) => {
                let call = Call { tool: p.tool.clone(), task: p.task?, input: p.input, start: event.ts };
                self.calls.insert(event.op, call);
                None
            }
            Payload::Tool(ToolEvent::Result(p)) => {
                let call = self.calls.remove(&event.op)?;
                let mut attributes = self.about("execute_tool", call.task);
                attributes.push(("gen_ai.tool.name", (*call.tool).into()));
                attributes.push(("gen_ai.tool.type", "function".into()));
                attributes.push(("gen_ai.tool.call.id", event.op.to_string().into()));
                let mut told = |key, content: Option<ContentRef>| {
                    let text = content.and_then(|content| known.content(content.hash));
                    attributes.extend(text.map(|text| (key, text.into())));
                };
                told("gen_ai.tool.call.arguments", Some(call.input));
                told("gen_ai.tool.call.result", p.report.output);
                let name = format!("execute_tool {}", call.tool);
                let (id, parent) = (of_call(event.op), Some(of_task(call.task)));
                Some(self.span(id, parent, name, call.start, event.ts, attributes, error_of(&p.status)))
            }
            Payload::Task(TaskEvent::Message(_) | TaskEvent::Trust(_))
            | Payload::Tool(ToolEvent::Request(_) | ToolEvent::Hold(_))
            | Payload::Run(_)
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
            | Payload::Unknown(_) => None,
        }
    }

    fn chat(&self, event: &Event, p: &LlmReply, known: &dyn SpanSource) -> Span {
        let mut attributes = self.about("chat", p.task);
        attributes.extend(of_model(&p.model, known));
        let tokens = &p.tokens;
        let ended = match p.ended {
            ReplyEnd::Whole if !p.calls.is_empty() => "tool_calls",
            ReplyEnd::Whole | ReplyEnd::Empty => "stop",
            ReplyEnd::Cut => "length",
            ReplyEnd::Refused => "content_filter",
        };
        attributes.extend([
            ("gen_ai.response.model", known.model(&p.model).1.into()),
            ("gen_ai.response.finish_reasons", json!([ended])),
            ("gen_ai.usage.input_tokens", (tokens.input + tokens.cache_read + tokens.cache_write).into()),
            ("gen_ai.usage.cache_read.input_tokens", tokens.cache_read.into()),
            ("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write.into()),
            ("gen_ai.usage.output_tokens", tokens.output.into()),
        ]);
        if let Some(said) = known.content(p.reply.hash).and_then(|text| said(&text, ended)) {
            attributes.push(("gen_ai.output.messages", said.into()));
        }
        let millis = i64::try_from(p.millis).unwrap_or(i64::MAX);
        let start = Timestamp::from_millis(event.ts.millis().saturating_sub(millis));
        let name = format!("chat {}", known.model(&p.model).1);
        let (id, parent) = (of_event(event), Some(of_task(p.task)));
        let span = self.span(id, parent, name, start, event.ts, attributes, None);
        Span { is_client: true, ..span }
    }

    /// What every span of an agent says.
    fn about(&self, operation: &str, task: TaskId) -> Vec<(&'static str, Value)> {
        let role = self.agents.get(&task).map_or("agent", |agent| &*agent.role);
        vec![
            ("gen_ai.operation.name", operation.into()),
            ("gen_ai.conversation.id", self.run.to_string().into()),
            ("gen_ai.agent.name", role.into()),
        ]
    }

    #[allow(clippy::too_many_arguments, reason = "a span is that many things")]
    fn span(
        &self,
        id: [u8; 8],
        parent: Option<[u8; 8]>,
        name: String,
        start: Timestamp,
        end: Timestamp,
        mut attributes: Vec<(&'static str, Value)>,
        error: Option<&'static str>,
    ) -> Span {
        attributes.extend(error.map(|error| ("error.type", error.into())));
        Span { trace: self.run, id, parent, name, is_client: false, start, end, attributes, error }
    }
}

fn of_model(alias: &str, known: &dyn SpanSource) -> [(&'static str, Value); 2] {
    let (provider, model) = known.model(alias);
    [("gen_ai.provider.name", provider.into()), ("gen_ai.request.model", model.into())]
}

/// A reply in the form of the conventions.
fn said(reply: &str, ended: &str) -> Option<String> {
    let reply: Reply = serde_json::from_str(reply).ok()?;
    let text = (!reply.text.is_empty()).then(|| json!({ "type": "text", "content": reply.text }));
    let calls = reply.calls.iter().map(
        |call| json!({ "type": "tool_call", "id": call.id, "name": call.tool, "arguments": call.input }),
    );
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    Some(json!([{ "role": "assistant", "parts": parts, "finish_reason": ended }]).to_string())
}

fn error_of(status: &ToolStatus) -> Option<&'static str> {
    match status {
        ToolStatus::Exited { code: 0 } => None,
        ToolStatus::Exited { .. } => Some("exit_code"),
        ToolStatus::Killed { .. } => Some("killed"),
        ToolStatus::Stopped { .. } => Some("stopped"),
        ToolStatus::Failed { .. } => Some("failed"),
        ToolStatus::Interrupted { .. } => Some("interrupted"),
        ToolStatus::Discarded => Some("discarded"),
    }
}

/// A helper has the id of the call that asked for it; their spans have not.
fn of_task(task: TaskId) -> [u8; 8] {
    short(b"task", task.as_bytes())
}

fn of_call(call: OpId) -> [u8; 8] {
    short(b"call", call.as_bytes())
}

fn of_event(event: &Event) -> [u8; 8] {
    short(b"event", event.id.as_bytes())
}

fn short(kind: &[u8], id: &[u8]) -> [u8; 8] {
    let hash = ContentHash::of(&[kind, id].concat());
    let mut short = [0; 8];
    short.copy_from_slice(&hash.as_bytes()[..8]);
    short
}
