//! A request in the form of OpenAI's chat completions, for everybody who speaks it.

use serde_json::{Map, Value, json};

use super::{Target, claude_body::lay_over};
use crate::{
    Support,
    chat::{AnswerForm, Call, CallResult, Message, Request},
};

pub(super) fn body(target: &Target<'_>, request: &Request) -> Map<String, Value> {
    let can = |support| target.model.can(support);
    let limit = if can(Support::MaxCompletionTokens) { "max_completion_tokens" } else { "max_tokens" };
    let mut body = Map::new();
    body.insert("model".into(), target.model.id.clone().into());
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body.insert(limit.into(), request.max_output.into());
    body.insert("messages".into(), messages(request, can(Support::JsonSchema)).into());
    match &request.answer {
        AnswerForm::Any => {}
        AnswerForm::Call => {
            if can(Support::ForcedCalls) {
                body.insert("tool_choice".into(), "required".into());
            }
        }
        AnswerForm::Json { schema } => {
            body.insert("response_format".into(), response_format(schema, can(Support::JsonSchema)));
        }
    }
    let tools: Vec<Value> = match request.answer {
        AnswerForm::Any | AnswerForm::Call => request.tools.iter().map(tool).collect(),
        AnswerForm::Json { .. } => Vec::new(),
    };
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    lay_over(&mut body, target);
    body
}

fn response_format(schema: &Value, can_be_held: bool) -> Value {
    match can_be_held {
        true => json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}),
        false => json!({"type": "json_object"}),
    }
}

fn tool(tool: &crate::chat::Tool) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input});
    json!({"type": "function", "function": function})
}

fn messages(request: &Request, knows_schema: bool) -> Vec<Value> {
    let mut system = request.system.clone();
    if let AnswerForm::Json { schema } = &request.answer
        && !knows_schema
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

fn call(call: &Call) -> Value {
    let function = json!({"name": call.tool, "arguments": call.input.to_string()});
    json!({"id": call.id, "type": "function", "function": function})
}

/// The protocol has no word for a call that failed.
fn result(result: &CallResult) -> Value {
    let text = if result.failed { format!("[failed] {}", result.text) } else { result.text.clone() };
    json!({"role": "tool", "tool_call_id": result.id, "content": text})
}

#[cfg(test)]
mod tests;
