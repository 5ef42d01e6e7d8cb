//! The request body for Claude, shared by Anthropic and Bedrock.

use serde_json::{Map, Value, json};

use super::RequestTarget;
use crate::{
    ModelFeature,
    chat::{AnswerForm, ChatRequest, Message, Tool, ToolResult},
};

/// The tool whose input carries an answer in JSON.
pub(super) const ANSWER_TOOL: &str = "answer";

/// Number of user messages that get a cache mark: the last one, for the next turn, and the one before, which the previous
/// turn marked. Together with the marks on tools and system prompt these are the four that Anthropic allows.
const MARKED_MESSAGES: usize = 2;

/// The fields that both providers share.
pub(super) fn body(target: &RequestTarget<'_>, request: &ChatRequest) -> Map<String, Value> {
    let cache = target.model.supports(ModelFeature::Cache);
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
    if let Some(choice) = tool_choice(request, target.model.supports(ModelFeature::ForcedCalls)) {
        body.insert("tool_choice".into(), choice);
    }
    body.insert("messages".into(), messages(request, cache).into());
    body
}

/// Sets the model's `extra` fields from the catalog.
pub(super) fn set_extra_fields(body: &mut Map<String, Value>, target: &RequestTarget<'_>) {
    for (key, value) in &target.model.extra {
        // Every TOML value except dates maps to JSON, and no provider uses dates.
        body.insert(key.clone(), serde_json::to_value(value).unwrap_or_default());
    }
}

/// The system prompt. For a JSON answer it asks for the answer tool, since not every model supports forced calls.
fn system(request: &ChatRequest) -> String {
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

fn tool_choice(request: &ChatRequest, can_be_forced: bool) -> Option<Value> {
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

/// Merges consecutive messages of the same role, since Claude requires the roles to alternate.
fn messages(request: &ChatRequest, cache: bool) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
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
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            Some(_) | None => turns.push((role, blocks)),
        }
    }
    for (_, blocks) in turns.iter_mut().rev().filter(|(role, _)| *role == "user").take(MARKED_MESSAGES) {
        if let Some(last) = blocks.last_mut() {
            mark(last, cache);
        }
    }
    turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

/// Anthropic rejects empty text blocks.
fn text_block(text: &str) -> Value {
    let text = if text.trim().is_empty() { "(nothing)" } else { text };
    json!({"type": "text", "text": text})
}

fn result_block(result: &ToolResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": id(&result.id)});
    if !result.text.is_empty() {
        block["content"] = result.text.clone().into();
    }
    if result.failed {
        block["is_error"] = true.into();
    }
    block
}

/// Replaces characters that Claude rejects in ids. A conversation may contain ids of other providers.
fn id(id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    id.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests;
