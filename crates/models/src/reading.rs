//! From an answer as it came to a reply that makes sense, or to what is wrong with it, said so that the model
//! understands.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    Model, Support,
    chat::{AnswerForm, Call, Message, Reply, Request, Stop, Tool, Usage},
    provider::RawReply,
    repair::{Ending, read_json},
    schema, spoken,
};

/// Bytes that are quoted of an answer that made no sense, and those that say what is wrong with it. Both together are
/// within what a worst case reserves for them.
const LONGEST_QUOTE: usize = 2000;
const LONGEST_PROBLEM: usize = 500;

/// An answer that makes no sense.
#[derive(Debug, PartialEq)]
pub(crate) struct Flaw {
    pub(crate) problem: String,
    /// What the model said.
    said: String,
}

/// The request as it is sent: providers want schemas of objects, so others are put into one.
pub(crate) fn asked(request: &Request) -> Request {
    match &request.answer {
        AnswerForm::Json { schema } if !is_object(schema) => {
            Request { answer: AnswerForm::Json { schema: wrapped(schema) }, ..request.clone() }
        }
        AnswerForm::Any | AnswerForm::Call | AnswerForm::Json { .. } => request.clone(),
    }
}

/// The same once more, with what was wrong.
pub(crate) fn ask_again(request: &Request, flaw: &Flaw) -> Request {
    let mut again = request.clone();
    let beginning = |text: &str, most| text[..text.floor_char_boundary(most)].to_owned();
    let (said, problem) = (beginning(&flaw.said, LONGEST_QUOTE), beginning(&flaw.problem, LONGEST_PROBLEM));
    again.messages.push(Message::Model { text: said, calls: Vec::new() });
    let text =
        format!("This answer cannot be used: {problem}. Answer again, completely and in the form asked for.");
    again.messages.push(Message::User { text });
    again
}

/// Reads an answer. What it used is counted elsewhere.
pub(crate) fn read(raw: RawReply, request: &Request, model: &Model) -> Result<Reply, Flaw> {
    let said = quote(&raw);
    let read = match (&request.answer, raw.stop) {
        (_, Stop::Refusal) => {
            Ok(Reply { text: raw.text, calls: Vec::new(), stop: Stop::Refusal, usage: Usage::default() })
        }
        (AnswerForm::Json { schema }, _) => read_json_answer(&raw, schema),
        (AnswerForm::Any | AnswerForm::Call, _) => read_calls(raw, request, model),
    };
    read.map_err(|problem| Flaw { problem, said })
}

fn quote(raw: &RawReply) -> String {
    let calls = raw.calls.iter().map(|call| format!("(called {} with {})", call.tool, call.input));
    let parts: Vec<String> =
        std::iter::once(raw.text.clone()).chain(calls).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "(nothing)".into() } else { parts.join("\n") }
}

fn ending(stop: Stop) -> Ending {
    match stop {
        Stop::Length => Ending::CutOff,
        Stop::End | Stop::Calls | Stop::Refusal => Ending::Said,
    }
}

fn read_json_answer(raw: &RawReply, schema: &Value) -> Result<Reply, String> {
    let text = raw.calls.first().map_or(&raw.text, |call| &call.input);
    let value = read_json(text, ending(raw.stop))
        .map_err(|error| too_long(raw.stop, format!("it is no JSON: {error}")))?;
    let value = if is_object(schema) { value } else { unwrapped(value)? };
    schema::check(&value, schema)?;
    Ok(Reply { text: value.to_string(), calls: Vec::new(), stop: Stop::End, usage: Usage::default() })
}

fn read_calls(raw: RawReply, request: &Request, model: &Model) -> Result<Reply, String> {
    let ending = ending(raw.stop);
    let mut text = raw.text;
    let mut calls = Vec::new();
    for call in raw.calls {
        let input = input(&call.input, ending);
        let input = input
            .map_err(|error| too_long(raw.stop, format!("the input of {} is no JSON: {error}", call.tool)))?;
        calls.push(Call { id: call.id, tool: call.tool, input });
    }
    if calls.is_empty()
        && !model.can(Support::Calls)
        && let Some(spoken) = spoken::find(&text, &request.tools, ending)?
    {
        text = spoken.text;
        calls.extend(spoken.calls.into_iter().map(|(tool, input)| Call { id: String::new(), tool, input }));
    }
    for call in &calls {
        check(call, &request.tools)?;
    }
    if calls.is_empty() && request.answer == AnswerForm::Call {
        return Err("no tool was called".into());
    }
    let stop = match (raw.stop, calls.is_empty()) {
        (Stop::End | Stop::Calls, true) => Stop::End,
        (Stop::End | Stop::Calls, false) => Stop::Calls,
        (stop @ (Stop::Length | Stop::Refusal), _) => stop,
    };
    name(&mut calls, request);
    Ok(Reply { text, calls, stop, usage: Usage::default() })
}

/// An input may be left out, or be JSON inside a string of JSON.
fn input(text: &str, ending: Ending) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    match read_json(text, ending)? {
        Value::String(inner) => read_json(&inner, ending),
        Value::Null => Ok(json!({})),
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => Ok(value),
    }
}

/// A tool that was not offered has no schema; whoever runs the calls will say that there is no such tool.
fn check(call: &Call, tools: &[Tool]) -> Result<(), String> {
    let known = tools.iter().find(|tool| tool.name == call.tool);
    let checked = match known {
        Some(tool) => schema::check(&call.input, &tool.input),
        None => Ok(()),
    };
    let is_object =
        call.input.is_object().then_some(()).ok_or_else(|| "the value must be of type object".to_owned());
    checked.and(is_object).map_err(|error| format!("the input of {} is wrong: {error}", call.tool))
}

/// Gives an id to each call that has none, or one that was used before in this conversation.
fn name(calls: &mut [Call], request: &Request) {
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

fn too_long(stop: Stop, problem: String) -> String {
    match stop {
        Stop::Length => "it was too long and broke off; make it shorter".into(),
        Stop::End | Stop::Calls | Stop::Refusal => problem,
    }
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut outer = Map::new();
    // What it refers to is looked for at the top.
    if let Some(definitions) = inner.as_object_mut().and_then(|inner| inner.remove("$defs")) {
        outer.insert("$defs".into(), definitions);
    }
    outer.insert("type".into(), "object".into());
    outer.insert("properties".into(), json!({"answer": inner}));
    outer.insert("required".into(), json!(["answer"]));
    outer.into()
}

/// Some models leave out what was put around.
fn unwrapped(value: Value) -> Result<Value, String> {
    match value {
        Value::Object(mut fields) => fields.remove("answer").ok_or_else(|| "`answer` is missing".to_owned()),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Ok(value)
        }
    }
}

#[cfg(test)]
mod tests;
