//! Parses an answer into a valid reply, or describes the problem so that the model can correct it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    Model, ModelFeature,
    chat::{AnswerForm, ChatRequest, Message, Reply, StopReason, Tool, ToolCall, Usage},
    json_repair::{TextEnd, parse_json},
    provider::RawReply,
    schema, text_calls,
};

/// Maximum bytes of the quote of an invalid answer and of the problem's description. The worst case reserves enough
/// tokens for both.
const LONGEST_QUOTE: usize = 2000;
const LONGEST_PROBLEM: usize = 500;

/// An answer that cannot be used.
#[derive(Debug, PartialEq)]
pub(crate) struct InvalidReply {
    pub(crate) problem: String,
    /// What the model wrote.
    quote: String,
}

/// The request with a schema that providers accept: they require objects, so other schemas are wrapped in one.
pub(crate) fn with_object_schema(request: &ChatRequest) -> ChatRequest {
    match &request.answer {
        AnswerForm::Json { schema } if !is_object(schema) => {
            ChatRequest { answer: AnswerForm::Json { schema: wrap_schema(schema) }, ..request.clone() }
        }
        AnswerForm::Any | AnswerForm::Call | AnswerForm::Json { .. } => request.clone(),
    }
}

/// The request with the invalid answer and its problem appended.
pub(crate) fn ask_again(request: &ChatRequest, invalid: &InvalidReply) -> ChatRequest {
    let mut again = request.clone();
    let truncate = |text: &str, limit| text[..text.floor_char_boundary(limit)].to_owned();
    let quote = truncate(&invalid.quote, LONGEST_QUOTE);
    let problem = truncate(&invalid.problem, LONGEST_PROBLEM);
    again.messages.push(Message::Model { text: quote, calls: Vec::new() });
    let text =
        format!("This answer cannot be used: {problem}. Answer again, completely and in the form asked for.");
    again.messages.push(Message::User { text });
    again
}

/// Parses an answer. The usage of the returned reply is empty; the meter counts it.
pub(crate) fn parse(raw: RawReply, request: &ChatRequest, model: &Model) -> Result<Reply, InvalidReply> {
    let quote = quote(&raw);
    let parsed = match (&request.answer, raw.stop) {
        (_, StopReason::Refusal) => Ok(Reply {
            text: raw.text,
            calls: Vec::new(),
            stop: StopReason::Refusal,
            usage: Usage::default(),
        }),
        (AnswerForm::Json { schema }, _) => parse_json_answer(&raw, schema),
        (AnswerForm::Any | AnswerForm::Call, _) => parse_calls(raw, request, model),
    };
    parsed.map_err(|problem| InvalidReply { problem, quote })
}

fn quote(raw: &RawReply) -> String {
    let calls = raw.calls.iter().map(|call| format!("(called {} with {})", call.tool, call.input));
    let parts: Vec<String> =
        std::iter::once(raw.text.clone()).chain(calls).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "(nothing)".into() } else { parts.join("\n") }
}

fn text_end(stop: StopReason) -> TextEnd {
    match stop {
        StopReason::Length => TextEnd::CutOff,
        StopReason::End | StopReason::Calls | StopReason::Refusal => TextEnd::Complete,
    }
}

fn parse_json_answer(raw: &RawReply, schema: &Value) -> Result<Reply, String> {
    let text = raw.calls.first().map_or(&raw.text, |call| &call.input);
    let value = parse_json(text, text_end(raw.stop))
        .map_err(|error| too_long_or(raw.stop, format!("it is no JSON: {error}")))?;
    let value = if is_object(schema) { value } else { unwrap_value(value)? };
    schema::check(&value, schema)?;
    Ok(Reply { text: value.to_string(), calls: Vec::new(), stop: StopReason::End, usage: Usage::default() })
}

fn parse_calls(raw: RawReply, request: &ChatRequest, model: &Model) -> Result<Reply, String> {
    let end = text_end(raw.stop);
    let mut text = raw.text;
    let mut calls = Vec::new();
    for call in raw.calls {
        let input = parse_input(&call.input, end).map_err(|error| {
            too_long_or(raw.stop, format!("the input of {} is no JSON: {error}", call.tool))
        })?;
        calls.push(ToolCall { id: call.id, tool: call.tool, input });
    }
    if calls.is_empty()
        && !model.supports(ModelFeature::Calls)
        && let Some(found) = text_calls::find(&text, &request.tools, end)?
    {
        text = found.text;
        calls.extend(found.calls.into_iter().map(|(tool, input)| ToolCall {
            id: String::new(),
            tool,
            input,
        }));
    }
    for call in &calls {
        check_call(call, &request.tools)?;
    }
    if calls.is_empty() && request.answer == AnswerForm::Call {
        return Err("no tool was called".into());
    }
    let stop = match (raw.stop, calls.is_empty()) {
        (StopReason::End | StopReason::Calls, true) => StopReason::End,
        (StopReason::End | StopReason::Calls, false) => StopReason::Calls,
        (stop @ (StopReason::Length | StopReason::Refusal), _) => stop,
    };
    assign_missing_ids(&mut calls, request);
    Ok(Reply { text, calls, stop, usage: Usage::default() })
}

/// Parses the input of a call. It may be missing, or be a JSON string that contains JSON.
fn parse_input(text: &str, end: TextEnd) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    match parse_json(text, end)? {
        Value::String(inner) => parse_json(&inner, end),
        Value::Null => Ok(json!({})),
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => Ok(value),
    }
}

/// Checks a call against its tool's schema. An unknown tool has no schema; the caller reports it when it runs the call.
fn check_call(call: &ToolCall, tools: &[Tool]) -> Result<(), String> {
    let known = tools.iter().find(|tool| tool.name == call.tool);
    let checked = match known {
        Some(tool) => schema::check(&call.input, &tool.input),
        None => Ok(()),
    };
    let is_object =
        call.input.is_object().then_some(()).ok_or_else(|| "the value must be of type object".to_owned());
    checked.and(is_object).map_err(|error| format!("the input of {} is wrong: {error}", call.tool))
}

/// Gives a new id to each call without an id, or with one that was already used in this conversation.
fn assign_missing_ids(calls: &mut [ToolCall], request: &ChatRequest) {
    let before = request.messages.iter().flat_map(|message| match message {
        Message::Model { calls, .. } => calls.as_slice(),
        Message::User { .. } | Message::Tools { .. } => &[],
    });
    let mut used: BTreeSet<String> = before.map(|call| call.id.clone()).collect();
    for (index, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || used.contains(&call.id) {
            call.id = format!("call_{}_{index}", request.messages.len());
        }
        used.insert(call.id.clone());
    }
}

/// The problem of an answer that does not parse: its length, if that is why it ended, or else `problem`.
fn too_long_or(stop: StopReason, problem: String) -> String {
    match stop {
        StopReason::Length => "it was too long and broke off; make it shorter".into(),
        StopReason::End | StopReason::Calls | StopReason::Refusal => problem,
    }
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

fn wrap_schema(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut outer = Map::new();
    // References are resolved from the root, so the definitions have to move there.
    if let Some(definitions) = inner.as_object_mut().and_then(|inner| inner.remove("$defs")) {
        outer.insert("$defs".into(), definitions);
    }
    outer.insert("type".into(), "object".into());
    outer.insert("properties".into(), json!({"answer": inner}));
    outer.insert("required".into(), json!(["answer"]));
    outer.into()
}

/// Undoes [`wrap_schema`] in an answer. Some models leave out the wrapper.
fn unwrap_value(value: Value) -> Result<Value, String> {
    match value {
        Value::Object(mut fields) => fields.remove("answer").ok_or_else(|| "`answer` is missing".to_owned()),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Ok(value)
        }
    }
}

#[cfg(test)]
mod tests;
