//! A request as Claude reads it, at Anthropic and on Bedrock alike.

use serde_json::{Map, Value, json};

use super::Target;
use crate::{
    Support,
    chat::{AnswerForm, CallResult, Message, Request, Tool},
};

/// The tool by whose input an answer of a given form is given.
pub(super) const ANSWER_TOOL: &str = "answer";

/// Messages whose end is marked, so that the next turn finds everything up to them in the cache: the last, and the one
/// before it, where the turn before this one put its mark. With those on tools and system these are the four there are.
const MARKED_MESSAGES: usize = 2;

/// The body without what only one of the two providers wants.
pub(super) fn body(target: &Target<'_>, request: &Request) -> Map<String, Value> {
    let cache = target.model.can(Support::Cache);
    let mut body = Map::new();
    body.insert("max_tokens".into(), request.max_output.into());
    let system = system(request);
    if !system.is_empty() {
        let mut block = json!({"type": "text", "text": system});
        mark(&mut block, cache);
        body.insert("system".into(), json!([block]));
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if let AnswerForm::Json { schema } = &request.answer {
        tools =
            vec![json!({"name": ANSWER_TOOL, "description": "Gives the answer.", "input_schema": schema})];
    }
    if let Some(last) = tools.last_mut() {
        mark(last, cache);
        body.insert("tools".into(), tools.into());
    }
    if let Some(choice) = tool_choice(request, target.model.can(Support::ForcedCalls)) {
        body.insert("tool_choice".into(), choice);
    }
    body.insert("messages".into(), messages(request, cache).into());
    body
}

/// Laid over the body: what the catalog says about this model.
pub(super) fn lay_over(body: &mut Map<String, Value>, target: &Target<'_>) {
    for (key, value) in &target.model.extra {
        // TOML is JSON but for its dates, which no provider knows.
        body.insert(key.clone(), serde_json::to_value(value).unwrap_or_default());
    }
}

/// A model that cannot be forced is asked.
fn system(request: &Request) -> String {
    match request.answer {
        AnswerForm::Any | AnswerForm::Call => request.system.clone(),
        AnswerForm::Json { .. } => {
            let ask = format!(
                "Give your answer by calling the tool `{ANSWER_TOOL}`, once, and write nothing else."
            );
            format!("{}\n\n{ask}", request.system).trim_start().to_owned()
        }
    }
}

fn tool_choice(request: &Request, can_be_forced: bool) -> Option<Value> {
    match request.answer {
        AnswerForm::Any => None,
        AnswerForm::Call => can_be_forced.then(|| json!({"type": "any"})),
        AnswerForm::Json { .. } => can_be_forced.then(|| json!({"type": "tool", "name": ANSWER_TOOL})),
    }
}

fn tool(tool: &Tool) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.input})
}

fn mark(block: &mut Value, cache: bool) {
    if let Value::Object(block) = block
        && cache
    {
        block.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}

/// Messages of the same side that follow each other become one, since the sides must alternate.
fn messages(request: &Request, cache: bool) -> Vec<Value> {
    let mut sides: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (side, blocks) = match message {
            Message::User { text } => ("user", vec![text_block(text)]),
            Message::Tools { results } => ("user", results.iter().map(result_block).collect()),
            Message::Model { text, calls } => {
                let text = (!text.trim().is_empty() || calls.is_empty()).then(|| text_block(text));
                let calls = calls.iter().map(|call| {
                    json!({"type": "tool_use", "id": id(&call.id), "name": call.tool, "input": call.input})
                });
                ("assistant", text.into_iter().chain(calls).collect())
            }
        };
        match sides.last_mut() {
            Some((last, all)) if *last == side => all.extend(blocks),
            Some(_) | None => sides.push((side, blocks)),
        }
    }
    for (_, blocks) in sides.iter_mut().rev().filter(|(side, _)| *side == "user").take(MARKED_MESSAGES) {
        if let Some(last) = blocks.last_mut() {
            mark(last, cache);
        }
    }
    sides.into_iter().map(|(side, blocks)| json!({"role": side, "content": blocks})).collect()
}

/// Text without a letter is refused.
fn text_block(text: &str) -> Value {
    let text = if text.trim().is_empty() { "(nothing)" } else { text };
    json!({"type": "text", "text": text})
}

fn result_block(result: &CallResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": id(&result.id)});
    if !result.text.is_empty() {
        block["content"] = result.text.clone().into();
    }
    if result.failed {
        block["is_error"] = true.into();
    }
    block
}

/// Ids of other providers hold signs that Claude refuses, and a conversation may go on with another model.
fn id(id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    id.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests;
