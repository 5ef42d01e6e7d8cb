//! Runs as spans, by OpenTelemetry's conventions for generative AI, computed from their events.
//!
//! The harness does not know of spans: a follower of the log adds its events here. A run is a trace with the run's id, and
//! span ids are derived from the ids of agents, calls and events, so the same events make the same spans, also after a
//! crash. A span contains text of models and tools only if the caller provides it ([`SpanSource::content`]).

use std::collections::BTreeMap;

use models::chat::Reply;
use serde_json::{Value, json};
use shared_types::payload::llm::{LlmEvent, LlmReply, ReplyEnd};
use shared_types::payload::task::{TaskEvent, TaskOutcome};
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::{ContentHash, ContentRef, Event, OpId, Payload, RunId, TaskId, Timestamp};

/// A completed span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: RunId,
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: String,
    /// Whether it is a request to another service (span kind `CLIENT`).
    pub is_client: bool,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    /// The type of the error, if it failed.
    pub error: Option<&'static str>,
}

/// Data that events refer to and do not contain.
pub trait SpanSource {
    /// The provider of a model in the catalog, by its name in the conventions, and the provider's id of the model.
    fn model(&self, alias: &str) -> (String, String);
    /// A content as text; `None` if contents are not exported.
    fn content(&self, hash: ContentHash) -> Option<String>;
}

#[derive(Debug)]
struct OpenAgent {
    parent: Option<TaskId>,
    role: Box<str>,
    start: Timestamp,
}

#[derive(Debug)]
struct OpenCall {
    tool: Box<str>,
    task: TaskId,
    input: ContentRef,
    start: Timestamp,
}

/// The open spans of one run: its agents and calls in progress.
#[derive(Debug)]
pub struct Spans {
    run: RunId,
    agents: BTreeMap<TaskId, OpenAgent>,
    calls: BTreeMap<OpId, OpenCall>,
}

impl Spans {
    pub fn new(run: RunId) -> Self {
        Self { run, agents: BTreeMap::new(), calls: BTreeMap::new() }
    }

    /// Adds the next event of the run. Returns the span that it completes, if any.
    pub fn add(&mut self, event: &Event, source: &dyn SpanSource) -> Option<Span> {
        match &event.payload {
            Payload::Task(TaskEvent::Start(p)) => {
                let agent = OpenAgent { parent: p.parent, role: p.role.clone(), start: event.ts };
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
                let mut attributes = self.common_attributes("invoke_agent", p.task);
                attributes.push(("gen_ai.provider.name", "choir".into()));
                attributes.push(("gen_ai.agent.id", p.task.to_string().into()));
                let (id, parent) = (task_span_id(p.task), agent.parent.map(task_span_id));
                let name = format!("invoke_agent {}", agent.role);
                Some(self.span(id, parent, name, agent.start, event.ts, attributes, error))
            }
            Payload::Llm(LlmEvent::Reply(p)) => Some(self.chat(event, p, source)),
            Payload::Llm(LlmEvent::Fail(p)) => {
                let mut attributes = self.common_attributes("chat", p.task);
                attributes.extend(model_attributes(&p.model, source));
                let name = format!("chat {}", source.model(&p.model).1);
                let (id, parent) = (event_span_id(event), Some(task_span_id(p.task)));
                let span = self.span(id, parent, name, event.ts, event.ts, attributes, Some("_OTHER"));
                Some(Span { is_client: true, ..span })
            }
            Payload::Tool(ToolEvent::Call(p)) => {
                let call = OpenCall { tool: p.tool.clone(), task: p.task?, input: p.input, start: event.ts };
                self.calls.insert(event.op, call);
                None
            }
            Payload::Tool(ToolEvent::Result(p)) => {
                let call = self.calls.remove(&event.op)?;
                let mut attributes = self.common_attributes("execute_tool", call.task);
                attributes.push(("gen_ai.tool.name", (*call.tool).into()));
                attributes.push(("gen_ai.tool.type", "function".into()));
                attributes.push(("gen_ai.tool.call.id", event.op.to_string().into()));
                let mut add_content = |key, content: Option<ContentRef>| {
                    let text = content.and_then(|content| source.content(content.hash));
                    attributes.extend(text.map(|text| (key, text.into())));
                };
                add_content("gen_ai.tool.call.arguments", Some(call.input));
                add_content("gen_ai.tool.call.result", p.report.output);
                let name = format!("execute_tool {}", call.tool);
                let (id, parent) = (call_span_id(event.op), Some(task_span_id(call.task)));
                Some(self.span(id, parent, name, call.start, event.ts, attributes, error_type(&p.status)))
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

    fn chat(&self, event: &Event, p: &LlmReply, source: &dyn SpanSource) -> Span {
        let mut attributes = self.common_attributes("chat", p.task);
        attributes.extend(model_attributes(&p.model, source));
        let tokens = &p.tokens;
        let ended = match p.ended {
            ReplyEnd::Whole if !p.calls.is_empty() => "tool_calls",
            ReplyEnd::Whole | ReplyEnd::Empty => "stop",
            ReplyEnd::Cut => "length",
            ReplyEnd::Refused => "content_filter",
        };
        attributes.extend([
            ("gen_ai.response.model", source.model(&p.model).1.into()),
            ("gen_ai.response.finish_reasons", json!([ended])),
            ("gen_ai.usage.input_tokens", (tokens.input + tokens.cache_read + tokens.cache_write).into()),
            ("gen_ai.usage.cache_read.input_tokens", tokens.cache_read.into()),
            ("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write.into()),
            ("gen_ai.usage.output_tokens", tokens.output.into()),
        ]);
        if let Some(messages) = source.content(p.reply.hash).and_then(|text| output_messages(&text, ended)) {
            attributes.push(("gen_ai.output.messages", messages.into()));
        }
        let millis = i64::try_from(p.millis).unwrap_or(i64::MAX);
        let start = Timestamp::from_millis(event.ts.millis().saturating_sub(millis));
        let name = format!("chat {}", source.model(&p.model).1);
        let (id, parent) = (event_span_id(event), Some(task_span_id(p.task)));
        let span = self.span(id, parent, name, start, event.ts, attributes, None);
        Span { is_client: true, ..span }
    }

    /// The attributes of every span of an agent.
    fn common_attributes(&self, operation: &str, task: TaskId) -> Vec<(&'static str, Value)> {
        let role = self.agents.get(&task).map_or("agent", |agent| &*agent.role);
        vec![
            ("gen_ai.operation.name", operation.into()),
            ("gen_ai.conversation.id", self.run.to_string().into()),
            ("gen_ai.agent.name", role.into()),
        ]
    }

    #[allow(clippy::too_many_arguments, reason = "each is a field of a span")]
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

fn model_attributes(alias: &str, source: &dyn SpanSource) -> [(&'static str, Value); 2] {
    let (provider, model) = source.model(alias);
    [("gen_ai.provider.name", provider.into()), ("gen_ai.request.model", model.into())]
}

/// A reply in the JSON form of the conventions.
fn output_messages(reply: &str, ended: &str) -> Option<String> {
    let reply: Reply = serde_json::from_str(reply).ok()?;
    let text = (!reply.text.is_empty()).then(|| json!({ "type": "text", "content": reply.text }));
    let calls = reply.calls.iter().map(
        |call| json!({ "type": "tool_call", "id": call.id, "name": call.tool, "arguments": call.input }),
    );
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    Some(json!([{ "role": "assistant", "parts": parts, "finish_reason": ended }]).to_string())
}

fn error_type(status: &ToolStatus) -> Option<&'static str> {
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

/// A helper has the same id as the call that started it, so span ids also depend on the kind.
fn task_span_id(task: TaskId) -> [u8; 8] {
    span_id(b"task", task.as_bytes())
}

fn call_span_id(call: OpId) -> [u8; 8] {
    span_id(b"call", call.as_bytes())
}

fn event_span_id(event: &Event) -> [u8; 8] {
    span_id(b"event", event.id.as_bytes())
}

fn span_id(kind: &[u8], id: &[u8]) -> [u8; 8] {
    let hash = ContentHash::of(&[kind, id].concat());
    let mut id_bytes = [0; 8];
    id_bytes.copy_from_slice(&hash.as_bytes()[..8]);
    id_bytes
}
