//! The request body of OpenAI's chat completions, also for compatible servers.

use serde_json::{Map, Value, json};

use super::{RequestTarget, claude_body::set_extra_fields};
use crate::{
    ModelFeature,
    chat::{AnswerForm, ChatRequest, Message, ToolCall, ToolResult},
};

pub(super) fn body(target: &RequestTarget<'_>, request: &ChatRequest) -> Map<String, Value> {
    let supports = |feature| target.model.supports(feature);
    let limit =
        if supports(ModelFeature::MaxCompletionTokens) { "max_completion_tokens" } else { "max_tokens" };
    let mut body = Map::new();
    body.insert("model".into(), target.model.id.clone().into());
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body.insert(limit.into(), request.max_output.into());
    body.insert("messages".into(), messages(request, supports(ModelFeature::JsonSchema)).into());
    match &request.answer {
        AnswerForm::Any => {}
        AnswerForm::Call => {
            if supports(ModelFeature::ForcedCalls) {
                body.insert("tool_choice".into(), "required".into());
            }
        }
        AnswerForm::Json { schema } => {
            body.insert(
                "response_format".into(),
                response_format(schema, supports(ModelFeature::JsonSchema)),
            );
        }
    }
    let tools: Vec<Value> = match request.answer {
        AnswerForm::Any | AnswerForm::Call => request.tools.iter().map(tool).collect(),
        AnswerForm::Json { .. } => Vec::new(),
    };
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    set_extra_fields(&mut body, target);
    body
}

fn response_format(schema: &Value, enforces_schema: bool) -> Value {
    match enforces_schema {
        true => json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}),
        false => json!({"type": "json_object"}),
    }
}

fn tool(tool: &crate::chat::Tool) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input});
    json!({"type": "function", "function": function})
}

fn messages(request: &ChatRequest, enforces_schema: bool) -> Vec<Value> {
    let mut system = request.system.clone();
    if let AnswerForm::Json { schema } = &request.answer
        && !enforces_schema
    {
        system = format!("{system}\n\nAnswer with JSON of this JSON Schema, and nothing else:\n{schema}");
    }
    let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system.trim_start()}));
    system.into_iter().chain(request.messages.iter().flat_map(message)).collect()
}

fn message(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text } => vec![json!({"role": "user", "content": text})],
        Message::Model { text, calls } if calls.is_empty() => {
            vec![json!({"role": "assistant", "content": text})]
        }
        Message::Model { text, calls } => {
            let calls: Vec<Value> = calls.iter().map(call).collect();
            vec![json!({"role": "assistant", "content": text, "tool_calls": calls})]
        }
        Message::Tools { results } => results.iter().map(result).collect(),
    }
}

fn call(call: &ToolCall) -> Value {
    let function = json!({"name": call.tool, "arguments": call.input.to_string()});
    json!({"id": call.id, "type": "function", "function": function})
}

/// The protocol has no field for a failed call, so the text says it.
fn result(result: &ToolResult) -> Value {
    let text = if result.failed { format!("[failed] {}", result.text) } else { result.text.clone() };
    json!({"role": "tool", "tool_call_id": result.id, "content": text})
}

#[cfg(test)]
mod tests;
